//! What the reconciler has been told and asked, and has not stored in the database.

use std::collections::VecDeque;

use super::Error;
use super::backend_choice::FoundBackends;
use super::paused_outputs::Pause;
use super::request::{Activated, Reply, add_new};
use super::worker_key::WorkerKey;
use super::workspaces::Refusals;
use crate::backends;
use crate::config::{BackendName, SelectionMode};
use crate::events::Subscription;
use crate::store::workspaces::WorkspacePicture;

pub(super) struct Inputs {
    /// The activated backend, until the settings name it.
    pub(super) activated: Option<Activation>,
    pub(super) found: FoundBackends,
    pub(super) pause: Pause,
    pub(super) refusals: Refusals,
    /// The pictures of workspaces, as they are in the database.
    pub(super) workspaces: Vec<WorkspacePicture>,
    /// Changes of images and playlists.
    pub(super) library: Subscription,
    /// The wallpapers were removed because the daemon ends, so nothing is shown any more.
    pub(super) is_cleared: bool,
}

/// A backend that was activated, but is not yet the one in the settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activation {
    pub(super) backend: BackendName,
    /// The settings at that time. Once they change, they take precedence.
    pub(super) settings: (BackendName, SelectionMode),
}

impl Inputs {
    pub(super) fn new(library: Subscription, workspaces: Vec<WorkspacePicture>) -> Self {
        Self {
            activated: None,
            found: FoundBackends::default(),
            pause: Pause::default(),
            refusals: Refusals::new(),
            workspaces,
            library,
            is_cleared: false,
        }
    }
}

/// How many commands of a kind may wait; one more is refused.
pub(super) const MOST: usize = 32;

/// The commands that wait until everything is shown or removed.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) activation: Option<Activating>,
    /// Activations that have not begun.
    pub(super) later: VecDeque<(String, Reply<Activated>)>,
    pub(super) settles: Vec<Reply<()>>,
    pub(super) clears: Vec<Reply<()>>,
    /// The first failure of a removal.
    pub(super) not_cleared: Option<Error>,
}

pub(super) struct Activating {
    pub(super) backend: BackendName,
    /// The backend that was activated before, in case this one fails.
    pub(super) before: Option<Activation>,
    pub(super) warnings: Vec<String>,
    pub(super) reply: Reply<Activated>,
}

impl Waiting {
    /// Adds warnings to the answer to an activation; returns false if there is none.
    pub(super) fn warn(&mut self, warnings: &[String]) -> bool {
        let Some(activation) = &mut self.activation else {
            return false;
        };
        add_new(&mut activation.warnings, warnings);
        true
    }

    /// Removes and returns the activation of the backend of a worker that has failed.
    pub(super) fn fail(&mut self, key: &WorkerKey) -> Option<Activating> {
        self.activation
            .take_if(|activation| activation.backend == key.backend)
    }

    /// Notes that the pictures of a worker could not be removed.
    pub(super) fn note_failed_clear(&mut self, key: &WorkerKey, error: &backends::Error) {
        if !self.clears.is_empty() {
            self.not_cleared.get_or_insert(Error::Backend {
                backend: key.backend,
                source: error.clone(),
            });
        }
    }

    /// Refuses all commands, except removals.
    pub(super) fn refuse(&mut self, error: &Error) {
        let current = self.activation.take().map(|one| one.reply);
        let later = self.later.drain(..).map(|(_, reply)| reply);
        current
            .into_iter()
            .chain(later)
            .for_each(|reply| reply(Err(error.clone())));
        self.settles
            .drain(..)
            .for_each(|reply| reply(Err(error.clone())));
    }
}
