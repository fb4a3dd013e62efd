//! What is shown on the monitors, and the thread that sees to it.
//!
//! The thread `reconciler` owns the assignments: it decides what is shown where (`assignments`, `selection` and `plan`,
//! all pure) and gives the orders. A `worker` carries them out: a thread for each `worker_key`, which is a
//! backend in use, or one of its outputs where those have processes of their own. The reconciler never
//! waits for a backend, so that it can always answer. Changes on different monitors by different workers
//! are carried out side by side, others one after the other (`queue`); those that wait are superseded
//! by later ones for the same monitors.

mod assignments;
mod backoff;
mod error;
mod execute;
mod job;
mod orphan;
mod plan;
mod queue;
mod reconciler;
mod recovery;
mod request;
mod retained;
mod selection;
mod slices;
mod targets;
mod worker;
mod worker_key;
mod world_state;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Sender, TrySendError, bounded};

use crate::backends::{Backends, Placement};
use crate::config::BackendName;
use crate::events::EventBus;
use crate::store::Store;
use crate::thread::{Spawner, Thread};

pub use error::Error;
pub use request::{Activated, Applied, Ask, Outcome, Reply, Request};
pub use targets::Targets;

use reconciler::{Command, Reconciler};

/// Commands that wait for the reconciler; one more is refused with [`Error::Busy`].
const INBOX: usize = 32;

/// What other rooms ask the reconciler through.
#[derive(Clone)]
pub struct Handle {
    inbox: Sender<Command>,
    status: SharedStatus,
}

/// Which backend is in use, for whoever wants to know without asking the reconciler.
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub active: Option<BackendName>,
    /// The programs looked for, where none is there.
    pub checked: Vec<String>,
    /// Settings changed that the reconciler has not looked at yet, and whose.
    changed: Option<Vec<BackendName>>,
    /// What was activated is not what the settings will say.
    deactivated: bool,
    /// What each backend is known to show.
    current: BTreeMap<BackendName, Arc<[Placement]>>,
}

type SharedStatus = Arc<Mutex<Status>>;

/// The owner of the reconciler: ends it when dropped. Declared in this order, the inbox closes before
/// the thread is joined.
pub struct ReconcilerOwner {
    handle: Option<Handle>,
    thread: Option<Thread>,
}

/// Starts the reconciler. It restores what was shown before, and takes over what still is.
pub fn start(
    spawner: &Spawner,
    store: Store,
    bus: EventBus,
    backends: Backends,
) -> std::io::Result<(Handle, ReconcilerOwner)> {
    let (inbox, commands) = bounded(INBOX);
    let status = SharedStatus::default();
    let reconciler = Reconciler::new(spawner.clone(), store, bus, backends, Arc::clone(&status));
    let thread = spawner.spawn("reconciler", move || reconciler.run(&commands))?;
    let handle = Handle { inbox, status };
    Ok((handle.clone(), ReconcilerOwner { handle: Some(handle), thread: Some(thread) }))
}

impl Handle {
    /// Shows a picture; `reply` is called by the reconciler once it is up, has failed or is superseded.
    pub fn set(&self, request: Request, reply: Reply<Applied>) {
        self.send(Command::Set(request, reply));
    }

    /// Makes a backend the one in use, for all that is shown.
    pub fn activate(&self, name: String, reply: Reply<Activated>) {
        self.send(Command::Activate(name, reply));
    }

    /// Takes down all that we show, for the end: what is in hand or waits is refused.
    pub fn clear(&self, reply: Reply<()>) {
        self.send(Command::Clear(reply));
    }

    /// Settings, or what is known of images, have changed: chooses anew and shows what is other than
    /// it was. `backends` names those whose own
    /// settings changed.
    pub fn settings_changed(&self, backends: Vec<BackendName>) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.changed.get_or_insert_default().extend(backends);
        drop(status);
        // Where the inbox is full the reconciler finds the note after the command at work.
        self.inbox.try_send(Command::SettingsChanged).ok();
    }

    /// Goes back to what the settings say: what was activated could not be written there.
    pub fn deactivate(&self) {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).deactivated = true;
        self.settings_changed(Vec::new());
    }

    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a backend is known to show.
    pub fn shown_by(&self, backend: BackendName) -> Arc<[Placement]> {
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.current.get(&backend).map_or_else(|| Arc::from([]), Arc::clone)
    }

    fn send(&self, command: Command) {
        match self.inbox.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(command)) => command.refuse(Error::Busy),
            Err(TrySendError::Disconnected(command)) => command.refuse(Error::Ending),
        }
    }
}

impl ReconcilerOwner {
    /// Ends the reconciler; `false` if it is late. What is shown stays.
    pub fn end(mut self, deadline: std::time::Instant) -> bool {
        if let Some(handle) = self.handle.take() {
            handle.send(Command::End);
        }
        self.thread.take().is_none_or(|thread| thread.join_by(deadline))
    }
}

impl Drop for ReconcilerOwner {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.send(Command::End);
        }
    }
}
