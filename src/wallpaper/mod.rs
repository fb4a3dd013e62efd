//! Sets the wallpapers of the monitors.
//!
//! The thread `reconciler` owns the assignments. It decides what each monitor shows (`assignments`,
//! `backend_choice` and `plan`, all pure) and sends orders to the workers. A `worker` is a thread that
//! carries out orders: one for each backend in use, or one for each output if the backend has a process
//! for each (`plan::WorkerKey`). The reconciler never waits for a backend, so that it can always answer.
//! Changes on different monitors by different workers are carried out in parallel (`jobs`), others one
//! after another (`queue`). A waiting request is superseded by a later one for the same monitors.

mod assignments;
mod backend_choice;
mod backoff;
mod candidates;
mod error;
mod feasible;
mod handle;
mod jobs;
mod links;
mod orphan;
mod paused_outputs;
mod plan;
mod previous;
mod queue;
mod reconciler;
mod recovery;
mod request;
mod slices;
mod sound;
mod status;
mod upkeep;
mod worker;
mod workspace_follower;
mod workspaces;
mod world_state;

use crate::backends::Backends;
use crate::desktop;
use crate::events::EventBus;
use crate::store::Store;
use crate::thread::{OwnedThread, Spawner};

pub use error::Error;
pub(crate) use error::Remedy;
pub use handle::{Handle, ReconcilerOwner};
pub(crate) use request::Reply;
pub use request::Targets;
pub use request::{Applied, Ask, Request};

pub(crate) use status::HookRequest;
pub(crate) use workspace_follower::WorkspaceFollower;
pub(crate) use workspaces::{entries_by_name, reference};

use reconciler::Reconciler;
use status::SharedStatus;

/// Starts the reconciler, which adopts the wallpapers that are still shown and restores the others.
pub fn start(
    spawner: &Spawner,
    store: Store,
    bus: EventBus,
    backends: Backends,
    desktop: desktop::Handle,
) -> std::io::Result<(Handle, ReconcilerOwner)> {
    let status = SharedStatus::before_look();
    let (handle, end, mailbox) = Handle::new(status.clone());
    let reconciler = Reconciler::new(spawner.clone(), store, bus, desktop, backends, status);
    let thread = spawner.spawn("reconciler", move || reconciler.run(&mailbox))?;
    Ok((handle, OwnedThread::new(end, thread)))
}

#[cfg(test)]
mod tests;
