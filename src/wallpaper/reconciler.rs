//! The thread `reconciler`: takes commands, sends orders to the workers (`orders`) and answers.
//!
//! After each event it looks at everything again. It writes rows itself, those of a picture once the
//! picture is shown, and calls no backend. Refusals are answered here; successes by the thread
//! `desktop`, once the files for other programs are up to date (`announce`).

mod activate;
mod announce;
mod changes;
mod orders;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, at, never, select};

use crate::backends::{Backends, Placement};
use crate::compositor::{Output, alike, identities};
use crate::config::BackendName;
use crate::desktop;
use crate::error_chain::chain;
use crate::events::EventBus;
use crate::library::Content;
use crate::paths::late_answers;
use crate::store::{self, Store};
use crate::sys::Gate;
use crate::thread::Spawner;
use crate::wire::{Source, Workspace};

use super::Error;
use super::announced::Announced;
use super::feasible::Feasible;
use super::inputs::{Inputs, Waiting};
use super::missing_file;
use super::orders::View;
use super::recovery::Recovery;
use super::request::{Applied, Ask, OnLost, Reply, Request};
use super::scene::{self, Desired, Wanted};
use super::slots::{Scene, Slots};
use super::status::SharedStatus;
use super::tickets::Tickets;
use super::worker::Workers;
use super::world_state::WorldState;

/// How many missing images a random request skips before it fails.
const PICKS: usize = 32;

/// How often a turn may begin again, because requests end or orders fail at once.
const ROUNDS: usize = 200;

/// How long to wait for the compositor. A working one lists its outputs within 20 ms, unless the
/// machine is busy, as at a login.
pub(super) const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// A command of another thread, or its refusal.
pub(super) type Command = Box<dyn FnOnce(Result<&mut Reconciler, Error>) + Send>;

/// The channels that the reconciler listens to, beside outputs and its workers.
pub(super) struct Mailbox {
    pub(super) commands: Receiver<Command>,
    /// Wakes the reconciler; the changes are in the [`SharedStatus`].
    pub(super) changed: Receiver<()>,
    /// Closes when the reconciler should end.
    pub(super) end: Receiver<()>,
}

impl Mailbox {
    /// Returns when the outputs have been looked at, at the end, or after some seconds.
    fn wait_for_look(&self, outputs: &Gate) {
        select! {
            recv(outputs.opened()) -> _ => {},
            recv(self.end) -> _ => {},
            default(LOOK_WITHIN) => {},
        }
    }
}

pub(super) struct Reconciler {
    tools: Tools,
    status: SharedStatus,
    workers: Workers,
    inputs: Inputs,
    /// As last read; `None` if something may have changed that the next reader would not notice.
    world: Option<Arc<WorldState>>,
    slots: Slots,
    tickets: Tickets,
    waiting: Waiting,
    announced: Announced,
    recovery: Recovery,
}

/// The other modules that the reconciler uses.
pub(super) struct Tools {
    pub(super) store: Store,
    pub(super) bus: EventBus,
    /// Updates what other programs read, before a change is reported to clients.
    pub(super) desktop: desktop::Handle,
    pub(super) backends: Backends,
    pub(super) on_lost: OnLost,
}

impl Reconciler {
    pub(super) fn new(spawner: Spawner, tools: Tools, status: SharedStatus) -> Self {
        let workers = Workers::new(spawner, tools.backends.clone());
        let recovery = Recovery::open(&tools.backends);
        // The workspaces of the previous run count as visible until the compositor reports the current
        // ones.
        let workspaces = tools.store.read(store::workspaces::all).unwrap_or_default();
        status.restore_workspaces(&workspaces);
        let of_library = changes::OF_LIBRARY.into_iter().collect();
        let library = tools.bus.subscribe(of_library, || ());
        Self {
            tools,
            status,
            workers,
            inputs: Inputs::new(library, workspaces),
            world: None,
            slots: Slots::default(),
            tickets: Tickets::default(),
            waiting: Waiting::default(),
            announced: Announced::default(),
            recovery,
        }
    }

    pub(super) fn run(mut self, mailbox: &Mailbox) {
        let outputs = self.tools.backends.outputs.subscribe();
        let library = self.inputs.library.receiver().clone();
        let reports = self.workers.reports();
        let late_answers = late_answers();
        mailbox.wait_for_look(self.tools.backends.outputs.looked());
        self.reconcile();
        self.status.looked.open();
        loop {
            let retry = self.slots.backoffs.next_retry().map_or_else(never, at);
            select! {
                recv(mailbox.commands) -> command => match command {
                    Ok(command) => {
                        // The command must see the changes that were made before it.
                        self.on_settings();
                        self.note_event();
                        command(Ok(&mut self));
                    }
                    Err(_) => break,
                },
                recv(mailbox.changed) -> _ => self.on_settings(),
                recv(mailbox.end) -> _ => break,
                recv(reports) -> report => if let Ok(report) = report { self.on_report(report) },
                recv(outputs) -> _ => self.reconcile(),
                recv(late_answers) -> _ => self.reconcile(),
                recv(library) -> message => if let Ok(message) = message { self.on_library(message) },
                recv(retry) -> _ => self.retry(),
            }
        }
        self.end();
        mailbox
            .commands
            .try_iter()
            .for_each(|command| command(Err(Error::Ending)));
    }

    fn retry(&mut self) {
        let due = self.slots.backoffs.wake(Instant::now());
        self.slots.note_due(|key| due.contains(key));
        self.reconcile();
    }

    /// Looks at everything again after a change, and also tries again what has failed.
    fn reconcile(&mut self) {
        self.note_event();
        self.slots.note_reason();
        self.turn();
    }

    /// Notes an event from outside, which may have changed anything.
    fn note_event(&mut self) {
        self.world = None;
        self.slots.note_event();
        let session = self.tools.backends.outputs.session_number();
        self.slots.backoffs.in_session(session);
    }

    /// Whether a file with this content could be shown as a request asks.
    pub(super) fn check(&mut self, request: &Request, content: &Content) -> Result<(), Error> {
        self.world()?.check(request, content)
    }

    pub(super) fn workspaces(&mut self) -> Result<Vec<Workspace>, Error> {
        let world = self.world()?;
        let visible = self.status.visible_workspaces();
        world.workspaces(&self.tools.store, &visible, &self.inputs.refusals)
    }

    pub(super) fn set(&mut self, request: Request, reply: Reply<Applied>) {
        if self.inputs.is_cleared {
            return reply(Err(Error::Ending));
        }
        let feasible = match self.feasible(&request) {
            Ok(feasible) => feasible,
            Err(error) => return self.refuse(&request, &error, reply),
        };
        let revision = self.slots.number();
        self.tickets.begin(revision, (request, feasible), reply);
        // A picture that is set again is shown again, as another program may have drawn over it.
        if let Ok(world) = self.world() {
            let desired = self.desired(&world);
            let is_its = |one: &Wanted, key: &_| one.ticket == Some(revision) && one.key == *key;
            self.slots
                .note_due(|key| desired.values().any(|one| is_its(one, key)));
        }
        self.turn();
    }

    /// Ends the requests that have ended, and sends all orders that may be sent now.
    fn turn(&mut self) {
        for _ in 0..ROUNDS {
            let world = match self.world() {
                Ok(world) => world,
                Err(error) => {
                    log::error!("cannot read the current wallpapers: {}", chain(&error));
                    return self.refuse_all(&error.into());
                }
            };
            self.recall(&world);
            let desired = self.desired(&world);
            let ended = self.tickets.take_ended(&world, &desired, &self.slots);
            if let Some((ticket, end)) = ended {
                self.conclude(ticket, end);
                continue;
            }
            let view = View {
                outputs: &world.outputs,
                slots: &self.slots,
                desired: &desired,
                tickets: &self.tickets,
                is_gone: &|one| missing_file::file_is_missing(&one.path),
                is_cleared: self.inputs.is_cleared,
            };
            let sent: Vec<bool> = view.next().into_iter().map(|one| self.send(one)).collect();
            if sent.iter().all(|is_sent| *is_sent) {
                return self.conclude_turn(&world, &desired);
            }
        }
        log::error!("the wallpapers do not come to rest: waiting for the next change");
    }

    fn conclude_turn(&mut self, world: &WorldState, desired: &Desired) {
        let is_used = |key: &_| desired.values().any(|wanted| wanted.key == *key);
        self.slots.tidy(is_used);
        if !self.inputs.is_cleared {
            self.note_active(world);
            self.note_workspaces(world);
            self.announce_unshowable(world);
            self.announced.keep(|monitor| world.is_connected(monitor));
        }
        let is_activated = self.is_activated(desired);
        if is_activated || self.waiting.activation.is_none() {
            self.announce(world, desired);
        }
        self.apply_pause();
        if self.answer_waiting(is_activated) {
            self.turn();
        }
    }

    /// All that should be shown now.
    fn desired(&self, world: &WorldState) -> Desired {
        if self.inputs.is_cleared {
            return Desired::new();
        }
        scene::desired(world, &self.tickets.wishes(), &self.slots)
    }

    /// What decisions depend on, as it is now. Reads again only what has changed.
    fn world(&mut self) -> Result<Arc<WorldState>, store::Error> {
        let Tools {
            store, backends, ..
        } = &self.tools;
        let outputs = backends.outputs.list();
        let is_new = |world: &&Arc<WorldState>| {
            world.generation == store.generation() && Arc::ptr_eq(&world.outputs, &outputs)
        };
        if let Some(world) = self.world.as_ref().filter(is_new) {
            return Ok(Arc::clone(world));
        }
        follow_monitors(store, &outputs)?;
        let activated = self.inputs.activated.map(|activated| activated.backend);
        let mut world = WorldState::read(store, backends, activated)?;
        let draws = self.slots.iter().any(|(key, slot)| {
            let draws = slot.sent.is_some() || !slot.shown.is_empty();
            key.backend == BackendName::Builtin && draws
        });
        let unused = self.inputs.found.keep(&mut world.available, draws);
        self.status.set_choice(activated, unused);
        let visible = self.status.visible_workspaces();
        world.cover(store, &visible, &self.inputs.refusals)?;
        let used = world.pictures.values().map(|image| &**image);
        world.colors.tidy(used);
        let world = Arc::new(world);
        self.world = Some(Arc::clone(&world));
        Ok(world)
    }

    /// Adopts what an earlier daemon left on the outputs, once there are outputs.
    fn recall(&mut self, world: &WorldState) {
        let compositor = self.tools.backends.compositor();
        let Some(recalled) = self.recovery.recall(&world.outputs, compositor) else {
            return;
        };
        for (key, placements) in recalled {
            let by_output = |one: Placement| (one.output.name.clone(), one);
            let shown = placements.into_iter().map(by_output).collect();
            self.slots.adopt(key, shown);
        }
        self.adopt_left();
        let desired = self.desired(world);
        let used = desired.values().map(|wanted| &wanted.key);
        let known = self.slots.iter().map(|(key, _)| key);
        self.recovery.sweep(&self.tools.backends, used.chain(known));
    }

    /// Adopts the processes of an earlier daemon of which no note says what they show.
    fn adopt_left(&mut self) {
        for key in self.recovery.take_left() {
            self.slots.adopt(key, Scene::new());
        }
    }

    /// Plans a request for the current state.
    fn feasible(&mut self, request: &Request) -> Result<Feasible, Error> {
        let mut gone = BTreeSet::new();
        loop {
            let world = self.world()?;
            let wishes = self.tickets.wishes();
            match world.feasible(&self.tools.store, request, &wishes, &gone) {
                // A random request can pick another image.
                Err(Error::FileGone { id, .. })
                    if request.ask == Ask::Random && gone.len() < PICKS && gone.insert(id) =>
                {
                    (self.tools.on_lost)(id, false);
                }
                feasible => return feasible,
            }
        }
    }

    /// Answers a request that cannot be carried out. Only an image that a user has named is removed.
    fn refuse(&self, request: &Request, error: &Error, reply: Reply<Applied>) {
        if let Error::NoImage { id } | Error::FileGone { id, .. } = error {
            let is_manual = request.source.kind == Source::Manual;
            (self.tools.on_lost)(*id, is_manual && matches!(request.ask, Ask::Image(_)));
        }
        reply(Err(error.clone()));
    }

    fn refuse_all(&mut self, error: &Error) {
        for ticket in self.tickets.take_all() {
            (ticket.reply)(Err(error.clone()));
        }
        self.waiting.refuse(error);
    }

    fn end(mut self) {
        // Backends stay as they are; the workers end when they are dropped with `self`, all at once.
        self.workers.cancel();
        self.refuse_all(&Error::Ending);
    }
}

/// Moves the assignments of monitors that have changed connectors.
pub(super) fn follow_monitors(store: &Store, outputs: &[Output]) -> Result<(), store::Error> {
    let (identities, alike) = (identities(outputs), alike(outputs));
    let known = store.read(store::monitors::identities)?;
    let is_new = |(name, identity)| known.get(name) != Some(identity);
    if identities.iter().any(is_new) || alike.iter().any(|name| known.contains_key(name)) {
        store.write(|transaction| store::monitors::follow(transaction, &identities, &alike))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
