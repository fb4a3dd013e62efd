//! Tests of the player in simulated time, with wallpapers that behave as the test says.

mod any_order;
mod appearance;
mod displaced;
mod dynamic;
mod each;
mod lists;
mod monitors;
mod pending;
mod replaced;
mod stub;
mod time;

use super::edits::NEWS;
use super::wishes::Report;
use super::*;
use crate::clock::{Boottime, Deadlines};
use crate::events::{EventFilter, Message, Subscription};
use crate::random::seed;
use crate::store::images::{self, NewImage};
use crate::wallpaper;
use crate::wire::{
    EventKind, Format, ListChange, Mode, NewConfiguration, NewPlaylistItem, PauseReason,
    PlaylistOrder, PlaylistType, PutPower, Tone,
};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stub::{Behaviour, StubState, StubWallpapers};

const NONE: [usize; 0] = [];
/// Events besides those of playlists, which `Fixture::events` skips.
const OTHERS: [EventKind; 2] = [EventKind::GalleryChanged, EventKind::AppearanceChanged];
const SECOND: Duration = Duration::from_secs(1);

struct Fixture {
    player: Player,
    reports: Receiver<Report>,
    wallpapers: StubWallpapers,
    time: Arc<Mutex<ClockReading>>,
    events: Subscription,
    bus: EventBus,
    store: Store,
    _directory: tempfile::TempDir,
    images: Vec<i64>,
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn at(text: &str, zone: &str) -> jiff::Zoned {
    TimeZone::get(zone)
        .unwrap()
        .to_zoned(text.parse().unwrap())
        .unwrap()
}

/// Numbers below 4 are pictures, the others videos.
fn add_image(store: &Store, number: u8) -> i64 {
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
        in_place: false,
        web: None,
    };
    store.write(|c| images::insert(c, &image)).unwrap()
}

/// Images 0 to 5, the last two of them videos, and monitors A and B.
fn fixture() -> Fixture {
    let (directory, store) = crate::store::tests::scratch();
    let images = (0..6).map(|number| add_image(&store, number)).collect();
    let bus = EventBus::new();
    let state = StubState {
        behaviour: Behaviour::Shows,
        connected: names(&["A", "B"]),
        identities: BTreeMap::new(),
        fixed: true,
        asked: Vec::new(),
        dealt: Vec::new(),
        held: Vec::new(),
        screen: BTreeMap::new(),
        rests: Vec::new(),
    };
    let wallpapers = StubWallpapers {
        state: Arc::new(Mutex::new(state)),
        store: store.clone(),
    };
    let boot = Boottime::default() + 1000 * SECOND;
    let wall_time = at("2024-06-01T12:00", "Europe/Berlin");
    let time = Arc::new(Mutex::new(ClockReading {
        boot,
        wall: wall_time,
        location: None,
        tone: Tone::Light,
    }));
    let events = bus.subscribe(EventFilter::ALL, || ());
    let (player, reports) = player(&store, &bus, &wallpapers, &time, "boot");
    Fixture {
        player,
        reports,
        wallpapers,
        time,
        events,
        bus,
        store,
        _directory: directory,
        images,
    }
}

fn player(
    store: &Store,
    bus: &EventBus,
    wallpapers: &StubWallpapers,
    time: &Arc<Mutex<ClockReading>>,
    boot_id: &str,
) -> (Player, Receiver<Report>) {
    let time = Arc::clone(time);
    let now = Box::new(move || time.lock().unwrap().clone());
    let store = store.clone();
    let bus = bus.clone();
    let wallpapers = Box::new(wallpapers.clone());
    Player::new(store, bus, wallpapers, now, boot_id.to_owned())
}

impl Fixture {
    /// Makes a playlist of the images with these numbers; `times` are their minutes, if any.
    fn make(&self, kind: PlaylistType, numbers: &[usize], times: &[i64]) -> i64 {
        self.make_with(
            NewConfiguration {
                kind: Some(kind),
                ..fast()
            },
            numbers,
            times,
        )
    }

    fn make_with(&self, configuration: NewConfiguration, numbers: &[usize], times: &[i64]) -> i64 {
        let change = PlaylistChange {
            name: Some(format!("list {}", seed())),
            configuration,
            images: Some(self.items(numbers, times)),
            source: None,
            located: false,
        };
        self.store.write(|c| playlists::insert(c, &change)).unwrap()
    }

    fn items(&self, numbers: &[usize], times: &[i64]) -> ListChange<NewPlaylistItem, i64> {
        let item = |(at, &number): (usize, &usize)| NewPlaylistItem {
            image_id: Some(self.images[number]),
            color: None,
            media_type: None,
            time: times.get(at).copied(),
            at: None,
            when: None,
        };
        ListChange::All(numbers.iter().enumerate().map(item).collect())
    }

    fn edit(&mut self, id: i64, numbers: Option<&[usize]>, configuration: NewConfiguration) {
        let images = numbers.map(|numbers| self.items(numbers, &[]));
        let change = PlaylistChange {
            configuration,
            images,
            ..PlaylistChange::default()
        };
        self.command(|player, reply| reply(player.change(id, &change)))
            .unwrap();
    }

    fn start(&mut self, id: i64, monitors: &[&str]) -> Result<(), Error> {
        self.command(|player: &mut Player, reply| {
            player.begin(
                id,
                Aim::Start {
                    monitors: names(monitors),
                    mode: Mode::Individual,
                },
                reply,
            )
        })
        .map(drop)
    }

    fn act(&mut self, id: i64, act: Action) -> Result<(), Error> {
        self.command(|player, reply| player.act(id, act, &[], reply))
            .map(drop)
    }

    fn act_on_all(&mut self, act: Action) -> usize {
        self.command(|player, reply| player.act_on_all(act, &[], reply))
            .unwrap()
            .count
    }

    fn active(&mut self) -> Vec<ActivePlaylist> {
        self.command(|player, reply| reply(Ok(player.active())))
            .unwrap()
    }

    fn command<T: Send + 'static>(
        &mut self,
        command: impl FnOnce(&mut Player, Reply<T>),
    ) -> Result<T, Error> {
        self.begin(command).try_recv().expect("an answer")
    }

    /// The answer comes once the wallpapers have answered.
    fn begin<T: Send + 'static>(
        &mut self,
        command: impl FnOnce(&mut Player, Reply<T>),
    ) -> Receiver<Result<T, Error>> {
        let (sender, answer) = bounded(1);
        let reply = Box::new(move |result| drop(sender.try_send(result)));
        command(&mut self.player, reply);
        self.player.run_all_due();
        self.settle();
        answer
    }

    /// Makes the wallpapers answer the requests that they have held, the oldest first.
    fn release(&mut self, behaviour: Behaviour) {
        self.behaviour(behaviour);
        let held = std::mem::take(&mut self.wallpapers.state.lock().unwrap().held);
        for (request, reply) in held {
            self.wallpapers.answer(request, reply);
        }
        self.settle();
    }

    /// The same for the oldest request only.
    fn release_one(&mut self, behaviour: Behaviour) {
        self.behaviour(behaviour);
        let (request, reply) = self.wallpapers.state.lock().unwrap().held.remove(0);
        self.wallpapers.answer(request, reply);
        self.settle();
    }

    /// The same for one of the requests that are being shown; the others still wait.
    fn release_any(&mut self, at: usize, behaviour: Behaviour) {
        let Some((request, reply)) = self.wallpapers.state.lock().unwrap().take_shown(at) else {
            return;
        };
        self.wallpapers.answer_as(behaviour, request, reply);
        self.settle();
    }

    /// Runs the player until nothing follows any more.
    fn settle(&mut self) {
        loop {
            let before = self.player.wishes.last;
            while let Ok(report) = self.reports.try_recv() {
                self.player.on_report(report);
            }
            self.player.run_all_due();
            if self.reports.is_empty() && before == self.player.wishes.last {
                return;
            }
        }
    }

    /// Lets time pass while the machine is asleep: the player wakes only at the end.
    fn sleep(&mut self, span: Duration) {
        let mut time = self.time.lock().unwrap();
        time.boot = time.boot + span;
        time.wall = &time.wall + SignedDuration::try_from(span).unwrap();
        drop(time);
        self.player.run_all_due();
        self.settle();
    }

    /// Lets time pass from deadline to deadline.
    fn pass(&mut self, span: Duration) {
        let end = self.time.lock().unwrap().boot + span;
        loop {
            let now = self.time.lock().unwrap().clone();
            let deadlines = self.player.deadlines();
            let boot = deadlines.boot.map(|at| at.since(now.boot));
            let wall = deadlines.wall.map(|at| {
                Duration::try_from(at.duration_since(now.wall.timestamp())).unwrap_or_default()
            });
            let left = end.since(now.boot);
            match boot
                .into_iter()
                .chain(wall)
                .min()
                .filter(|next| *next <= left)
            {
                Some(next) => self.sleep(next),
                None => return self.sleep(left),
            }
        }
    }

    fn set_clock(&mut self, text: &str, zone: &str) {
        self.time.lock().unwrap().wall = at(text, zone);
        self.player.run_all_due();
        self.settle();
    }

    /// The numbers of the images requested since the last call.
    fn asked(&self) -> Vec<usize> {
        let asked = std::mem::take(&mut self.wallpapers.state.lock().unwrap().asked);
        asked.iter().map(|(id, ..)| self.number(*id)).collect()
    }

    fn number(&self, id: i64) -> usize {
        self.images.iter().position(|image| *image == id).unwrap()
    }

    fn behaviour(&self, behaviour: Behaviour) {
        self.wallpapers.state.lock().unwrap().behaviour = behaviour;
    }

    fn connect(&mut self, connected: &[&str]) {
        self.wallpapers.state.lock().unwrap().connected = names(connected);
        self.player.fill_all_monitors();
        self.settle();
    }

    /// Events of the playlists since the last call: their kinds and payloads.
    fn events(&self) -> Vec<(EventKind, Value)> {
        let frames = self.events.receiver().try_iter();
        let json = |message: Message| (message.kind, serde_json::from_str(&message.json).unwrap());
        frames
            .map(json)
            .filter(|(kind, _)| !OTHERS.contains(kind))
            .collect()
    }

    fn kinds(&self) -> Vec<EventKind> {
        self.events().into_iter().map(|(kind, _)| kind).collect()
    }

    /// Kills the daemon and starts it again after `down`.
    fn restart(&mut self, down: Duration, boot_id: &str) {
        let mut time = self.time.lock().unwrap();
        time.boot = if boot_id == self.player.boot_id {
            time.boot + down
        } else {
            Boottime::default() + SECOND
        };
        time.wall = &time.wall + SignedDuration::try_from(down).unwrap();
        drop(time);
        (self.player, self.reports) = player(
            &self.store,
            &self.bus,
            &self.wallpapers,
            &self.time,
            boot_id,
        );
        self.player.restore();
        self.settle();
    }
}

/// An interval of ten seconds.
fn fast() -> NewConfiguration {
    NewConfiguration {
        interval: Some(10),
        ..NewConfiguration::default()
    }
}
