//! Tests the reconciler with random operations on a simulated screen. No sequence of operations may
//! leave an output empty that showed something, lose an answer, or repeat orders for ever.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use super::stage::{Outcome, Stage, Surface};
use super::*;
use crate::compositor::ipc::Visible;
use crate::config::BackendName::{Awww, Mpvpaper, Swaybg, WalQt};
use crate::config::SelectionMode;
use crate::store::purge;
use crate::wallpaper::backoff::Backoffs;

const NAMES: [&str; 3] = ["A", "B", "C"];
/// The first images are stills, and the others are videos.
const STILLS: usize = 5;
const IMAGES: usize = 8;
/// The most orders that one event may cause, one after another.
const MOST: usize = 60;
const SEED: u64 = 1;

#[derive(Clone, Debug)]
enum Op {
    /// An image, and the monitors as bits.
    Set(usize, u8),
    Back(u8),
    Activate(BackendName),
    /// An order in flight ends.
    End(usize, Outcome),
    /// The picture of a worker becomes visible.
    Seen(usize),
    /// The process of a worker exits.
    Lose(usize),
    /// Connects an output; one that is connected is disconnected for a moment.
    Plug(usize),
    Unplug(usize),
    Move(usize),
    Settings(BackendName),
    /// A workspace is visible on an output; the last has no picture.
    Workspace(usize, usize),
    Delete(usize),
    Rewrite(usize),
    Retry,
    Restart,
    /// Removes all wallpapers, as at the end of the daemon, and starts another one.
    Clear,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        8 => Just(Outcome::Done),
        3 => Just(Outcome::Dark),
        2 => Just(Outcome::Refused),
        2 => Just(Outcome::Away),
        1 => Just(Outcome::Panics),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let backends = vec![Awww, Swaybg, Mpvpaper, WalQt];
    let backend = select(backends);
    let output = 0..NAMES.len();
    prop_oneof![
        12 => (0..IMAGES, 1_u8..8).prop_map(|(image, monitors)| Op::Set(image, monitors)),
        3 => (1_u8..8).prop_map(Op::Back),
        2 => backend.clone().prop_map(Op::Activate),
        30 => (0_usize..4, outcome()).prop_map(|(at, outcome)| Op::End(at, outcome)),
        4 => (0_usize..4).prop_map(Op::Seen),
        3 => (0_usize..4).prop_map(Op::Lose),
        4 => output.clone().prop_map(Op::Plug),
        2 => output.clone().prop_map(Op::Unplug),
        2 => output.clone().prop_map(Op::Move),
        2 => backend.prop_map(Op::Settings),
        3 => (output, 0_usize..3).prop_map(|(output, place)| Op::Workspace(output, place)),
        2 => (0..IMAGES).prop_map(Op::Delete),
        2 => (0..IMAGES).prop_map(Op::Rewrite),
        3 => Just(Op::Retry),
        1 => Just(Op::Restart),
        1 => Just(Op::Clear),
    ]
}

type Answer = Box<dyn Fn() -> bool>;

struct Play {
    room: Room,
    reconciler: Option<Reconciler>,
    stage: Stage,
    events: Subscription,
    images: Vec<i64>,
    outputs: Vec<Output>,
    workspaces: BTreeMap<String, usize>,
    instances: u64,
    /// For each request, whether it was answered.
    answers: Vec<(String, Answer)>,
    /// Reports that the reconciler has not got yet.
    arrived: Vec<Report>,
    /// Outputs on which something was visible after the last operation.
    covered: BTreeSet<(String, u64)>,
    /// Outputs that may become empty, because a process has exited that covered them.
    excused: BTreeSet<(String, u64)>,
    /// The image of each monitor in the last event about it.
    announced: BTreeMap<String, i64>,
    trace: Vec<String>,
}

impl Drop for Play {
    /// Prints what has happened if the test fails. The last print belongs to the shortest sequence.
    #[expect(clippy::print_stderr, reason = "cargo shows it with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let trace = std::mem::take(&mut self.trace);
            eprintln!("----\n{}", trace.join("\n"));
        }
    }
}

impl Play {
    fn new() -> Self {
        let programs = ["awww", "awww-daemon", "swaybg", "mpvpaper", "wal-qt-host"];
        let room = Room::with(Vec::new(), &programs, |config| {
            config.builtin.enabled = false;
            config.backend.selection_mode = SelectionMode::Auto;
            config.auto_priorities.image = vec![Swaybg];
            let entries = [("0", "i0"), ("1", "i7")];
            config.workspaces = entries.map(|(key, of)| (key.into(), of.into())).into();
        });
        let add = |at: usize| {
            if at < STILLS {
                room.add(&format!("i{at}"))
            } else {
                room.add_as(&format!("i{at}"), |image| image.format = Format::Mp4)
            }
        };
        let images = (0..IMAGES).map(add).collect();
        // An empty directory would count as an unmounted disk.
        std::fs::write(room.path("other"), "").unwrap();
        let events = room.bus.subscribe(EventFilter::ALL, || ());
        let mut play = Self {
            room,
            reconciler: None,
            stage: Stage::default(),
            events,
            images,
            outputs: Vec::new(),
            workspaces: BTreeMap::new(),
            instances: 0,
            answers: Vec::new(),
            arrived: Vec::new(),
            covered: BTreeSet::new(),
            excused: BTreeSet::new(),
            announced: BTreeMap::new(),
            trace: Vec::new(),
        };
        NAMES[..2].iter().for_each(|name| play.add_output(name));
        play.start();
        play
    }

    fn reconciler(&mut self) -> &mut Reconciler {
        self.reconciler.as_mut().unwrap()
    }

    /// Starts a daemon, which finds the processes and the note of the one before.
    fn start(&mut self) {
        let (spawner, _) = Spawner::new();
        let backends = Backends {
            outputs: self.listed(),
            ..self.room.backends.clone()
        };
        let tools = Tools {
            store: self.room.store.clone(),
            bus: self.room.bus.clone(),
            desktop: desktop::Handle::default(),
            backends: backends.clone(),
            on_lost: Box::new(|_, _| ()),
        };
        let mut reconciler = Reconciler::new(spawner.clone(), tools, SharedStatus::default());
        let stage = self.stage.clone();
        let build = move |key: &WorkerKey, bell| stage.backend(key, bell);
        reconciler.workers = Workers::with(spawner, backends, Arc::new(build));
        let running = self
            .stage
            .screen()
            .surfaces
            .keys()
            .cloned()
            .collect::<Vec<_>>();
        reconciler.recovery.add_processes(running.into_iter());
        reconciler.reconcile();
        self.reconciler = Some(reconciler);
    }

    fn stop(&mut self) {
        self.reconciler.take().unwrap().end();
        self.arrived.clear();
    }

    fn listed(&self) -> Outputs {
        let session = self.room.backends.outputs.session().unwrap();
        Outputs::fixed(session, self.outputs.clone())
    }

    fn add_output(&mut self, name: &str) {
        self.instances += 1;
        self.outputs.retain(|output| output.name != name);
        self.outputs.push(Output {
            instance: self.instances,
            ..Output::plain(name)
        });
        self.outputs.sort_by(|one, other| one.name.cmp(&other.name));
        self.stage.screen().connect(name, self.instances);
    }

    fn on_outputs(&mut self) {
        let outputs = self.listed();
        let reconciler = self.reconciler();
        reconciler.tools.backends.outputs = outputs;
        reconciler.reconcile();
    }

    /// The orders in flight, the oldest first, and whether each shows something.
    fn in_flight(&mut self) -> Vec<(WorkerKey, bool)> {
        let slots = self.reconciler().slots.iter();
        let mut sent: Vec<_> = slots.filter_map(|(_, slot)| slot.sent.as_ref()).collect();
        sent.sort_by_key(|order| order.number);
        let of =
            |order: &&crate::wallpaper::slots::Order| (order.key.clone(), !order.scene.is_empty());
        sent.iter().map(of).collect()
    }

    /// Receives reports until one of this worker has arrived.
    fn await_report(&mut self, key: &WorkerKey) {
        while self.arrived.iter().all(|report| report.key != *key) {
            let reports = self.reconciler().workers.reports();
            let report = reports.recv_timeout(PATIENCE).expect("a report");
            if self.reconciler().workers.know(&report) {
                self.arrived.push(report);
            }
        }
    }

    /// Waits until each order in flight waits for its outcome, or is carried out.
    fn wait(&mut self) {
        for (key, shows) in self.in_flight() {
            if shows {
                self.stage.wait_for(&key)
            } else {
                self.await_report(&key)
            }
        }
    }

    fn end_order(&mut self, (key, shows): &(WorkerKey, bool), outcome: Outcome) {
        if *shows {
            self.stage.end(key, outcome);
        }
        self.await_report(key);
        let at = self.arrived.iter().position(|report| report.key == *key);
        let report = self.arrived.remove(at.unwrap());
        self.reconciler().on_report(report);
    }

    fn report(&mut self, key: &WorkerKey, news: impl Fn() -> News) {
        let reconciler = self.reconciler();
        let of = |worker| Report {
            key: key.clone(),
            worker,
            news: news(),
        };
        // A daemon that has not adopted a process hears nothing of it.
        let known = (1..500)
            .map(of)
            .find(|report| reconciler.workers.know(report));
        known
            .into_iter()
            .for_each(|report| reconciler.on_report(report));
    }

    fn note(&mut self, changes: Changes) {
        self.reconciler().status.note(changes);
        self.reconciler().on_settings();
    }

    fn ask(&mut self, ask: Ask, monitors: u8, what: String) {
        let named = NAMES.iter().enumerate();
        let named = named.filter(|(at, _)| monitors & (1 << at) != 0);
        let named: Vec<&str> = named.map(|(_, name)| *name).collect();
        // All bits stand for all monitors, also those that are not connected yet.
        let named = if monitors == 7 { Vec::new() } else { named };
        let (reply, answer) = reply();
        self.answers
            .push((what, Box::new(move || answer.len() == 1)));
        let asked = request(ask, &named);
        self.reconciler().command(|one| one.set(asked, reply));
    }

    fn act(&mut self, op: &Op) {
        self.trace.push(format!("{op:?}"));
        match *op {
            Op::Set(image, monitors) => {
                let image = self.images[image];
                self.ask(Ask::Image(image), monitors, format!("{op:?}"));
            }
            Op::Back(monitors) => self.ask(Ask::Back(1), monitors, format!("{op:?}")),
            Op::Activate(backend) => {
                let (reply, answer) = reply();
                let answered = Box::new(move || answer.len() == 1);
                self.answers.push((format!("{op:?}"), answered));
                let name = backend.as_str();
                self.reconciler().command(|one| one.activate(name, reply));
            }
            Op::End(at, outcome) => {
                let all = self.in_flight();
                if !all.is_empty() {
                    self.end_order(&all[at % all.len()], outcome);
                }
            }
            Op::Seen(at) => {
                let waiting = self.stage.screen().unseen();
                if !waiting.is_empty() {
                    self.see(&waiting[at % waiting.len()]);
                }
            }
            Op::Lose(at) => self.lose(at),
            Op::Plug(at) => {
                self.add_output(NAMES[at]);
                self.on_outputs();
            }
            Op::Unplug(at) => {
                self.outputs.retain(|output| output.name != NAMES[at]);
                self.stage.screen().disconnect(NAMES[at]);
                self.on_outputs();
            }
            Op::Move(at) => {
                let named = self.outputs.iter_mut().find(|one| one.name == NAMES[at]);
                named.into_iter().for_each(|output| output.x += 7);
                self.on_outputs();
            }
            Op::Settings(backend) => self.note(settings_of(&[backend])),
            Op::Workspace(at, place) => {
                self.workspaces.insert(NAMES[at].to_owned(), place);
                self.show_workspaces();
            }
            Op::Delete(at) => self.delete(at),
            Op::Rewrite(at) => {
                let image = self.images[at];
                let sql = "UPDATE image SET checksum = randomblob(32) WHERE id = ?1";
                let rewrite =
                    |c: &store::Transaction<'_>| Ok::<_, store::Error>(c.execute(sql, [image])?);
                self.room.store.write(rewrite).unwrap();
                self.note(Changes {
                    rewritten: true,
                    ..Changes::default()
                });
            }
            Op::Retry => {
                let reconciler = self.reconciler();
                reconciler.slots.backoffs.hurry();
                reconciler.retry();
            }
            Op::Restart => {
                self.stop();
                self.start();
                self.show_workspaces();
            }
            Op::Clear => self.clear(),
        }
    }

    fn show_workspaces(&mut self) {
        let of = |(output, place): (&String, &usize)| Visible {
            output: output.clone(),
            name: place.to_string(),
            place: 0,
        };
        let visible = self.workspaces.iter().map(of).collect();
        if self.reconciler().status.show_workspaces(true, visible) {
            self.note(Changes {
                workspaces: true,
                ..Changes::default()
            });
        }
    }

    fn see(&mut self, key: &WorkerKey) {
        for surface in self
            .stage
            .screen()
            .surfaces
            .get_mut(key)
            .into_iter()
            .flatten()
        {
            let surface: &mut Surface = surface.1;
            (surface.is_visible, surface.is_unseen) = (true, false);
        }
        self.report(key, || News::Unseen(Vec::new()));
    }

    fn lose(&mut self, at: usize) {
        let mut screen = self.stage.screen();
        let all: Vec<WorkerKey> = screen.surfaces.keys().cloned().collect();
        if all.is_empty() {
            return;
        }
        let key = &all[at % all.len()];
        let lost = screen.surfaces.remove(key).unwrap();
        // An order in flight may remove what covers the outputs of the process, too.
        let excused = lost.keys().map(|name| (name.clone(), screen.outputs[name]));
        self.excused.extend(excused);
        drop(screen);
        self.report(key, || News::Lost);
    }

    fn delete(&mut self, at: usize) {
        let image = self.images[at];
        let gone = self.room.store.write(|c| purge::delete(c, &[image], false));
        for image in gone.unwrap().images {
            std::fs::remove_file(image.path).unwrap();
            self.reconciler().reconcile();
        }
    }

    fn clear(&mut self) {
        let (reply, answer) = reply();
        self.covered.clear();
        self.reconciler().command(|one| one.clear(reply));
        self.end_all(Outcome::Done);
        answer.try_recv().expect("an answer").unwrap();
        assert_eq!(self.stage.screen().surfaces, BTreeMap::new());
        self.stop();
        self.covered.clear();
        self.start();
        self.show_workspaces();
    }

    /// Ends all orders in this way, until there are no more.
    fn end_all(&mut self, outcome: Outcome) {
        for _ in 0..400 {
            self.wait();
            // The oldest first: while one is in flight, another that fails is sent again and again.
            let Some(order) = self.in_flight().into_iter().next() else {
                return;
            };
            self.end_order(&order, outcome);
            self.check();
        }
        panic!("orders never end");
    }

    fn check(&mut self) {
        self.wait();
        let mut screen = self.stage.screen();
        self.trace.append(&mut screen.trace);
        let now = screen.covered();
        let is_there =
            |(name, instance): &&(String, u64)| screen.outputs.get(name) == Some(instance);
        let gone = self.covered.iter().filter(is_there);
        let mut gone = gone.filter(|one| !now.contains(one) && !self.excused.contains(one));
        assert_eq!(
            gone.next(),
            None,
            "empty although it showed something: {:?}",
            screen.surfaces
        );
        drop(screen);
        let is_cleared = self.reconciler().inputs.is_cleared;
        self.covered = if is_cleared { BTreeSet::new() } else { now };
        if self.in_flight().is_empty() {
            self.excused.clear();
        }
        let mut told = BTreeMap::new();
        for message in self.events.receiver().try_iter() {
            assert_eq!(message.lost, 0);
            let event: serde_json::Value = serde_json::from_str(&message.json).unwrap();
            if message.kind == EventKind::WallpaperChanged {
                for monitor in event["monitors"].as_array().unwrap() {
                    let name = monitor.as_str().unwrap().to_owned();
                    let own = event["images"][&name].as_i64();
                    let image = own.or_else(|| event["image_id"].as_i64()).unwrap();
                    self.trace.push(format!("  event: {name}={image}"));
                    self.announced.insert(name.clone(), image);
                    told.insert(name, (image, event["source"].clone()));
                }
            }
        }
        self.check_told(&told);
    }

    /// Checks that rows and history agree with the events that have just been published.
    fn check_told(&self, told: &BTreeMap<String, (i64, serde_json::Value)>) {
        let (rows, history) = (self.room.rows(), self.room.history());
        for (name, (image, source)) in told.iter().filter(|(_, told)| told.1 != "workspace") {
            assert_eq!(rows.get(name), Some(image), "event about {name}");
            let mut of_it = history.iter().filter(|entry| entry.monitors.contains(name));
            if source == "manual" {
                assert_eq!(
                    of_it.next().map(|entry| entry.image_id),
                    Some(*image),
                    "{name}"
                );
            }
        }
    }

    /// Lets everything succeed, and checks what is shown then.
    fn rest(&mut self) {
        self.trace.push("at rest".to_owned());
        self.end_all(Outcome::Refused);
        self.end_all(Outcome::Dark);
        self.check_above();
        for _ in 0..20 {
            let before = self.stage.screen().orders;
            self.reconciler().slots.backoffs = Backoffs::default();
            self.note(settings_of(&[]));
            self.end_all(Outcome::Done);
            let waiting = self.stage.screen().unseen();
            waiting.iter().for_each(|key| self.see(key));
            self.end_all(Outcome::Done);
            if self.stage.screen().orders == before && self.stage.screen().unseen().is_empty() {
                return self.check_rest();
            }
        }
        panic!("orders never end although all succeed");
    }

    /// Checks that desired pictures which are not visible yet lie above all others.
    fn check_above(&mut self) {
        let world = self.reconciler().world().unwrap();
        let desired = self.reconciler().desired(&world);
        let slots = &self.reconciler.as_ref().unwrap().slots;
        // Whoever has failed is not told again before something changes.
        let is_desired = |key: &WorkerKey, name: &String| {
            desired.get(name).is_some_and(|one| one.key == *key)
                && slots.get(key).is_some_and(|slot| slot.done > 0)
        };
        let screen = self.stage.screen();
        for (key, shown) in &screen.surfaces {
            for (name, surface) in shown.iter().filter(|(_, surface)| surface.is_unseen) {
                if !is_desired(key, name) {
                    continue;
                }
                let others = screen.surfaces.iter().filter(|(other, _)| *other != key);
                let above = others.filter_map(|(_, shown)| shown.get(name));
                let above: Vec<_> = above.filter(|other| other.age > surface.age).collect();
                assert_eq!(
                    above,
                    [] as [&Surface; 0],
                    "above {key} on {name}: {surface:?}"
                );
            }
        }
    }

    fn check_rest(&mut self) {
        for (what, is_answered) in &self.answers {
            assert!(is_answered(), "{what} has no answer");
        }
        let rows = self.room.rows();
        let outputs = self.outputs.clone();
        let announced = self.announced.clone();
        assert!(self.reconciler().tickets.is_empty());
        let world = self.reconciler().world().unwrap();
        let desired = self.reconciler().desired(&world);
        let screen = self.stage.screen();
        for output in &outputs {
            let name = &output.name;
            let Some(row) = world.shown_row(name) else {
                continue;
            };
            let image = self
                .room
                .store
                .read(|c| store::images::get(c, row.image_id));
            let image = image.unwrap().unwrap();
            if world.choose(&image).is_err() {
                continue;
            }
            // A process that keeps a deleted picture on another output cannot be told to leave this one.
            let keeps_deleted = |key: &WorkerKey| {
                let mut names = screen.surfaces[key].keys();
                names.any(|name| !desired.contains_key(name))
            };
            let mut visible = screen.visible(name);
            visible.retain(|(key, _)| desired[name].key == **key || !keeps_deleted(key));
            let [(key, surface)] = visible[..] else {
                panic!(
                    "{name} shows {visible:?}, not {} alone: {:?}",
                    row.image_id, screen.surfaces
                );
            };
            assert_eq!(
                (surface.image_id, &surface.content),
                (image.id, &image.checksum_text()),
                "{name}"
            );
            assert_eq!(desired[name].key, *key, "{name}");
            // An event may name the assignment although a workspace hides it.
            if world.hidden_by(name).is_none() {
                assert_eq!(rows.get(name), Some(&image.id), "row of {name}");
                assert_eq!(announced.get(name), Some(&image.id), "event about {name}");
            }
        }
    }
}

fn run(ops: &[Op]) {
    let mut play = Play::new();
    for op in ops {
        let before = play.stage.screen().orders;
        play.act(op);
        play.check();
        let orders = play.stage.screen().orders - before;
        assert!(orders <= MOST, "{op:?} causes {orders} orders");
    }
    play.rest();
}

/// The same sequences each time, unless `PROPTEST_CASES` says how many others to search.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        (config.cases, config.rng_seed) = (24, RngSeed::Fixed(SEED));
    }
    config.failure_persistence = None;
    config
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn any_sequence_of_operations_keeps_outputs_covered_and_comes_to_rest(
        ops in proptest::collection::vec(op(), 1..60),
    ) {
        run(&ops);
    }
}

#[test]
fn wallpapers_that_were_removed_stay_removed_although_outputs_have_changed() {
    let set = [Op::Set(0, 1), Op::Move(0)];
    let shown = [Op::End(0, Outcome::Done), Op::End(0, Outcome::Done)];
    let cleared = [Op::Set(0, 6), Op::Plug(0), Op::Clear];
    run(&[&set[..], &shown, &cleared].concat());
}

#[test]
fn output_stays_covered_if_a_request_also_has_to_show_a_workspace_and_that_fails() {
    run(&[
        Op::Set(5, 2),
        Op::Workspace(1, 0),
        Op::End(0, Outcome::Done),
        Op::Set(0, 1),
    ]);
}

#[test]
fn refused_picture_is_not_sent_again_while_another_order_is_in_flight() {
    let mut play = Play::new();
    for op in [
        Op::Plug(2),
        Op::Set(5, 5),
        Op::End(0, Outcome::Done),
        Op::Set(0, 1),
        Op::End(0, Outcome::Done),
        Op::Move(2),
    ] {
        play.act(&op);
        play.check();
    }
    for _ in 0..3 {
        let Some(last) = play.in_flight().into_iter().skip(1).next_back() else {
            return play.rest();
        };
        play.end_order(&last, Outcome::Refused);
        play.check();
    }
    panic!("sent again and again");
}

#[test]
fn two_requests_that_end_the_same_worker_are_both_answered() {
    use Outcome::{Away, Dark, Done, Refused};
    let first = [
        Op::Workspace(2, 0),
        Op::Set(2, 2),
        Op::Plug(2),
        Op::Plug(0),
        Op::End(2, Done),
        Op::Seen(2),
        Op::Rewrite(4),
        Op::Lose(0),
        Op::End(0, Refused),
        Op::End(1, Away),
        Op::Plug(0),
        Op::Set(7, 6),
        Op::Retry,
        Op::Rewrite(2),
        Op::Unplug(0),
        Op::End(0, Refused),
        Op::End(2, Done),
        Op::End(3, Done),
        Op::End(2, Dark),
        Op::Set(1, 1),
        Op::End(3, Done),
        Op::End(2, Away),
        Op::Set(3, 5),
        Op::Set(4, 1),
        Op::End(0, Away),
        Op::Set(1, 6),
        Op::End(3, Done),
        Op::Workspace(1, 1),
        Op::Set(4, 4),
        Op::End(3, Done),
        Op::Set(4, 5),
        Op::Set(6, 3),
        Op::Rewrite(1),
        Op::Unplug(1),
        Op::End(1, Done),
        Op::Settings(WalQt),
        Op::Set(7, 2),
    ];
    run(&first);
}

#[test]
fn process_that_keeps_a_deleted_picture_may_stay_beneath_another() {
    use Outcome::{Done, Refused};
    run(&[
        Op::Set(2, 7),
        Op::End(0, Done),
        Op::Move(0),
        Op::End(0, Refused),
        Op::Workspace(0, 1),
        Op::End(0, Done),
        Op::Set(0, 2),
        Op::Delete(2),
    ]);
}
