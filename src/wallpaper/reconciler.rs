//! The thread `reconciler`: takes commands, plans, gives orders to the workers (`execute`) and answers.
//!
//! It plans again for all monitors when one is plugged in or unplugged, or changes.
//!
//! It waits for messages, and for the library if a file used in place was rewritten. It writes rows
//! itself, those of a picture once the picture is shown (`jobs`), and calls no backend. Refusals are
//! answered here; successes by the thread `desktop`, once the files for other programs are up to date
//! (`record`).

mod execute;
mod record;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crossbeam_channel::{Receiver, at, never, select};

use crate::backends::{Backends, Placement};
use crate::config::BackendName;
use crate::desktop;
use crate::error_chain::chain;
use crate::events::{EventBus, Subscription};
use crate::store::workspaces::WorkspacePicture;
use crate::store::{self, Store};
use crate::thread::Spawner;
use crate::wire::Source;

use super::Error;
use super::assignments::{self, PendingVisibility};
use super::backend_choice::FoundBackends;
use super::backoff::Backoffs;
use super::handle::{Command, Mailbox};
use super::jobs::{Activation, Feasible, Job, PendingApply, Purpose};
use super::orphan;
use super::paused_outputs::Pause;
use super::plan::WorkerKey;
use super::plan::{self, Placements, Step};
use super::queue::{Jobs, Queue};
use super::recovery::Recovery;
use super::request::{Applied, Ask, Reply, Request};
use super::status::SharedStatus;
use super::upkeep::upkeep;
use super::worker::Report;
use super::worker::Workers;
use super::workspaces::Refusals;
use super::world_state::WorldState;

/// How many missing images a random request skips before it fails.
const PICKS: usize = 32;

/// Outputs whose workers show something that has not been reported yet. The value is what was reported
/// before, if that was the same picture with another content.
type Unreported = BTreeMap<(WorkerKey, String), Option<Placement>>;

pub(super) struct Reconciler {
    store: Store,
    bus: EventBus,
    /// Updates what other programs read, before a change is reported to clients.
    desktop: desktop::Handle,
    /// Called for each picture before it is shown.
    backends: Backends,
    status: SharedStatus,
    reports: Receiver<Report>,
    workers: Workers,
    jobs: Jobs,
    queue: Queue,
    backoffs: Backoffs,
    recovery: Recovery,
    /// The placements that the workers have reported as shown.
    current: Placements,
    /// Outputs on which a worker's picture has not been visible yet, because they are off or covered.
    unseen: PendingVisibility,
    /// Workers that need an order even if nothing differs, for example because their settings have
    /// changed, an order has failed or they were adopted.
    stale: BTreeSet<WorkerKey>,
    /// Pictures that are shown and not reported yet: a request showed them beside its own, or an earlier
    /// daemon left them.
    unreported: Unreported,
    /// Monitors and their images that were reported because no backend can show them any more.
    unshowable: BTreeMap<String, i64>,
    /// Events so far that have changed what is shown, or is to be.
    events: u64,
    /// Something changed while a job was in progress: plan again afterwards.
    reconcile_again: bool,
    /// The activated backend, until the settings name it.
    activated: Option<Activation>,
    found: FoundBackends,
    pause: Pause,
    /// Workers that must use new processes for their next order.
    renew: BTreeSet<WorkerKey>,
    /// The pictures of workspaces, as they are in the database.
    workspaces: Vec<WorkspacePicture>,
    refusals: Refusals,
    /// Changes of images and playlists.
    library: Subscription,
    /// The wallpapers were removed because the daemon ends, so nothing is shown any more.
    is_cleared: bool,
}

impl Reconciler {
    pub(super) fn new(
        spawner: Spawner,
        store: Store,
        bus: EventBus,
        desktop: desktop::Handle,
        backends: Backends,
        status: SharedStatus,
    ) -> Self {
        let (workers, reports) = Workers::new(spawner, backends.clone());
        let recovery = Recovery::open(&backends);
        // The workspaces of the previous run count as visible until the compositor reports the current
        // ones.
        let workspaces = store.read(store::workspaces::all).unwrap_or_default();
        status.restore_workspaces(&workspaces);
        let library = bus.subscribe(settings::OF_LIBRARY.into_iter().collect(), || ());
        Self {
            store,
            bus,
            desktop,
            backends,
            status,
            reports,
            workers,
            jobs: Jobs::default(),
            queue: Queue::default(),
            backoffs: Backoffs::default(),
            recovery,
            current: Placements::new(),
            unseen: PendingVisibility::new(),
            stale: BTreeSet::new(),
            unreported: Unreported::new(),
            unshowable: BTreeMap::new(),
            events: 0,
            reconcile_again: false,
            activated: None,
            found: FoundBackends::default(),
            pause: Pause::default(),
            renew: BTreeSet::new(),
            workspaces,
            refusals: Refusals::new(),
            library,
            is_cleared: false,
        }
    }

    pub(super) fn run(mut self, mailbox: &Mailbox) {
        let outputs = self.backends.outputs.subscribe();
        let (reports, library) = (self.reports.clone(), self.library.receiver().clone());
        mailbox.wait_for_look(self.backends.outputs.looked());
        self.reconcile();
        self.status.looked.open();
        loop {
            let retry = self.backoffs.next_retry().map_or_else(never, at);
            select! {
                recv(mailbox.commands) -> command => match command {
                    Ok(command) => {
                        // The command must see the changes that were made before it.
                        self.on_settings();
                        self.on_command(command);
                    }
                    Err(_) => break,
                },
                recv(mailbox.changed) -> _ => self.on_settings(),
                recv(mailbox.end) -> _ => break,
                recv(reports) -> report => if let Ok(report) = report { self.on_report(report) },
                recv(outputs) -> _ => self.reconcile(),
                recv(library) -> message => if let Ok(message) = message { self.on_library(message) },
                recv(retry) -> _ => self.retry(),
            }
        }
        self.end();
        mailbox
            .commands
            .try_iter()
            .for_each(|command| command.refuse(Error::Ending));
    }

    fn on_command(&mut self, command: Command) {
        self.backoffs.forget_refusals();
        match command {
            Command::Clear(reply) => {
                self.abandon_all();
                self.begin(Command::Clear(reply));
            }
            // These commands plan nothing, so they need not wait for jobs.
            command @ (Command::Check(..) | Command::Workspaces(_) | Command::Sound(..)) => {
                self.begin(command);
            }
            command if self.jobs.is_empty() => self.begin(command),
            Command::Set(request, reply) => match self.feasible(&request) {
                Ok((feasible, _)) => {
                    self.queue.push_set(request, feasible.applied, reply);
                    self.start_waiting();
                }
                Err(error) => self.refuse(&request, &error, reply),
            },
            command => self.queue.push(command),
        }
    }

    fn retry(&mut self) {
        self.backoffs.wake(Instant::now());
        self.reconcile();
        self.start_waiting();
    }

    fn begin(&mut self, command: Command) {
        self.events += 1;
        match command {
            Command::Set(request, reply) => match self.feasible(&request) {
                Ok((feasible, world)) => {
                    self.recall(&world);
                    self.apply(
                        PendingApply {
                            request,
                            feasible,
                            reply,
                        },
                        world,
                    );
                }
                Err(error) => self.refuse(&request, &error, reply),
            },
            Command::Check(request, content, reply) => {
                let world = self.read_world().map_err(Error::from);
                reply(world.and_then(|world| world.check(&request, &content)));
            }
            Command::Workspaces(reply) => {
                let world = self.read_world().map_err(Error::from);
                let visible = self.status.visible_workspaces();
                reply(world.and_then(|w| w.workspaces(&self.store, &visible, &self.refusals)));
            }
            Command::Sound(targets, change, reply) => reply(self.ask_for_sound(&targets, change)),
            Command::Activate(name, reply) => self.activate(&name, reply),
            Command::Settle(reply) => self.settle(reply),
            Command::Clear(reply) => {
                self.is_cleared = true;
                let left = self.recovery.take_left();
                let all: BTreeSet<WorkerKey> = self.current.keys().cloned().chain(left).collect();
                let clear = |key| Step {
                    key,
                    placements: Vec::new(),
                };
                let steps = all.into_iter().map(clear).collect();
                self.start(Job::new(
                    steps,
                    Purpose::Clear {
                        failed: None,
                        reply,
                    },
                ));
            }
        }
    }

    /// Begins the waiting commands that may begin, the oldest first.
    fn start_waiting(&mut self) {
        while let Some(command) = self.queue.pop(&self.jobs, &self.current) {
            self.begin(command);
        }
        // Waiting requests come first, since they change what is to be planned.
        if self.queue.is_empty() && self.reconcile_again {
            self.restore();
        }
    }

    /// Ends all jobs and refuses all waiting commands, so that a backend that hangs cannot prevent the
    /// removal of the wallpapers. A new worker adopts the processes of an ended one.
    fn abandon_all(&mut self) {
        for job in self.jobs.take_all() {
            job.in_progress
                .iter()
                .for_each(|step| self.workers.end(&step.key));
            job.refuse(Error::Ending);
        }
        self.queue.refuse(&Error::Ending);
    }

    fn apply(&mut self, apply: PendingApply, world: WorldState) {
        let planned_for = Some(world.plan_state(self.events));
        let (mut steps, desired) = self.steps_of(&apply, world);
        // A picture that is set again is shown again, as another program may have drawn over it.
        for key in apply.keys() {
            plan::force(&mut steps, &desired, &key);
        }
        let job = Job::new(steps.into(), Purpose::Apply(Box::new(apply)));
        self.start(Job { planned_for, ..job });
    }

    /// The remaining steps until the pictures of a request are shown, and what is shown then. The steps
    /// of workers that other jobs use are left to a later plan.
    fn steps_of(&mut self, apply: &PendingApply, world: WorldState) -> (Vec<Step>, Placements) {
        let desired = self.desired(&world.with(&apply.feasible.pictures));
        let mut steps = plan::steps(&self.jobs.expected(&self.current), &desired);
        self.leave(&mut steps, &apply.keys(), |jobs, key| jobs.is_busy(key));
        (steps, desired)
    }

    /// Leaves steps of some workers, and those that depend on them, to a later plan.
    fn leave(
        &mut self,
        steps: &mut Vec<Step>,
        asked: &[WorkerKey],
        waits: impl Fn(&Jobs, &WorkerKey) -> bool,
    ) {
        let later = steps
            .extract_if(.., |step| waits(&self.jobs, &step.key))
            .collect();
        let later = plan::with_dependants(later, steps, asked, &self.current);
        self.reconcile_again |= !later.is_empty();
    }

    /// Plans for all outputs after a change.
    fn reconcile(&mut self) {
        self.backoffs.forget_refusals();
        self.restore();
    }

    /// Plans for all outputs and starts the steps, except on outputs and workers that a job uses.
    fn restore(&mut self) {
        self.events += 1;
        self.backoffs
            .in_session(self.backends.outputs.session_number());
        self.reconcile_again = !self.jobs.are_partial();
        if self.reconcile_again || self.is_cleared {
            return;
        }
        let world = match self.world_state() {
            Ok(world) => world,
            Err(error) => {
                return log::error!("cannot read the current wallpapers: {}", chain(&error));
            }
        };
        self.note_active(&world);
        self.note_workspaces(&world);
        self.recall(&world);
        let desired = self.desired(&world);
        let mut steps = plan::steps(&self.jobs.expected(&self.current), &desired);
        for key in &self.stale {
            plan::force(&mut steps, &desired, key);
        }
        // A worker that did not start is retried at its own time.
        steps.retain(|step| self.backoffs.may_try(&step.key));
        self.report_unreported(&world, &steps);
        self.report_unshowable(&world);
        let must_wait = |step: &mut Step| {
            let outputs = plan::outputs_of(step, &self.current);
            self.jobs.is_busy(&step.key) || !self.jobs.leave_alone(&outputs, &self.current)
        };
        let later: Vec<Step> = steps.extract_if(.., must_wait).collect();
        let later = plan::with_dependants(later, &mut steps, &[], &self.current);
        let is_unreported = self
            .unreported
            .keys()
            .any(|(key, _)| self.jobs.is_busy(key));
        self.reconcile_again = is_unreported || !later.is_empty();
        self.stale
            .retain(|key| self.current.contains_key(key) || self.jobs.is_busy(key));
        let before = self.reported();
        for steps in plan::groups(steps, &self.current) {
            let restored = world.restored(&before, &steps);
            self.start(Job::new(steps.into(), Purpose::Restore(restored)));
        }
    }

    /// All that should be shown now.
    fn desired(&self, world: &WorldState) -> Placements {
        let mut desired = world.desired(&self.current);
        plan::gather(&mut desired, |key| self.backoffs.may_try(key));
        let mut unseen = self.unseen.clone();
        unseen.extend(assignments::untried(&desired, |key| {
            self.backoffs.may_try(key)
        }));
        assignments::keep_until_seen(&self.current, &mut desired, &unseen);
        desired
    }

    /// Brings the rows up to date, and reads what decisions depend on.
    fn world_state(&self) -> Result<WorldState, store::Error> {
        upkeep(&self.store, &self.backends)?;
        self.read_world()
    }

    fn read_world(&self) -> Result<WorldState, store::Error> {
        let activated = self.activated.map(|activated| activated.backend);
        let mut world = WorldState::read(&self.store, &self.backends, activated)?;
        let draws = self
            .current
            .keys()
            .any(|key| key.backend == BackendName::Builtin);
        let unused = world.keep_found(&self.found, draws);
        self.status.set_choice(activated, unused);
        world.cover(
            &self.store,
            &self.status.visible_workspaces(),
            &self.refusals,
        )?;
        Ok(world)
    }

    /// Plans a request for the current state.
    fn feasible(&self, request: &Request) -> Result<(Feasible, WorldState), Error> {
        let mut picks = PICKS;
        loop {
            let world = self.world_state()?;
            // A backend may have been installed since.
            self.note_active(&world);
            match world.feasible(&self.store, request) {
                // A random request can pick another image.
                Err(error @ Error::FileGone { .. }) if request.ask == Ask::Random && picks > 0 => {
                    orphan::mark_missing(&self.store, &error);
                    picks -= 1;
                }
                feasible => return Ok((feasible?, world)),
            }
        }
    }

    /// Answers a request that cannot be carried out. Only an image that a user has named is removed.
    fn refuse(&self, request: &Request, error: &Error, reply: Reply<Applied>) {
        if request.source.kind == Source::Manual && matches!(request.ask, Ask::Image(_)) {
            orphan::purge_if_gone(&self.store, &self.bus, error);
        } else {
            orphan::mark_missing(&self.store, error);
        }
        reply(Err(error.clone()));
    }

    fn end(mut self) {
        // Backends stay as they are; the workers end when they are dropped with `self`, all at once.
        self.workers.cancel();
        for job in self.jobs.take_all() {
            job.refuse(Error::Ending);
        }
        self.queue.refuse(&Error::Ending);
    }
}

#[cfg(test)]
mod tests;
