//! What hangs on the monitors, and the thread that hangs it.
//!
//! The thread `stage` owns the scene: it decides what hangs where (`scene`, `selection` and `plan`,
//! all pure) and gives the orders. A `worker` carries them out: a thread for each `seat`, which is a
//! backend in use, or one of its outputs where those have processes of their own. The stage never
//! waits for a setter, so that it can always answer. Changes on different monitors by different seats
//! are carried out side by side, others one after the other (`line`); those that wait are superseded
//! by later ones for the same monitors.

mod backoff;
mod carry;
mod failure;
mod held;
mod job;
mod line;
mod orphan;
mod past;
mod plan;
mod request;
mod scene;
mod seat;
mod selection;
mod slices;
mod stage;
mod survey;
mod targets;
mod worker;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Sender, TrySendError, bounded};

use crate::backends::{Hanging, Setters};
use crate::config::BackendName;
use crate::events::Hub;
use crate::store::Store;
use crate::thread::{Spawner, Thread};

pub use failure::Failure;
pub use request::{Activated, Applied, Ask, Outcome, Reply, Request};
pub use targets::Targets;

use stage::{Command, Stage};

/// Commands that wait for the stage; one more is refused with [`Failure::Busy`].
const INBOX: usize = 32;

/// The stage's handle.
#[derive(Clone)]
pub struct Walls {
    inbox: Sender<Command>,
    status: SharedStatus,
}

/// Which backend is in use, for whoever wants to know without asking the stage.
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub active: Option<BackendName>,
    /// The programs looked for, where none is there.
    pub checked: Vec<String>,
    /// Settings changed that the stage has not looked at yet, and whose.
    changed: Option<Vec<BackendName>>,
    /// What was activated is not what the settings will say.
    deactivated: bool,
    /// What each backend is known to show.
    hung: BTreeMap<BackendName, Arc<[Hanging]>>,
}

type SharedStatus = Arc<Mutex<Status>>;

/// The owner of the stage: ends it when dropped. Declared in this order, the inbox closes before
/// the thread is joined.
pub struct StageOwner {
    walls: Option<Walls>,
    thread: Option<Thread>,
}

/// Starts the stage. It restores what hung before, and takes over what still hangs.
pub fn start(
    spawner: &Spawner,
    store: Store,
    hub: Hub,
    setters: Setters,
) -> std::io::Result<(Walls, StageOwner)> {
    let (inbox, commands) = bounded(INBOX);
    let status = SharedStatus::default();
    let stage = Stage::new(spawner.clone(), store, hub, setters, Arc::clone(&status));
    let thread = spawner.spawn("stage", move || stage.run(&commands))?;
    let walls = Walls { inbox, status };
    Ok((walls.clone(), StageOwner { walls: Some(walls), thread: Some(thread) }))
}

impl Walls {
    /// Hangs a picture; `reply` is called by the stage once it is up, has failed or is superseded.
    pub fn set(&self, request: Request, reply: Reply<Applied>) {
        self.send(Command::Set(request, reply));
    }

    /// Makes a backend the one in use, with all that hangs.
    pub fn activate(&self, name: String, reply: Reply<Activated>) {
        self.send(Command::Activate(name, reply));
    }

    /// Takes down all that we hung, for the end: what is in hand or waits is refused.
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
        // Where the inbox is full the stage finds the note after the command that it has in hand.
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
    pub fn hung_by(&self, backend: BackendName) -> Arc<[Hanging]> {
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.hung.get(&backend).map_or_else(|| Arc::from([]), Arc::clone)
    }

    fn send(&self, command: Command) {
        match self.inbox.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(command)) => command.refuse(Failure::Busy),
            Err(TrySendError::Disconnected(command)) => command.refuse(Failure::Ending),
        }
    }
}

impl StageOwner {
    /// Ends the stage; `false` if it is late. What hangs stays.
    pub fn end(mut self, deadline: std::time::Instant) -> bool {
        if let Some(walls) = self.walls.take() {
            walls.send(Command::End);
        }
        self.thread.take().is_none_or(|thread| thread.join_by(deadline))
    }
}

impl Drop for StageOwner {
    fn drop(&mut self) {
        if let Some(walls) = self.walls.take() {
            walls.send(Command::End);
        }
    }
}
