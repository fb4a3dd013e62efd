//! The reconciler over backends that do as they are told to, without its thread: what becomes of
//! orders that fail, of outputs that change meanwhile and of settings.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::backends::{self, Backend, Kind};
use crate::compositor::{Output, Outputs};
use crate::config::BackendName::{Awww, Mpvpaper, Swaybg};
use crate::config::Config;
use crate::events::{EventFilter, Subscription};
use crate::paths::Env;
use crate::sys::Cancel;
use crate::wallpaper::plan::tests::placement;
use crate::wallpaper::status::Changes;
use crate::wallpaper::tests::{Room, outputs, reply, request};
use crate::wallpaper::worker::News;
use crate::wire::{EventKind, Format};

const PATIENCE: Duration = Duration::from_secs(30);

/// What the backends are to answer, and what they were told.
#[derive(Default)]
struct Script {
    /// For the next orders of these workers; all others succeed.
    fails: Vec<(WorkerKey, backends::Error)>,
    unseen: Vec<String>,
    told: Vec<String>,
}

impl Script {
    fn carry_out(&mut self, key: &WorkerKey, what: String) -> Result<(), backends::Error> {
        self.told.push(format!("{key}:{what}"));
        let at = self.fails.iter().position(|(of, _)| of == key);
        at.map_or(Ok(()), |at| Err(self.fails.remove(at).1))
    }
}

struct Told {
    key: WorkerKey,
    script: Arc<Mutex<Script>>,
}

impl Backend for Told {
    fn show(&mut self, placements: &[Placement], _: &Cancel) -> Result<(), backends::Error> {
        let one = |one: &Placement| format!(" {}={}", one.output.name, one.image_id);
        self.script.lock().unwrap().carry_out(&self.key, placements.iter().map(one).collect())
    }

    fn unseen(&mut self) -> Vec<String> {
        let script = self.script.lock().unwrap();
        let is_film = self.key.backend == Mpvpaper;
        if is_film { script.unseen.clone() } else { Vec::new() }
    }

    fn clear(&mut self) -> Result<(), backends::Error> {
        self.script.lock().unwrap().carry_out(&self.key, " -".to_owned())
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}

struct Desk {
    room: Room,
    reconciler: Reconciler,
    script: Arc<Mutex<Script>>,
    events: Subscription,
}

impl Desk {
    fn new(names: &[&str], programs: &[&str], settings: impl Fn(&mut Config)) -> Self {
        let room = Room::with(outputs(names), programs, |config| {
            config.builtin.enabled = false;
            settings(config);
        });
        let (spawner, _) = Spawner::new();
        let sources = (room.store.clone(), room.bus.clone(), desktop::Handle::default());
        let status = SharedStatus::default();
        let backends = room.backends.clone();
        let mut reconciler = Reconciler::new(spawner.clone(), sources, backends.clone(), status);
        let script = Arc::new(Mutex::new(Script::default()));
        let of = Arc::clone(&script);
        let build = move |key: &WorkerKey, _| -> Box<dyn Backend> {
            Box::new(Told { key: key.clone(), script: Arc::clone(&of) })
        };
        (reconciler.workers, reconciler.reports) =
            Workers::with(spawner, backends, Box::new(build));
        let events = room.bus.subscribe(EventFilter::ALL, || ());
        Self { room, reconciler, script, events }
    }

    fn film(&self, name: &str) -> i64 {
        self.room.add_as(name, |image| image.format = Format::Mp4)
    }

    /// As a client asks; the answer once nothing is in progress any more.
    fn set(&mut self, image: i64, monitors: &[&str]) -> Result<Applied, Error> {
        let answer = self.ask(image, monitors);
        self.settle();
        answer.try_recv().expect("an answer")
    }

    fn ask(&mut self, image: i64, monitors: &[&str]) -> Receiver<Result<Applied, Error>> {
        let (reply, answer) = reply();
        self.reconciler.on_command(Command::Set(request(Ask::Image(image), monitors), reply));
        answer
    }

    fn activate(&mut self, name: &str) -> Result<Activated, Error> {
        let (reply, answer) = reply();
        self.reconciler.on_command(Command::Activate(name.to_owned(), reply));
        self.settle();
        answer.try_recv().expect("an answer")
    }

    fn reconcile(&mut self) {
        self.reconciler.reconcile();
        self.settle();
    }

    fn settle(&mut self) {
        while !self.reconciler.jobs.is_empty() {
            let report = self.reconciler.reports.recv_timeout(PATIENCE).expect("a report");
            self.reconciler.on_report(report);
        }
    }

    fn fail(&self, backend: BackendName, output: &str, error: backends::Error) {
        self.script.lock().unwrap().fails.push((WorkerKey::of(backend, output), error));
    }

    /// What the backends were told since this was last asked, sorted.
    fn told(&self) -> Vec<String> {
        let mut told = std::mem::take(&mut self.script.lock().unwrap().told);
        told.sort();
        told
    }

    fn heard(&self) -> Vec<EventKind> {
        let all = self.events.receiver().try_iter().map(|message| message.kind);
        all.filter(|kind| *kind != EventKind::GalleryChanged).collect()
    }

    fn connect(&mut self, outputs: Vec<Output>) {
        let session = self.room.backends.outputs.session().unwrap();
        self.reconciler.backends.outputs = Outputs::fixed(session, outputs);
    }
}

fn away() -> backends::Error {
    backends::Error::Unavailable("on purpose".to_owned())
}

fn refused() -> backends::Error {
    backends::Error::Refused("on purpose".to_owned())
}

fn moved(name: &str) -> Output {
    Output { x: 7, ..Output::plain(name) }
}

#[test]
fn outage_is_told_when_it_begins_and_when_nobody_tries_any_more() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.room.set(request(Ask::Image(id), &[]));
    let both = [EventKind::WallpaperRestoreFailed, EventKind::BackendUnavailable];
    for attempt in 0..6 {
        desk.fail(Swaybg, "A", away());
        desk.reconcile();
        assert_eq!(desk.told(), [format!("swaybg: A={id}")]);
        let expected = match attempt {
            0 => &both[..],
            5 => &both[1..],
            _ => &[],
        };
        assert_eq!(desk.heard(), expected, "attempt {attempt}");
        // Before its time it is not tried.
        desk.reconcile();
        assert_eq!(desk.told(), [""; 0]);
        let at = desk.reconciler.backoffs.next_retry();
        assert_eq!(at.is_some(), attempt < 5);
        desk.reconciler.backoffs.wake(at.unwrap_or_else(Instant::now));
    }
    desk.set(id, &["A"]).unwrap();
    assert_eq!(desk.heard(), [EventKind::WallpaperChanged]);
}

#[test]
fn backend_that_refuses_a_picture_is_not_away() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.room.set(request(Ask::Image(id), &[]));
    desk.fail(Swaybg, "A", refused());
    desk.reconcile();
    assert_eq!(desk.heard(), [EventKind::WallpaperRestoreFailed]);
    assert!(desk.reconciler.backoffs.next_retry().is_none());
}

#[test]
fn what_fails_as_outputs_change_is_planned_anew() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.fail(Swaybg, "A", refused());
    let answer = desk.ask(id, &["A"]);
    desk.connect(vec![moved("A")]);
    desk.settle();
    assert!(answer.try_recv().unwrap().is_ok());
    assert_eq!(desk.told().len(), 2);
    assert_eq!(desk.reconciler.current[&WorkerKey::of(Swaybg, "A")][0].output.x, 7);
    // What nobody has asked for likewise, and nobody hears of it.
    desk.heard();
    desk.connect(vec![moved("A"), Output::plain("B")]);
    desk.room.set(request(Ask::Image(id), &["A", "B"]));
    desk.fail(Swaybg, "A", away());
    desk.reconciler.reconcile();
    desk.connect(vec![moved("A"), moved("B")]);
    desk.settle();
    assert_eq!(desk.told().len(), 2);
    assert_eq!(desk.heard(), [EventKind::WallpaperChanged]);
    // One that is what it was is told of.
    desk.fail(Swaybg, "A", refused());
    assert!(matches!(desk.set(id, &["A"]), Err(Error::Backend { backend: Swaybg, .. })));
}

#[test]
fn request_for_a_monitor_that_goes_meanwhile_fails() {
    let mut desk = Desk::new(&["A", "B"], &["mpvpaper"], |_| ());
    let film = desk.film("film");
    desk.fail(Mpvpaper, "B", away());
    let answer = desk.ask(film, &["B"]);
    desk.connect(outputs(&["A"]));
    desk.settle();
    let answer = answer.try_recv().unwrap();
    assert!(matches!(answer, Err(Error::Backend { backend: Mpvpaper, .. })));
    assert_eq!(desk.heard(), [EventKind::WallpaperApplyFailed]);
}

#[test]
fn picture_that_comes_up_on_some_monitors_only_is_taken_back() {
    let mut desk = Desk::new(&["A", "B"], &["mpvpaper"], |_| ());
    let [one, two] = ["one", "two"].map(|name| desk.film(name));
    desk.set(one, &[]).unwrap();
    desk.told();
    desk.fail(Mpvpaper, "B", refused());
    assert!(desk.set(two, &[]).is_err());
    let told = desk.told();
    assert!(told.contains(&format!("mpvpaper on A: A={one}")), "{told:?}");
    let shown = |name: &str| desk.reconciler.current[&WorkerKey::of(Mpvpaper, name)][0].image_id;
    assert_eq!([shown("A"), shown("B")], [one, one]);
}

#[test]
fn activation_fails_where_the_new_backend_does_and_not_where_the_old_one_does() {
    let mut desk = Desk::new(&["A"], &["awww", "awww-daemon", "swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.set(id, &[]).unwrap();
    assert_eq!(desk.told(), [format!("awww: A={id}")]);
    desk.fail(Swaybg, "A", refused());
    assert!(matches!(desk.activate("swaybg"), Err(Error::Backend { backend: Swaybg, .. })));
    assert!(desk.reconciler.activated.is_none());
    assert!(desk.reconciler.current.contains_key(&WorkerKey::of(Awww, "A")));
    desk.fail(Awww, "A", refused());
    assert_eq!(desk.activate("swaybg").unwrap().backend, Swaybg);
    assert!(desk.reconciler.current.contains_key(&WorkerKey::of(Swaybg, "A")));
}

#[test]
fn still_stays_until_the_film_over_it_is_seen_on_each_monitor() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg", "mpvpaper"], |_| ());
    let (still, film) = (desk.room.add("still"), desk.film("film"));
    desk.set(still, &[]).unwrap();
    desk.told();
    desk.script.lock().unwrap().unseen = vec!["A".to_owned()];
    desk.set(film, &["A"]).unwrap();
    assert_eq!(desk.told(), [format!("mpvpaper on A: A={film}")]);
    let seen = |desk: &mut Desk, worker, unseen: &[&str]| {
        let news = News::Unseen(unseen.iter().map(ToString::to_string).collect());
        let key = WorkerKey::of(Mpvpaper, "A");
        desk.reconciler.on_report(Report { key, worker, news });
        desk.settle();
        desk.told()
    };
    assert_eq!(seen(&mut desk, 2, &["A"]), [""; 0]);
    // Of one that was replaced nothing is believed.
    assert_eq!(seen(&mut desk, 1, &[]), [""; 0]);
    assert_eq!(seen(&mut desk, 2, &[]), [format!("swaybg: B={still}")]);
}

#[test]
fn backend_without_memory_is_tried_again_where_no_other_can_show_it() {
    let mut desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let id = desk.room.add("one");
    desk.fail(Swaybg, "A", backends::Error::NoMemory("on purpose".to_owned()));
    assert!(matches!(desk.set(id, &[]), Err(Error::Backend { backend: Swaybg, .. })));
    assert_eq!(desk.set(id, &[]).unwrap().backend, Swaybg);
    // The same where nobody asks: it is told of as any other failure.
    desk.heard();
    desk.fail(Swaybg, "A", backends::Error::NoMemory("on purpose".to_owned()));
    desk.reconciler.stale.insert(WorkerKey::of(Swaybg, "A"));
    desk.reconcile();
    assert_eq!(desk.heard(), [EventKind::WallpaperRestoreFailed]);
}

#[test]
fn random_request_passes_over_so_many_files_that_are_gone() {
    let desk = Desk::new(&["A"], &["swaybg"], |_| ());
    let gone: Vec<i64> = (0..PICKS + 2).map(|at| desk.room.add(&format!("gone{at}"))).collect();
    for at in 0..gone.len() {
        std::fs::remove_file(desk.room.path(&format!("gone{at}"))).unwrap();
    }
    // Its disk is there.
    std::fs::write(desk.room.path("other"), "").unwrap();
    let left = || desk.room.store.read(store::images::ids).unwrap().len();
    let feasible = |ask| desk.reconciler.feasible(&request(ask, &[])).map(|(found, _)| found);
    assert!(matches!(feasible(Ask::Image(gone[0])), Err(Error::FileGone { .. })));
    assert_eq!(left(), PICKS + 2, "one that is named is no random one");
    assert!(matches!(feasible(Ask::Random), Err(Error::FileGone { .. })));
    assert_eq!(left(), 2);
    let there = desk.room.add("there");
    assert_eq!(feasible(Ask::Random).unwrap().applied.image_id, there);
}

#[test]
fn processes_are_looked_at_while_a_film_plays_and_there_is_a_limit() {
    let every = |text: &str| memory::every(&Env::from([("MURALD_MEMORY_LOOKS", text)]));
    assert_eq!(every("250"), Some(Duration::from_millis(250)));
    assert_eq!(every("soon"), None);
    let looks = |limit, kind, rests| {
        let limited = |config: &mut Config| config.power.max_child_memory_mb = limit;
        let mut desk = Desk::new(&["A"], &["mpvpaper"], limited);
        let shown = Placement { kind, ..placement("A", 1) };
        desk.reconciler.current.insert(WorkerKey::of(Mpvpaper, "A"), vec![shown]);
        desk.reconciler.rest.set(rests);
        desk.reconciler.next_look().is_some()
    };
    assert!(looks(1, Kind::Video, false) && looks(1, Kind::Web, false));
    assert!(!looks(0, Kind::Video, false) && !looks(1, Kind::StaticImage, false));
    assert!(!looks(1, Kind::Video, true));
}

#[test]
fn change_of_settings_shows_again_what_it_is_about() {
    let mut desk = Desk::new(&["A", "B"], &["swaybg", "mpvpaper"], |_| ());
    let (still, film) = (desk.room.add("still"), desk.film("film"));
    desk.set(still, &["A"]).unwrap();
    desk.set(film, &["B"]).unwrap();
    desk.told();
    let mut changed = |changes: Changes| {
        desk.reconciler.status.note(changes);
        desk.reconciler.on_settings();
        desk.settle();
        desk.told()
    };
    let of = |backends: &[BackendName]| {
        let backends = backends.to_vec();
        Changes { backends, anything: true, ..Changes::default() }
    };
    assert_eq!(changed(of(&[])), [""; 0]);
    assert_eq!(changed(of(&[Swaybg])), [format!("swaybg: A={still}")]);
    assert_eq!(changed(of(&[Mpvpaper])), [format!("mpvpaper on B: B={film}")]);
    // Nothing but a file that was written anew: with what is shown as it was there is nothing to do.
    let image = still + film;
    assert_eq!(changed(Changes { rewritten: [image].into(), ..Changes::default() }), [""; 0]);
}
