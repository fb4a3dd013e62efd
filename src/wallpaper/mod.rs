//! The wallpapers of the monitors, and the thread that sets them.
//!
//! The thread `reconciler` owns the assignments: it decides what is shown where (`assignments`,
//! `backend_choice` and `plan`, all pure) and gives the orders. A `worker` carries them out: a thread
//! for each `worker_key`, which is a backend in use, or one of its outputs where those have processes
//! of their own. The reconciler never waits for a backend, so that it can always answer. Changes on
//! different monitors by different workers are carried out side by side (`jobs`), others one after the
//! other (`queue`); those that wait are superseded by later ones for the same monitors.

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
mod queue;
mod reconciler;
mod recovery;
mod request;
mod slices;
mod sound;
mod status;
mod worker;
mod workspace_follower;
mod workspaces;
mod world_state;

use crate::backends::Backends;
use crate::desktop;
use crate::events::EventBus;
use crate::store::Store;
use crate::thread::Spawner;

pub use error::Error;
pub(crate) use error::Remedy;
pub use handle::{Handle, ReconcilerOwner};
pub use request::Targets;
pub use request::{Applied, Ask, Request};
pub(crate) use request::{Reply, SeeAgain};

pub(crate) use status::HookRequest;
pub(crate) use workspace_follower::WorkspaceFollower;
pub(crate) use workspaces::{entries_by_name, reference};

use reconciler::Reconciler;
use status::SharedStatus;

/// Starts the reconciler. It restores what was shown before, and takes over what still is.
pub fn start(
    spawner: &Spawner,
    store: Store,
    bus: EventBus,
    backends: Backends,
    desktop: desktop::Handle,
    see_again: SeeAgain,
) -> std::io::Result<(Handle, ReconcilerOwner)> {
    let status = SharedStatus::before_look();
    let (handle, end, mailbox) = Handle::new(status.clone());
    let reconciler =
        Reconciler::new(spawner.clone(), store, bus, desktop, backends, status, see_again);
    let thread = spawner.spawn("reconciler", move || reconciler.run(&mailbox))?;
    Ok((handle, ReconcilerOwner::new(end, thread)))
}

#[cfg(test)]
mod tests;
