//! The conductor in simulated time, with a wall that does what the test says.

use super::*;
use crate::clock::Boottime;
use crate::config::BackendName;
use crate::events::Kinds;
use crate::playlist::{Act, Failure};
use crate::store::images::{self, NewImage};
use crate::store::playlists::PlaylistChange;
use crate::wallpaper::{self, Applied, Ask, Outcome, Reply, Request, Targets};
use crate::wire::{
    ActivePlaylist, Format, MediaType, Mode, NewConfiguration, NewPlaylistItem, PlaylistOrder,
    PlaylistType,
};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::time::Duration;

const NONE: [usize; 0] = [];
const SECOND: Duration = Duration::from_secs(1);

/// What the wall answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Hangs,
    /// Answers nothing until it is told to.
    Silent,
    RefusesVideo,
    RefusesAll,
    NoBackend,
    Superseded,
}

struct Face {
    mood: Mood,
    connected: Vec<String>,
    fixed: bool,
    /// Images and monitors that were asked for.
    asked: Vec<(i64, Vec<String>, Mode)>,
    held: Vec<(Request, Reply<Applied>)>,
}

#[derive(Clone)]
struct StubWall {
    face: Arc<Mutex<Face>>,
    store: Store,
}

impl StubWall {
    fn answer(&self, request: Request, reply: Reply<Applied>) {
        let face = self.face.lock().unwrap();
        let Ask::Image(id) = request.ask else { panic!("{request:?}") };
        let Targets::Named(monitors) = request.targets else { panic!("no names") };
        let image = self.store.read(|c| images::get(c, id)).unwrap();
        let backend = BackendName::Swaybg;
        let refused = |media_type| wallpaper::Failure::Incompatible {
            backend,
            media_type,
            image_id: id,
            image_name: "x".into(),
        };
        let outcome = match (face.mood, image) {
            (_, None) => Err(wallpaper::Failure::NoImage { id }),
            (Mood::NoBackend, _) => Err(wallpaper::Failure::NoBackend { checked: Vec::new() }),
            (Mood::RefusesAll, Some(image)) => Err(refused(image.media_type)),
            (Mood::RefusesVideo, Some(image)) if image.media_type == MediaType::Video => {
                Err(refused(image.media_type))
            }
            (Mood::Superseded, _) => Ok(Outcome::Superseded),
            _ => Ok(Outcome::Set),
        };
        let mode = request.mode;
        reply(outcome.map(|outcome| Applied { outcome, image_id: id, monitors, mode, backend }));
    }
}

impl Wall for StubWall {
    fn hang(&self, request: Request, reply: Reply<Applied>) {
        let (Ask::Image(id), Targets::Named(monitors)) = (request.ask, &request.targets) else {
            panic!("{request:?}")
        };
        let mut face = self.face.lock().unwrap();
        face.asked.push((id, monitors.clone(), request.mode));
        if face.mood == Mood::Silent {
            face.held.push((request, reply));
            return;
        }
        drop(face);
        self.answer(request, reply);
    }

    fn connected(&self) -> Vec<String> {
        self.face.lock().unwrap().connected.clone()
    }

    fn fixed(&self) -> Option<String> {
        self.face.lock().unwrap().fixed.then(|| "awww".to_owned())
    }
}

struct Stage {
    conductor: Conductor,
    wall: StubWall,
    time: Arc<Mutex<Now>>,
    events: Subscription,
    hub: Hub,
    store: Store,
    _directory: tempfile::TempDir,
    images: Vec<i64>,
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn at(text: &str, zone: &str) -> jiff::Zoned {
    TimeZone::get(zone).unwrap().to_zoned(text.parse().unwrap()).unwrap()
}

/// Images 0 to 5, the last two of them videos, and monitors A and B.
fn stage() -> Stage {
    let (directory, store) = crate::store::tests::scratch();
    let insert = |number: u8| {
        let format = if number < 4 { Format::Png } else { Format::Mp4 };
        let name = format!("p{number}");
        let image = NewImage {
            path: format!("/library/{name}").into(),
            name,
            format,
            width: 4,
            height: 3,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: 1,
            checksum: [number; 32],
            colors: Vec::new(),
            hue_group: 99,
            folder_id: None,
            source_path: "/from".into(),
            web: None,
        };
        store.write(|c| images::insert(c, &image)).unwrap()
    };
    let images = (0..6).map(insert).collect();
    let hub = Hub::new();
    let face = Face {
        mood: Mood::Hangs,
        connected: names(&["A", "B"]),
        fixed: true,
        asked: Vec::new(),
        held: Vec::new(),
    };
    let wall = StubWall { face: Arc::new(Mutex::new(face)), store: store.clone() };
    let boot = Boottime::default() + 1000 * SECOND;
    let wall_time = at("2024-06-01T12:00", "Europe/Berlin");
    let time = Arc::new(Mutex::new(Now { boot, wall: wall_time }));
    let events = hub.subscribe(Kinds::ALL, || ());
    let conductor = conductor(&store, &hub, &wall, &time, "boot");
    Stage { conductor, wall, time, events, hub, store, _directory: directory, images }
}

fn conductor(
    store: &Store,
    hub: &Hub,
    wall: &StubWall,
    time: &Arc<Mutex<Now>>,
    boot_id: &str,
) -> Conductor {
    let time = Arc::clone(time);
    let now = Box::new(move || time.lock().unwrap().clone());
    let (store, hub, wall) = (store.clone(), hub.clone(), Box::new(wall.clone()));
    Conductor::new(store, hub, wall, now, boot_id.to_owned()).0
}

impl Stage {
    /// Makes a playlist of the images of these numbers, with minutes where there are.
    fn make(&self, kind: PlaylistType, numbers: &[usize], times: &[i64]) -> i64 {
        self.make_with(NewConfiguration { kind: Some(kind), ..fast() }, numbers, times)
    }

    fn make_with(&self, configuration: NewConfiguration, numbers: &[usize], times: &[i64]) -> i64 {
        let change = PlaylistChange {
            name: Some(format!("list {}", seed())),
            configuration,
            images: Some(self.items(numbers, times)),
        };
        self.store.write(|c| playlists::insert(c, &change)).unwrap()
    }

    fn items(&self, numbers: &[usize], times: &[i64]) -> Vec<NewPlaylistItem> {
        let item = |(at, &number): (usize, &usize)| NewPlaylistItem {
            image_id: self.images[number],
            media_type: None,
            time: times.get(at).copied(),
        };
        numbers.iter().enumerate().map(item).collect()
    }

    fn start(&mut self, id: i64, monitors: &[&str]) -> Result<(), Failure> {
        self.command(|reply| Command::Start { id, monitors: names(monitors), extend: false, reply })
    }

    fn act(&mut self, id: i64, act: Act) -> Result<(), Failure> {
        self.command(|reply| Command::Act(id, act, reply))
    }

    fn act_on_all(&mut self, act: Act) -> usize {
        self.command(|reply| Command::ActOnAll(act, reply)).unwrap()
    }

    fn active(&mut self) -> Vec<ActivePlaylist> {
        self.command(Command::Active).unwrap()
    }

    fn command<T: Send + 'static>(
        &mut self,
        command: impl FnOnce(crate::playlist::Reply<T>) -> Command,
    ) -> Result<T, Failure> {
        let (sender, answer) = bounded(1);
        self.conductor.take(command(Box::new(move |result| drop(sender.try_send(result)))));
        self.conductor.wake();
        self.settle();
        answer.try_recv().expect("an answer")
    }

    /// Until nothing more follows.
    fn settle(&mut self) {
        loop {
            let before = self.conductor.changes;
            self.conductor.hear();
            self.conductor.wake();
            let waiting = !self.conductor.outbox.lock().unwrap().is_empty();
            if !waiting && before == self.conductor.changes {
                return;
            }
        }
    }

    /// Time passes; the machine is asleep, so the conductor wakes only at the end.
    fn sleep(&mut self, span: Duration) {
        let mut time = self.time.lock().unwrap();
        time.boot = time.boot + span;
        time.wall = &time.wall + SignedDuration::try_from(span).unwrap();
        drop(time);
        self.conductor.wake();
        self.settle();
    }

    /// Time passes from deadline to deadline.
    fn pass(&mut self, span: Duration) {
        let end = self.time.lock().unwrap().boot + span;
        loop {
            let now = self.time.lock().unwrap().clone();
            let deadlines = self.conductor.deadlines();
            let boot = deadlines.boot.map(|at| at.since(now.boot));
            let wall = deadlines.wall.map(|at| {
                Duration::try_from(at.duration_since(now.wall.timestamp())).unwrap_or_default()
            });
            let left = end.since(now.boot);
            match boot.into_iter().chain(wall).min().filter(|next| *next <= left) {
                Some(next) => self.sleep(next),
                None => return self.sleep(left),
            }
        }
    }

    fn set_clock(&mut self, text: &str, zone: &str) {
        self.time.lock().unwrap().wall = at(text, zone);
        self.conductor.wake();
        self.settle();
    }

    /// The numbers of the images asked for since the last look.
    fn asked(&self) -> Vec<usize> {
        let asked = std::mem::take(&mut self.wall.face.lock().unwrap().asked);
        asked.iter().map(|(id, ..)| self.number(*id)).collect()
    }

    fn number(&self, id: i64) -> usize {
        self.images.iter().position(|image| *image == id).unwrap()
    }

    fn mood(&self, mood: Mood) {
        self.wall.face.lock().unwrap().mood = mood;
    }

    fn connect(&mut self, connected: &[&str]) {
        self.wall.face.lock().unwrap().connected = names(connected);
        self.conductor.serve_all();
        self.settle();
    }

    /// Events of the playlists since the last look: their kind and payload.
    fn events(&self) -> Vec<(EventKind, Value)> {
        let frames = self.events.receiver().try_iter();
        let json = |frame: Frame| (frame.kind, serde_json::from_str(&frame.json).unwrap());
        frames.map(json).filter(|(kind, _)| *kind != EventKind::GalleryChanged).collect()
    }

    fn kinds(&self) -> Vec<EventKind> {
        self.events().into_iter().map(|(kind, _)| kind).collect()
    }

    /// The daemon is killed and started again after a while.
    fn restart(&mut self, down: Duration, boot_id: &str) {
        let mut time = self.time.lock().unwrap();
        time.boot = if boot_id == self.conductor.boot_id {
            time.boot + down
        } else {
            Boottime::default() + SECOND
        };
        time.wall = &time.wall + SignedDuration::try_from(down).unwrap();
        drop(time);
        self.conductor = conductor(&self.store, &self.hub, &self.wall, &self.time, boot_id);
        self.conductor.restore();
        self.settle();
    }
}

/// Ten seconds.
fn fast() -> NewConfiguration {
    NewConfiguration { interval: Some(10), ..NewConfiguration::default() }
}

#[test]
fn a_timer_changes_on_the_beat_and_wraps() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[2, 0, 1], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(35 * SECOND);
    assert_eq!(stage.asked(), [2, 0, 1, 2]);
    let events = stage.events();
    assert_eq!(events[0].0, EventKind::PlaylistStarted);
    assert_eq!(events[0].1["monitors"], serde_json::json!(["A", "B"]));
    let indices: Vec<_> = events[1..].iter().map(|(_, event)| &event["image_index"]).collect();
    assert_eq!(indices, [0, 1, 2, 0]);
    assert!(events.iter().all(|(_, event)| event.get("source").is_none()));
    let active = &stage.active()[0];
    assert_eq!((active.current_index, active.total_images), (0, 3));
    let image = |number: usize| Some(stage.images[number]);
    assert_eq!((active.previous_image_id, active.next_image_id), (image(1), image(0)));
    let left = active.next_change_at.unwrap().as_micros() - now_micros(&stage);
    assert_eq!(left, 5_000_000);
}

fn now_micros(stage: &Stage) -> i64 {
    stage.time.lock().unwrap().wall.timestamp().as_microsecond()
}

#[test]
fn a_pause_keeps_the_time_left() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(7 * SECOND);
    stage.act(id, Act::Pause).unwrap();
    stage.act(id, Act::Pause).unwrap();
    stage.pass(1000 * SECOND);
    assert_eq!(stage.active()[0].next_change_at, None);
    stage.restart(100 * SECOND, "boot");
    assert!(stage.active()[0].paused);
    stage.act(id, Act::Resume).unwrap();
    assert_eq!(stage.asked(), [0]);
    stage.pass(2 * SECOND);
    assert_eq!(stage.asked(), NONE);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [1]);
    use EventKind::{PlaylistImageChanged, PlaylistPaused, PlaylistResumed, PlaylistStarted};
    let kinds = stage.kinds();
    let expected = [
        PlaylistStarted,
        PlaylistImageChanged,
        PlaylistPaused,
        PlaylistResumed,
        PlaylistImageChanged,
    ];
    assert_eq!(kinds, expected);
    // A step restarts the interval, also while paused.
    stage.pass(7 * SECOND);
    stage.act(id, Act::Pause).unwrap();
    stage.act(id, Act::Next).unwrap();
    stage.act(id, Act::Resume).unwrap();
    stage.pass(9 * SECOND);
    assert_eq!(stage.asked(), [2]);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [0]);
}

#[test]
fn steps_restart_the_interval() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(9 * SECOND);
    stage.act(id, Act::Previous).unwrap();
    stage.pass(9 * SECOND);
    assert_eq!(stage.asked(), [0, 2]);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [0]);
    let manual = stage.make(PlaylistType::Manual, &[3, 2], &[]);
    stage.start(manual, &[]).unwrap();
    stage.pass(100_000 * SECOND);
    stage.act(manual, Act::Next).unwrap();
    assert_eq!(stage.asked(), [3, 2]);
    assert_eq!(stage.conductor.deadlines(), Deadlines::default());
}

#[test]
fn asleep_over_changes_there_is_one() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.events();
    stage.sleep(3600 * SECOND);
    assert_eq!(stage.asked(), [0, 1]);
    assert_eq!(stage.events()[0].1["source"], "missed_event_recovery");
    stage.pass(9 * SECOND);
    assert_eq!(stage.asked(), NONE);
    stage.pass(SECOND);
    assert_eq!(stage.asked(), [2]);
    assert_eq!(stage.events()[0].1.get("source"), None);
}

#[test]
fn slots_follow_the_clock_however_it_is_set() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::TimeOfDay, &[0, 1, 2], &[360, 780, 1200]);
    stage.start(id, &[]).unwrap();
    assert_eq!(stage.asked(), [0]);
    stage.pass(3600 * SECOND);
    assert_eq!(stage.asked(), [1]);
    stage.events();
    let mut check = |text: &str, zone: &str, number: usize| {
        stage.set_clock(text, zone);
        assert_eq!(stage.asked(), [number], "{text} {zone}");
        let events = stage.events();
        assert_eq!((events.len(), &events[0].1["source"]), (1, &"missed_event_recovery".into()));
    };
    check("2024-06-01T20:30", "Europe/Berlin", 2);
    check("2024-06-01T12:59:50", "Europe/Berlin", 0);
    // Another zone: it is 19:59 there.
    check("2024-06-01T19:59:50", "Asia/Tokyo", 1);
    stage.pass(10 * SECOND);
    assert_eq!(stage.asked(), [2]);
    assert_eq!(stage.events()[0].1.get("source"), None);
    let refused = stage.act(id, Act::Next).unwrap_err();
    assert!(matches!(refused, Failure::NoSteps { .. }));
    let active = &stage.active()[0];
    assert_eq!((active.current_index, active.total_images), (2, 3));
    assert_eq!(active.next_change_at.unwrap().as_micros(), {
        let at: Timestamp = "2024-06-01T21:00:00Z".parse().unwrap();
        at.as_microsecond()
    });
}

#[test]
fn a_week_turns_at_midnight() {
    let mut stage = stage();
    // 2024-06-01 is a Saturday.
    let id = stage.make(PlaylistType::DayOfWeek, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(5 * 86_400 * SECOND);
    assert_eq!(stage.asked(), [2, 0, 1, 2]);
    assert_eq!(stage.act_on_all(Act::Next), 0);
    stage.act(id, Act::Pause).unwrap();
    stage.pass(3 * 86_400 * SECOND);
    assert_eq!(stage.asked(), NONE);
    stage.events();
    stage.act(id, Act::Resume).unwrap();
    assert_eq!(stage.asked(), [0]);
    assert_eq!(stage.events()[1].1.get("source"), None);
}

#[test]
fn random_order_shows_each_once_and_goes_back_the_way_it_came() {
    let mut stage = stage();
    let order = Some(PlaylistOrder::Random);
    let id = stage.make_with(NewConfiguration { order, ..fast() }, &[0, 1, 2, 3], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(30 * SECOND);
    stage.restart(SECOND, "boot");
    let mut first = stage.asked();
    let back: Vec<usize> = (0..3)
        .map(|_| {
            stage.act(id, Act::Previous).unwrap();
            stage.asked()[0]
        })
        .collect();
    assert_eq!(back, [first[2], first[1], first[0]]);
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2, 3]);
    let active = &stage.active()[0];
    let index = active.current_index;
    assert_eq!(active.current_image_id, stage.images[index]);
}

#[test]
fn playlists_share_no_monitor() {
    let mut stage = stage();
    let ids: Vec<i64> =
        (0..3).map(|at| stage.make(PlaylistType::Timer, &[at, at + 1], &[])).collect();
    stage.start(ids[0], &["A"]).unwrap();
    stage.start(ids[1], &["B", "C"]).unwrap();
    assert_eq!(stage.active().len(), 2);
    stage.events();
    stage.start(ids[2], &["C", "A"]).unwrap();
    let events = stage.events();
    let stopped: Vec<_> = events
        .iter()
        .filter(|(kind, _)| *kind == EventKind::PlaylistStopped)
        .map(|(_, event)| event["playlist_id"].as_i64().unwrap())
        .collect();
    assert_eq!(stopped, ids[..2]);
    let active = &stage.active()[0];
    assert_eq!((active.monitors.len(), active.applied_to.len()), (2, 1));
    // Started anew it is not stopped, and stays where it was.
    stage.act(ids[2], Act::Next).unwrap();
    stage.events();
    stage.start(ids[2], &[]).unwrap();
    assert_eq!(stage.kinds(), [EventKind::PlaylistStarted, EventKind::PlaylistImageChanged]);
    assert_eq!(stage.active()[0].current_index, 1);
    assert!(matches!(stage.start(ids[0], &["C", "D"]), Err(Failure::NoMonitor { .. })));
    assert_eq!(stage.active().len(), 1);
    let empty = stage.make(PlaylistType::Timer, &[], &[]);
    assert!(matches!(stage.start(empty, &[]), Err(Failure::Empty { .. })));
    assert!(matches!(stage.act(empty, Act::Stop), Err(Failure::NotRunning { .. })));
    assert!(matches!(stage.act(99, Act::Stop), Err(Failure::Refused(_))));
}

#[test]
fn a_declared_monitor_is_served_when_it_comes() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &["A", "C"]).unwrap();
    stage.events();
    stage.asked();
    stage.connect(&["A", "B", "C"]);
    let asked = std::mem::take(&mut stage.wall.face.lock().unwrap().asked);
    assert_eq!(asked, [(stage.images[0], names(&["C"]), Mode::Individual)]);
    assert_eq!(stage.kinds(), [], "it only joins");
    // What went and comes back has its picture already: the stage restores it.
    stage.connect(&["A"]);
    stage.connect(&["A", "C"]);
    assert_eq!(stage.asked(), NONE);
    // Nobody looks: nothing changes, and it is caught up with once.
    stage.connect(&[]);
    stage.pass(100 * SECOND);
    assert_eq!((stage.asked(), stage.conductor.deadlines()), (vec![], Deadlines::default()));
    stage.connect(&["C"]);
    assert_eq!(stage.asked(), [1]);
    assert_eq!(stage.events()[0].1["source"], "missed_event_recovery");
    stage.connect(&["A", "C"]);
    assert_eq!(stage.asked(), [1]);
}

#[test]
fn an_extended_picture_is_hung_anew_for_another_monitor() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1], &[]);
    let start = |reply| Command::Start { id, monitors: names(&["A", "C"]), extend: true, reply };
    stage.command(start).unwrap();
    stage.connect(&["A", "C"]);
    let asked = std::mem::take(&mut stage.wall.face.lock().unwrap().asked);
    let image = stage.images[0];
    let extend = Mode::Extend;
    assert_eq!(asked, [(image, names(&["A"]), extend), (image, names(&["A", "C"]), extend)]);
}

#[test]
fn what_the_backend_cannot_show_is_skipped() {
    let mut stage = stage();
    stage.mood(Mood::RefusesVideo);
    let id = stage.make(PlaylistType::Timer, &[0, 4, 5, 1], &[]);
    stage.start(id, &[]).unwrap();
    stage.events();
    stage.pass(10 * SECOND);
    assert_eq!(stage.asked(), [0, 4, 1]);
    let events = stage.events();
    let (kind, skipped) = &events[0];
    assert_eq!(*kind, EventKind::PlaylistSkippedIncompatible);
    assert_eq!((&skipped["skipped"], &skipped["applied_index"]), (&2.into(), &3.into()));
    assert_eq!(skipped["backend"], "swaybg");
    let items = skipped["skipped_items"].as_array().unwrap();
    assert_eq!(items[1]["slot_index"], 2);
    assert_eq!(events[1].1["image_index"], 3);
    // Backwards past them, too.
    stage.act(id, Act::Previous).unwrap();
    assert_eq!(stage.asked(), [5, 0]);
    assert_eq!(stage.active()[0].current_index, 0);
}

#[test]
fn random_order_skips_without_losing_its_way() {
    let mut stage = stage();
    stage.mood(Mood::RefusesVideo);
    let order = Some(PlaylistOrder::Random);
    let id = stage.make_with(NewConfiguration { order, ..fast() }, &[4, 0, 5, 1], &[]);
    stage.start(id, &[]).unwrap();
    for _ in 0..20 {
        stage.act(id, Act::Next).unwrap();
        assert!(stage.active()[0].current_index % 2 == 1);
    }
}

#[test]
fn nothing_to_show_is_told_once_and_tried_again() {
    let mut stage = stage();
    stage.mood(Mood::RefusesAll);
    let id = stage.make(PlaylistType::Timer, &[4, 5], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(30 * SECOND);
    let events = stage.events();
    assert_eq!(events.len(), 2, "{events:?}");
    let (kind, event) = &events[1];
    assert_eq!(*kind, EventKind::PlaylistNoCompatibleItem);
    assert_eq!((&event["backend"], &event["total_images"]), (&"swaybg".into(), &2.into()));
    assert_eq!(event.get("media_type"), None);
    stage.asked();
    stage.mood(Mood::Hangs);
    let hub = stage.hub.clone();
    let news = hub.subscribe(NEWS.iter().copied().collect(), || ());
    hub.publish(&Event::ConfigChanged { sections: names(&["backend"]), source: None });
    stage.conductor.heed(&news.receiver().recv().unwrap());
    stage.settle();
    assert_eq!(stage.asked().len(), 1);
    assert_eq!(stage.kinds(), [EventKind::ConfigChanged, EventKind::PlaylistImageChanged]);

    // Without a backend, and where each kind has its own.
    stage.wall.face.lock().unwrap().fixed = false;
    stage.mood(Mood::NoBackend);
    stage.act(id, Act::Next).unwrap();
    let events = stage.events();
    assert_eq!(events[0].1["media_type"], "video");
    assert_eq!(events[0].1.get("backend"), None);
    // The playlist changes: tried again. Its next time as well.
    stage.asked();
    stage.mood(Mood::RefusesVideo);
    let images = Some(stage.items(&[4, 0], &[]));
    let change = PlaylistChange { images, ..PlaylistChange::default() };
    stage.command(|reply| Command::Change(id, change, reply)).unwrap();
    assert_eq!(stage.asked(), [4, 0]);
}

#[test]
fn an_edit_keeps_the_place_by_image() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.pass(15 * SECOND);
    stage.asked();
    let edit = |stage: &mut Stage, numbers: Option<&[usize]>, configuration| {
        let images = numbers.map(|numbers| stage.items(numbers, &[]));
        let change = PlaylistChange { name: None, configuration, images };
        stage.command(|reply| Command::Change(id, change, reply)).unwrap()
    };
    let playlist = edit(&mut stage, Some(&[3, 2, 1]), NewConfiguration::default());
    assert_eq!(playlist.playback.unwrap().current_index, 2);
    assert_eq!((stage.asked(), stage.active()[0].current_index), (vec![], 2));
    // The interval counts from the last change, which was five seconds ago.
    let interval = |seconds| NewConfiguration { interval: Some(seconds), ..Default::default() };
    edit(&mut stage, None, interval(8));
    stage.pass(3 * SECOND);
    assert_eq!(stage.asked(), [3]);
    stage.pass(5 * SECOND);
    stage.events();
    edit(&mut stage, None, interval(2));
    assert_eq!(stage.asked(), [2]);
    assert_eq!(stage.events()[0].1.get("source"), None, "an edit's change was not missed");
    // The image is taken out under it.
    edit(&mut stage, Some(&[3, 1]), interval(10));
    assert_eq!(stage.asked(), [1]);
    // Of another type.
    let kind = Some(PlaylistType::DayOfWeek);
    edit(&mut stage, Some(&[3, 1, 0]), NewConfiguration { kind, ..Default::default() });
    assert_eq!(stage.asked(), [0]);
    stage.events();
    edit(&mut stage, Some(&[]), NewConfiguration::default());
    assert_eq!(stage.kinds(), [EventKind::PlaylistStopped]);
    assert!(stage.active().is_empty());
}

#[test]
fn an_edit_that_leaves_the_slot_leaves_the_picture() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::TimeOfDay, &[0, 1], &[360, 1200]);
    stage.start(id, &[]).unwrap();
    stage.asked();
    let images = Some(stage.items(&[2, 0, 1], &[300, 400, 1200]));
    let change = PlaylistChange { images, ..PlaylistChange::default() };
    stage.command(|reply| Command::Change(id, change, reply)).unwrap();
    assert_eq!((stage.asked(), stage.active()[0].current_index), (vec![], 1));
    let images = Some(stage.items(&[2, 0, 1], &[500, 400, 1200]));
    let change = PlaylistChange { images, ..PlaylistChange::default() };
    stage.command(|reply| Command::Change(id, change, reply)).unwrap();
    assert_eq!(stage.asked(), [2]);
}

#[test]
fn a_deleted_image_leaves_every_playlist() {
    let mut stage = stage();
    let one = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    let two = stage.make(PlaylistType::Timer, &[1], &[]);
    stage.start(one, &["A"]).unwrap();
    stage.start(two, &["B"]).unwrap();
    stage.pass(10 * SECOND);
    stage.asked();
    stage.events();
    let hub = stage.hub.clone();
    let news = hub.subscribe(NEWS.iter().copied().collect(), || ());
    stage.store.write(|c| images::delete(c, &stage.images[1..2])).unwrap();
    hub.publish(&Event::GalleryChanged { domain: crate::wire::GalleryDomain::Images });
    stage.conductor.heed(&news.receiver().recv().unwrap());
    stage.settle();
    assert_eq!(stage.asked(), [2]);
    use EventKind::{PlaylistImageChanged, PlaylistStopped};
    assert_eq!(stage.kinds(), [PlaylistStopped, PlaylistImageChanged]);
    // One that nobody has told of is found gone when it is its turn.
    stage.store.write(|c| images::delete(c, &stage.images[..1])).unwrap();
    stage.pass(10 * SECOND);
    assert_eq!(stage.active()[0].total_images, 1);
    assert_eq!(stage.active()[0].current_image_id, stage.images[2]);
}

#[test]
fn bulk_acts_concern_all_that_run() {
    let mut stage = stage();
    let one = stage.make(PlaylistType::Timer, &[0, 1], &[]);
    let two = stage.make(PlaylistType::Manual, &[2, 3], &[]);
    assert_eq!(stage.act_on_all(Act::Stop), 0);
    stage.start(one, &["A"]).unwrap();
    stage.start(two, &["B"]).unwrap();
    stage.events();
    stage.asked();
    assert_eq!(stage.act_on_all(Act::Next), 2);
    assert_eq!(
        (stage.asked(), stage.kinds()),
        (vec![1, 3], vec![EventKind::PlaylistImageChanged; 2])
    );
    assert_eq!(stage.act_on_all(Act::Previous), 2);
    assert_eq!((stage.asked(), stage.events().len()), (vec![0, 2], 2));
    stage.act(one, Act::Pause).unwrap();
    assert_eq!(stage.act_on_all(Act::Pause), 1);
    assert_eq!(stage.events()[1].1["action"], "pause_all");
    assert_eq!(stage.act_on_all(Act::Resume), 2);
    assert_eq!(stage.events()[0].1["resumed"], 2);
    assert_eq!(stage.act_on_all(Act::Stop), 2);
    let events = stage.events();
    assert_eq!((&events[0].1["action"], &events[0].1["stopped"]), (&"stop_all".into(), &2.into()));
    assert!(stage.active().is_empty());
}

#[test]
fn it_starts_where_it_last_was_or_at_the_first() {
    let mut stage = stage();
    let plain = stage.make(PlaylistType::Manual, &[0, 1, 2], &[]);
    let always_start_on_first_image = Some(true);
    let kind = Some(PlaylistType::Manual);
    let first = NewConfiguration { always_start_on_first_image, kind, ..fast() };
    let first = stage.make_with(first, &[0, 1, 2], &[]);
    for (id, expected) in [(plain, 1), (first, 0)] {
        stage.start(id, &[]).unwrap();
        stage.act(id, Act::Next).unwrap();
        stage.act(id, Act::Stop).unwrap();
        stage.restart(SECOND, "boot");
        stage.start(id, &[]).unwrap();
        assert_eq!(stage.active()[0].current_index, expected);
    }
}

#[test]
fn restarts_keep_place_and_beat() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &["A", "D"]).unwrap();
    stage.pass(14 * SECOND);
    stage.asked();
    stage.events();
    stage.restart(SECOND, "boot");
    assert_eq!(stage.asked(), NONE, "it hangs already");
    stage.pass(5 * SECOND);
    assert_eq!(stage.asked(), [2]);
    assert_eq!(stage.active()[0].monitors, names(&["A", "D"]));
    // The machine is restarted: boot time begins anew, what is left is told by the wall clock.
    stage.pass(2 * SECOND);
    stage.restart(5 * SECOND, "another");
    assert_eq!(stage.asked(), NONE);
    stage.pass(3 * SECOND);
    assert_eq!(stage.asked(), [0]);
    stage.events();
    stage.restart(3600 * SECOND, "third");
    assert_eq!(stage.asked(), [1]);
    assert_eq!(stage.events()[0].1["source"], "missed_event_recovery");
}

/// What was left when it was held counts, not how long that was.
#[test]
fn a_restart_of_the_machine_after_a_pause_keeps_the_time_left() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &["A"]).unwrap();
    stage.pass(4 * SECOND);
    stage.act(id, Act::Pause).unwrap();
    stage.pass(3600 * SECOND);
    stage.act(id, Act::Resume).unwrap();
    stage.asked();
    stage.restart(2 * SECOND, "another");
    assert_eq!(stage.asked(), NONE);
    stage.pass(4 * SECOND);
    assert_eq!(stage.asked(), [1]);
}

#[test]
fn killed_before_a_picture_is_up_it_is_hung_again() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.start(id, &[]).unwrap();
    stage.mood(Mood::Silent);
    stage.pass(10 * SECOND);
    stage.mood(Mood::Hangs);
    stage.asked();
    stage.restart(SECOND, "boot");
    assert_eq!(stage.asked(), [1]);
    assert_eq!(stage.active()[0].current_index, 1);
}

#[test]
fn a_wall_that_hangs_holds_nobody_up() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.mood(Mood::Silent);
    stage.start(id, &[]).unwrap();
    stage.pass(20 * SECOND);
    assert_eq!(stage.asked(), [0, 1, 2]);
    stage.act(id, Act::Next).unwrap();
    stage.events();
    // The answers come late and out of order: events tell what was hung, the place stays.
    stage.mood(Mood::Hangs);
    let held = std::mem::take(&mut stage.wall.face.lock().unwrap().held);
    for (request, reply) in held.into_iter().rev() {
        stage.wall.answer(request, reply);
    }
    stage.settle();
    let indices: Vec<_> =
        stage.events().iter().map(|(_, event)| event["image_index"].clone()).collect();
    assert_eq!(indices, [0, 2, 1, 0]);
    assert_eq!(stage.active()[0].current_index, 0);
    assert_eq!(stage.asked(), [0]);
}

#[test]
fn a_wallpaper_set_by_hand_stays_until_the_next_change() {
    let mut stage = stage();
    let id = stage.make(PlaylistType::Timer, &[0, 1, 2], &[]);
    stage.mood(Mood::Superseded);
    stage.start(id, &[]).unwrap();
    assert_eq!(stage.kinds(), [EventKind::PlaylistStarted]);
    stage.connect(&["A", "B"]);
    assert_eq!(stage.asked(), [0]);
    stage.mood(Mood::Hangs);
    stage.pass(10 * SECOND);
    assert_eq!(stage.asked(), [1]);
}
