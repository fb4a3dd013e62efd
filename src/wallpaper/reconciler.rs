//! The thread `reconciler`: takes requests, plans, gives orders to the workers and answers.
//!
//! It waits only for messages. Files are looked up and rows are written here; backends are not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::PoisonError;

use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};

use crate::backends::{Backends, Placement, REGISTRY};
use crate::config::{BackendName, SelectionMode};
use crate::events::EventBus;
use crate::store::{self, Store};
use crate::thread::Spawner;
use crate::wire::{Event, OrphanReason};

use super::assignments::{self, Pictures};
use super::backoff::Backoff;
use super::job::{Activation, Job, PendingApply, Purpose};
use super::orphan;
use super::plan::{self, Placements, Step};
use super::queue::Waiting;
use super::recovery::Recovery;
use super::request::{Activated, Applied, Ask, Reply, Request};
use super::selection::{self, Candidate, Preference};
use super::worker::{Report, Worker};
use super::worker_key::WorkerKey;
use super::world_state::{Feasible, WorldState};
use super::{Error, SharedStatus};

/// Images that a random request leaves because their files are gone, before it says so.
const PICKS: usize = 32;
/// Reports that wait. A worker has at most one order to report and one loss: this never fills up.
const REPORTS: usize = 256;

pub(super) enum Command {
    Set(Request, Reply<Applied>),
    Activate(String, Reply<Activated>),
    Clear(Reply<()>),
    /// What changed stands in the status.
    SettingsChanged,
    End,
}

impl Command {
    /// Answers a command that will not be carried out.
    pub(super) fn refuse(self, error: Error) {
        match self {
            Self::Set(_, reply) => reply(Err(error)),
            Self::Activate(_, reply) => reply(Err(error)),
            Self::Clear(reply) => reply(Err(error)),
            Self::SettingsChanged | Self::End => {}
        }
    }
}

pub(super) struct Reconciler {
    pub(super) spawner: Spawner,
    pub(super) store: Store,
    pub(super) bus: EventBus,
    pub(super) backends: Backends,
    status: SharedStatus,
    pub(super) workers: BTreeMap<WorkerKey, Worker>,
    pub(super) report: Sender<Report>,
    reports: Receiver<Report>,
    /// What the workers have reported as shown.
    pub(super) current: Placements,
    /// More than one only where none stands in another's way.
    pub(super) jobs: Vec<Job>,
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) backoffs: BTreeMap<WorkerKey, Backoff>,
    /// Something changed while a job was in hand: look again afterwards.
    pub(super) reconcile_again: bool,
    /// Seats to be told to show what they show: settings changed since, or they were not asked yet.
    pub(super) stale: BTreeSet<WorkerKey>,
    pub(super) recovery: Recovery,
    /// Activated, but not yet what the settings say.
    pub(super) activated: Option<Activation>,
    /// Workers so far.
    pub(super) workers_made: u64,
}

impl Reconciler {
    pub(super) fn new(
        spawner: Spawner,
        store: Store,
        bus: EventBus,
        backends: Backends,
        status: SharedStatus,
    ) -> Self {
        let (report, reports) = bounded(REPORTS);
        let recovery = Recovery::open(&backends);
        Self {
            spawner,
            store,
            bus,
            backends,
            status,
            workers: BTreeMap::new(),
            report,
            reports,
            current: Placements::new(),
            jobs: Vec::new(),
            waiting: VecDeque::new(),
            backoffs: BTreeMap::new(),
            reconcile_again: false,
            stale: BTreeSet::new(),
            recovery,
            activated: None,
            workers_made: 0,
        }
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        let outputs = self.backends.outputs.subscribe();
        let reports = self.reports.clone();
        self.reconcile();
        loop {
            let retry = self.next_retry().map_or_else(never, at);
            select! {
                recv(commands) -> command => match command {
                    Ok(Command::End) | Err(_) => break,
                    Ok(command) => {
                        self.on_command(command);
                        self.on_settings();
                    }
                },
                recv(reports) -> report => if let Ok(report) = report { self.on_report(report) },
                recv(outputs) -> _ => self.reconcile(),
                recv(retry) -> _ => self.retry(),
            }
        }
        self.end();
    }

    /// Looks again where settings have changed since it last looked.
    fn on_settings(&mut self) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(changed) = status.changed.take() else { return };
        let deactivated = std::mem::take(&mut status.deactivated);
        drop(status);
        if deactivated {
            self.activated = None;
        }
        self.stale
            .extend(self.current.keys().filter(|key| changed.contains(&key.backend)).cloned());
        let settings = (self.backends.settings)();
        let now = (settings.backend.kind, settings.backend.selection_mode);
        self.activated = self.activated.filter(|activated| activated.settings == now);
        self.reconcile();
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::SettingsChanged => {}
            Command::Clear(reply) => {
                self.break_off();
                self.begin(Command::Clear(reply));
            }
            command if self.jobs.is_empty() => self.begin(command),
            Command::Set(request, reply) => self.enqueue(request, reply),
            command => self.wait(Waiting::Other(command)),
        }
    }

    pub(super) fn begin(&mut self, command: Command) {
        match command {
            Command::Set(request, reply) => match self.feasible(&request) {
                Ok((feasible, world)) => {
                    self.recall(&world);
                    self.apply(feasible, world, reply);
                }
                Err(error) => {
                    self.purge_if_gone(&error);
                    reply(Err(error));
                }
            },
            Command::Activate(name, reply) => self.activate(&name, reply),
            Command::Clear(reply) => {
                let left = std::mem::take(&mut self.recovery.left);
                let all: BTreeSet<WorkerKey> = self.current.keys().cloned().chain(left).collect();
                let steps = all.into_iter().map(|key| Step::Clear { key }).collect();
                self.start(Job::new(steps, Purpose::Clear { failed: None, reply }));
            }
            Command::SettingsChanged | Command::End => {}
        }
    }

    /// Ends what is in hand and what waits: backends that hang must not keep all from being taken
    /// down. A worker that is made anew takes their processes over.
    fn break_off(&mut self) {
        for job in std::mem::take(&mut self.jobs) {
            for step in &job.in_progress {
                self.workers.remove(step.key());
            }
            job.refuse(Error::Ending);
        }
        for waiting in std::mem::take(&mut self.waiting) {
            waiting.into_command().refuse(Error::Ending);
        }
    }

    fn apply(&mut self, feasible: Feasible, world: WorldState, reply: Reply<Applied>) {
        let apply = PendingApply {
            image: feasible.image,
            rows: feasible.rows,
            for_all: feasible.for_all,
            applied: feasible.applied,
            source: feasible.source,
            reply,
        };
        let (mut steps, desired) = self.steps_of(&apply, world);
        // Asked for again is shown again: somebody else may have painted over it.
        for key in apply.keys() {
            plan::force(&mut steps, &desired, &key);
        }
        self.start(Job::new(steps.into(), Purpose::Apply(Box::new(apply))));
    }

    /// The steps that are left to where a picture is shown, and what is shown then. Workers that other
    /// jobs have busy are left out: they are looked at afterwards.
    pub(super) fn steps_of(
        &mut self,
        apply: &PendingApply,
        world: WorldState,
    ) -> (Vec<Step>, Placements) {
        let desired = world.with(&apply.image, &apply.rows).desired(&self.current);
        let mut steps = plan::steps(&self.expected(), &desired);
        let later = steps.extract_if(.., |step| self.is_busy(step.key())).collect();
        let later = self.with_dependants(later, &mut steps, &apply.keys());
        self.reconcile_again |= !later.is_empty();
        (steps, desired)
    }

    /// What is shown once the orders that are given are carried out. Plans begin from there: what
    /// was shown before a job says nothing about what it leaves to do.
    fn expected(&self) -> Placements {
        let mut expected = self.current.clone();
        for step in self.jobs.iter().flat_map(|job| &job.in_progress) {
            match step {
                Step::Show { key, placements } => {
                    drop(expected.insert(key.clone(), placements.clone()))
                }
                Step::Clear { key } => drop(expected.remove(key)),
            }
        }
        expected
    }

    /// Makes a backend the one in use. Until the settings say so too, it is remembered here.
    fn activate(&mut self, name: &str, reply: Reply<Activated>) {
        let Ok(backend) = name.parse::<BackendName>() else {
            return reply(Err(Error::UnknownBackend { name: name.to_owned() }));
        };
        if self.backends.available().iter().all(|entry| entry.name != backend) {
            let checked = self.backends.programs(Some(backend));
            let entry = REGISTRY.iter().find(|entry| entry.name == backend);
            let missing = entry.map(|entry| self.backends.missing(entry)).unwrap_or_default();
            return reply(Err(Error::NotUsable { backend, checked, missing }));
        }
        let settings = (self.backends.settings)();
        let settings = (settings.backend.kind, settings.backend.selection_mode);
        let before = self.activated.replace(Activation { backend, settings });
        let world = match self.world_state() {
            Ok(world) => world,
            Err(error) => {
                self.activated = before;
                return reply(Err(error.into()));
            }
        };
        self.recall(&world);
        let steps = plan::steps(&self.current, &world.desired(&self.current));
        let restored = world.restored(&self.current, &steps);
        let purpose = Purpose::Activate { backend, before, restored, reply };
        self.start(Job::new(steps.into(), purpose));
    }

    /// Looks at everything and brings the screens in line with it, but for those that somebody has
    /// in hand.
    pub(super) fn reconcile(&mut self) {
        let aside = |job: &Job| matches!(job.purpose, Purpose::Apply(_) | Purpose::Restore(_));
        if !self.jobs.iter().all(aside) {
            self.reconcile_again = true;
            return;
        }
        self.reconcile_again = false;
        let world = match self.world_state() {
            Ok(world) => world,
            Err(error) => return log::error!("cannot read the assignments: {}", chain(&error)),
        };
        self.note_active(&world);
        self.recall(&world);
        let desired = world.desired(&self.current);
        let mut steps = plan::steps(&self.expected(), &desired);
        let stale = std::mem::take(&mut self.stale);
        for key in &stale {
            plan::force(&mut steps, &desired, key);
        }
        // One that did not start has its own time to be tried again.
        steps.retain(|step| self.backoffs.get(step.key()).is_none_or(Backoff::may_try));
        let later = |step: &mut Step| self.is_busy(step.key()) || !self.is_apart(step);
        let later: Vec<Step> = steps.extract_if(.., later).collect();
        let later = self.with_dependants(later, &mut steps, &[]);
        self.reconcile_again = !later.is_empty();
        let told = |key: &WorkerKey| steps.iter().any(|step| step.key() == key);
        self.stale.extend(stale.into_iter().filter(|key| !told(key)));
        self.stale.retain(|key| self.current.contains_key(key));
        let mut before = self.current.clone();
        before.retain(|key, _| !self.recovery.unannounced.contains(key));
        for steps in self.groups(steps) {
            let restored = world.restored(&before, &steps);
            self.start(Job::new(steps.into(), Purpose::Restore(restored)));
        }
    }

    /// Tells, once each time it becomes so, that there is no backend.
    fn note_active(&self, world: &WorldState) {
        if self.backends.compositor().is_none() {
            // Which backends would fit is not known before there is a compositor.
            return;
        }
        if self.jobs.iter().any(|job| matches!(job.purpose, Purpose::Activate { .. })) {
            // In use once it shows everything.
            return;
        }
        let active = selection::active(&world.preference, &world.available);
        let checked = if active.is_none() { self.backends.programs(None) } else { Vec::new() };
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let news = active.is_none() && status.checked.is_empty();
        (status.active, status.checked) = (active, checked.clone());
        drop(status);
        if news {
            let message = Error::NoBackend { checked: checked.clone() }.to_string();
            log::warn!("{message}");
            let event =
                Event::BackendUnavailable { message, backend: None, retrying: false, checked };
            self.bus.publish(&event);
        }
    }

    /// Lets everybody see that a backend has come into use.
    pub(super) fn note_activated(&self, backend: BackendName) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        (status.active, status.checked) = (Some(backend), Vec::new());
    }

    /// Lets everybody see what a backend shows.
    pub(super) fn publish_current(&self, backend: BackendName) {
        self.recovery.note(&self.current);
        let of_it = self.current.iter().filter(|(key, _)| key.backend == backend);
        let shown: Vec<Placement> = of_it.flat_map(|(_, placements)| placements).cloned().collect();
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.is_empty() {
            drop(status.current.remove(&backend));
        } else {
            drop(status.current.insert(backend, shown.into()));
        }
    }

    /// Reads what there is, and purges assigned images whose files are gone.
    pub(super) fn world_state(&self) -> Result<WorldState, store::Error> {
        let (mut rows, mut for_all, pictures) = self.store.read(|connection| {
            let rows = store::assignments::all(connection)?;
            let for_all = store::assignments::for_every_monitor(connection)?;
            let ids: Vec<i64> = rows.iter().chain(&for_all).map(|row| row.image_id).collect();
            let images = store::images::by_ids(connection, &ids)?;
            let pictures: Pictures = images.into_iter().map(|image| (image.id, image)).collect();
            Ok::<_, store::Error>((rows, for_all, pictures))
        })?;
        for image in pictures.values().filter(|image| orphan::is_gone(image)) {
            if orphan::purge(&self.store, &self.bus, image.id, OrphanReason::FileMissing)? {
                rows.retain(|row| row.image_id != image.id);
                for_all = for_all.filter(|row| row.image_id != image.id);
            }
        }
        let mut preference = Preference::of(&(self.backends.settings)());
        if let Some(activated) = self.activated {
            preference.selection = SelectionMode::Fixed;
            preference.fixed = activated.backend;
        }
        let available = self.backends.available().into_iter().map(Candidate::from).collect();
        let outputs = self.backends.outputs.list();
        if let Some(for_all) = for_all {
            assignments::adopt(&mut rows, &for_all, &outputs);
        }
        Ok(WorldState { rows, pictures, outputs, available, preference })
    }

    pub(super) fn feasible(&self, request: &Request) -> Result<(Feasible, WorldState), Error> {
        let mut picks = PICKS;
        loop {
            let world = self.world_state()?;
            // A backend may have been installed since.
            self.note_active(&world);
            let checked = || self.backends.programs(None);
            match world.feasible(&self.store, request, checked) {
                // Another one can be shown.
                Err(error @ Error::FileGone { .. }) if request.ask == Ask::Random && picks > 0 => {
                    self.purge_if_gone(&error);
                    picks -= 1;
                }
                feasible => return Ok((feasible?, world)),
            }
        }
    }

    /// Removes what refers to an image that a request found missing.
    pub(super) fn purge_if_gone(&self, error: &Error) {
        let (id, reason) = match error {
            Error::NoImage { id } => (*id, OrphanReason::RowMissing),
            Error::FileGone { id, .. } => (*id, OrphanReason::FileMissing),
            _ => return,
        };
        if let Err(source) = orphan::purge(&self.store, &self.bus, id, reason) {
            log::error!("image {id} cannot be purged: {}", chain(&source));
        }
    }

    fn end(self) {
        // Backends stay as they are; the workers end when they are dropped with `self`, all at once.
        self.workers.values().for_each(Worker::cancel);
        for job in self.jobs {
            job.refuse(Error::Ending);
        }
        for waiting in self.waiting {
            waiting.into_command().refuse(Error::Ending);
        }
    }
}

/// An error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
