//! Tests the reconciler, without its thread, with scripted backends: orders that fail, outputs that
//! change during an order, and settings.

mod announced;
mod changes;
mod failures;
mod random;
mod rules;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::*;
use crate::backends::{self, Backend};
use crate::compositor::{Output, Outputs};
use crate::config::BackendName::Mpvpaper;
use crate::config::Config;
use crate::events::{EventFilter, Subscription};
use crate::sys::Cancel;
use crate::wallpaper::status::Changes;
use crate::wallpaper::tests::{Room, outputs, reply, request};
use crate::wallpaper::worker::{News, Report};
use crate::wallpaper::worker_key::tests::placement;
use crate::wallpaper::worker_key::{Placements, WorkerKey};
use crate::wire::{EventKind, Format};

const PATIENCE: Duration = Duration::from_secs(60);

/// The planned answers of the backends, and the orders that they got.
#[derive(Default)]
struct Script {
    /// The errors of the next orders to these workers; all other orders succeed.
    fails: Vec<(WorkerKey, backends::Error)>,
    unseen: Vec<String>,
    orders: Vec<String>,
}

impl Script {
    fn carry_out(&mut self, key: &WorkerKey, what: String) -> Result<(), backends::Error> {
        self.orders.push(format!("{key}:{what}"));
        let at = self.fails.iter().position(|(of, _)| of == key);
        at.map_or(Ok(()), |at| Err(self.fails.remove(at).1))
    }
}

struct ScriptedBackend {
    key: WorkerKey,
    script: Arc<Mutex<Script>>,
    /// The outputs where it pauses videos.
    paused: Sender<BTreeSet<String>>,
    /// Keeps the channel of its worker open.
    _bell: Sender<()>,
}

impl Backend for ScriptedBackend {
    fn show(&mut self, placements: &[Placement], _: &Cancel) -> Result<(), backends::Error> {
        let one = |one: &Placement| format!(" {}={}", one.output.name, one.image_id);
        self.script
            .lock()
            .unwrap()
            .carry_out(&self.key, placements.iter().map(one).collect())
    }

    fn renew(&mut self) {
        self.script
            .lock()
            .unwrap()
            .orders
            .push(format!("{} renewed", self.key));
    }

    fn unseen(&mut self) -> Vec<String> {
        let script = self.script.lock().unwrap();
        let is_its = |name: &&String| self.key == WorkerKey::new(Mpvpaper, name);
        script.unseen.iter().filter(is_its).cloned().collect()
    }

    fn pause(&mut self, outputs: &BTreeSet<String>, _: &Cancel) -> Result<(), backends::Error> {
        self.paused.send(outputs.clone()).unwrap();
        Ok(())
    }

    fn clear(&mut self) -> Result<(), backends::Error> {
        self.script
            .lock()
            .unwrap()
            .carry_out(&self.key, " -".to_owned())
    }

    fn is_whole(&mut self) -> bool {
        true
    }
}

struct Desk {
    room: Room,
    reconciler: Reconciler,
    script: Arc<Mutex<Script>>,
    paused: Receiver<BTreeSet<String>>,
    events: Subscription,
}

impl Reconciler {
    /// Carries out a command as the thread does.
    fn command(&mut self, command: impl FnOnce(&mut Self)) {
        self.note_event();
        command(self);
    }
}

impl Desk {
    fn new(names: &[&str], programs: &[&str], settings: impl Fn(&mut Config)) -> Self {
        Self::from_room(Room::with(outputs(names), programs, |config| {
            config.builtin.enabled = false;
            settings(config);
        }))
    }

    fn from_room(room: Room) -> Self {
        let (spawner, _) = Spawner::new();
        let store = room.store.clone();
        let bus = room.bus.clone();
        let desktop = desktop::Handle::default();
        let status = SharedStatus::default();
        let backends = room.backends.clone();
        let tools = Tools {
            store,
            bus,
            desktop,
            backends: backends.clone(),
            on_lost: Box::new(|_, _| ()),
        };
        let mut reconciler = Reconciler::new(spawner.clone(), tools, status);
        let script = Arc::new(Mutex::new(Script::default()));
        let of = Arc::clone(&script);
        let (tell, paused) = unbounded();
        let build = move |key: &WorkerKey, bell| -> Box<dyn Backend> {
            let script = Arc::clone(&of);
            let paused = tell.clone();
            Box::new(ScriptedBackend {
                key: key.clone(),
                script,
                paused,
                _bell: bell,
            })
        };
        reconciler.workers = Workers::with(spawner, backends, Arc::new(build));
        let events = room.bus.subscribe(EventFilter::ALL, || ());
        Self {
            room,
            reconciler,
            script,
            paused,
            events,
        }
    }

    fn video(&self, name: &str) -> i64 {
        self.room.add_as(name, |image| image.format = Format::Mp4)
    }

    /// Sets an image as a client does; returns the answer once no order is in flight.
    fn set(&mut self, image: i64, monitors: &[&str]) -> Result<Applied, Error> {
        let answer = self.ask(image, monitors);
        self.settle();
        answer.try_recv().expect("an answer")
    }

    fn ask(&mut self, image: i64, monitors: &[&str]) -> Receiver<Result<Applied, Error>> {
        let (reply, answer) = reply();
        self.reconciler
            .command(|one| one.set(request(Ask::Image(image), monitors), reply));
        answer
    }

    fn activate(&mut self, name: &str) -> Result<crate::wallpaper::request::Activated, Error> {
        let (reply, answer) = reply();
        self.reconciler.command(|one| one.activate(name, reply));
        self.settle();
        answer.try_recv().expect("an answer")
    }

    fn reconcile(&mut self) {
        self.reconciler.reconcile();
        self.settle();
    }

    /// Notes changes; returns the orders to the backends.
    fn change(&mut self, changes: Changes) -> Vec<String> {
        self.reconciler.status.note(changes);
        self.reconciler.on_settings();
        self.settle();
        self.orders()
    }

    fn settle(&mut self) {
        while !self.reconciler.slots.are_idle() {
            let reports = self.reconciler.workers.reports();
            let report = reports.recv_timeout(PATIENCE).expect("a report");
            self.reconciler.on_report(report);
        }
    }

    /// The image that a worker shows on an output.
    fn image(&self, backend: BackendName, output: &str) -> Option<i64> {
        let slot = self
            .reconciler
            .slots
            .get(&WorkerKey::new(backend, output))?;
        Some(slot.shown.get(output)?.image_id)
    }

    fn fail(&self, backend: BackendName, output: &str, error: backends::Error) {
        self.script
            .lock()
            .unwrap()
            .fails
            .push((WorkerKey::new(backend, output), error));
    }

    /// Returns the orders to the backends since the last call, sorted.
    fn orders(&self) -> Vec<String> {
        let mut orders = std::mem::take(&mut self.script.lock().unwrap().orders);
        orders.sort();
        orders
    }

    fn heard(&self) -> Vec<EventKind> {
        let all = self
            .events
            .receiver()
            .try_iter()
            .map(|message| message.kind);
        all.filter(|kind| *kind != EventKind::GalleryChanged)
            .collect()
    }

    fn connect(&mut self, outputs: Vec<Output>) {
        let session = self.room.backends.outputs.session().unwrap();
        self.reconciler.tools.backends.outputs = Outputs::fixed(session, outputs);
    }
}

/// Changed settings of these backends, or other changed settings if there are none.
fn settings_of(backends: &[BackendName]) -> Changes {
    Changes {
        backends: backends.to_vec(),
        anything: true,
        ..Changes::default()
    }
}
