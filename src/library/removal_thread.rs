//! The thread `remove`: removes files whose rows are gone, or moves them to the trash, one removal after
//! another. It waits for users' disks, so that no other thread does.
//!
//! Its first work after a start is to reconcile rows and files (`reconcile`), with what the last run has
//! left to remove.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use super::context::ImportContext;
use super::file_removal::{Removal, clear};
use super::reconcile::{self, Leftovers};

/// The maximum number of removals that wait; another delete is refused.
pub(super) const REMOVALS_MAX: usize = 64;

pub(super) struct Remover {
    pub(super) context: Arc<ImportContext>,
    pub(super) leftovers: Leftovers,
    /// Dropped when rows and files were compared.
    pub(super) reconciling: Sender<()>,
    pub(super) removals: Receiver<Removal>,
}

impl Remover {
    /// The body of the thread.
    pub(super) fn run(self) {
        reconcile::run(&self.context, self.leftovers);
        drop(self.reconciling);
        for Removal {
            files,
            trash,
            reply,
        } in self.removals
        {
            reply(Ok(clear(&self.context, files, trash)));
        }
    }
}
