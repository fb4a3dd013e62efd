//! Sets the wallpapers of the monitors.
//!
//! The thread `reconciler` owns the assignments. After each event it decides afresh what each output
//! should show (`scene`), compares that with what the workers show (`slots`), and sends the orders that
//! may be sent now (`orders`); all three are pure. A `worker` is a thread that carries out orders: one
//! for each backend in use, or one for each output if the backend has a process for each
//! (`worker_key`). The reconciler never waits for a backend, so that it can always answer. The pictures
//! of a request lie over the assignments until they are shown or have failed (`tickets`).

mod announced;
mod backend_choice;
mod backoff;
mod candidates;
mod content_names;
mod error;
mod fallbacks;
mod feasible;
mod handle;
mod inputs;
mod missing_file;
mod orders;
mod paused_outputs;
mod picture;
mod previous;
mod reconciler;
mod recovery;
mod request;
mod scene;
mod slices;
mod slots;
mod sound;
mod status;
mod tickets;
mod worker;
mod worker_key;
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
pub use request::Targets;
pub use request::{Applied, Ask, Request};
pub(crate) use request::{Reply, WithRows};

pub(crate) use status::HookRequest;
pub(crate) use workspace_follower::WorkspaceFollower;
pub(crate) use workspaces::{entries_by_name, reference};

use reconciler::{Reconciler, Tools};
use request::OnLost;
use status::SharedStatus;

/// Starts the reconciler, which adopts the wallpapers that are still shown and restores the others.
pub fn start(
    spawner: &Spawner,
    store: Store,
    bus: EventBus,
    backends: Backends,
    desktop: desktop::Handle,
    on_lost: OnLost,
) -> std::io::Result<(Handle, ReconcilerOwner)> {
    let status = SharedStatus::before_look();
    let (handle, end, mailbox) = Handle::new(status.clone());
    let tools = Tools {
        store,
        bus,
        desktop,
        backends,
        on_lost,
    };
    let reconciler = Reconciler::new(spawner.clone(), tools, status);
    let thread = spawner.spawn("reconciler", move || reconciler.run(&mailbox))?;
    Ok((handle, OwnedThread::new(end, thread)))
}

#[cfg(test)]
mod tests;
