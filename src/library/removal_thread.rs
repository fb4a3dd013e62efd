//! The thread `remove`: removes files whose rows are gone, or moves them to the trash, one removal after
//! another. It waits for users' disks, so that no other thread does.
//!
//! Its first work after a start is to reconcile rows and files (`reconcile`), with what the last run has
//! left to remove.

use crossbeam_channel::{Receiver, Sender};

use super::context::ImportContext;
use super::file_removal::{Removal, clear};
use super::reconcile;
use crate::store::pending_files::Pending;

/// The maximum number of removals that wait; another delete is refused.
pub(super) const REMOVALS_MAX: usize = 64;

/// The body of the thread. `reconciling` is dropped when rows and files were compared.
pub(super) fn run(
    context: &ImportContext,
    leftovers: &[Pending],
    reconciling: Sender<()>,
    removals: Receiver<Removal>,
) {
    reconcile::run(context, leftovers);
    drop(reconciling);
    for Removal {
        files,
        trash,
        reply,
    } in removals
    {
        reply(Ok(clear(context, files, trash)));
    }
}
