//! The commands that wait until everything is shown or removed.

use std::collections::VecDeque;

use super::Error;
use super::inputs::Activation;
use super::request::{Activated, Reply};
use super::worker_key::WorkerKey;
use crate::backends;
use crate::config::BackendName;

/// How many commands of a kind may wait; one more is refused.
pub(super) const MOST: usize = 32;

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
    /// The backend that is being activated.
    pub(super) fn activation(&self) -> Option<BackendName> {
        self.activation.as_ref().map(|one| one.backend)
    }

    /// Adds warnings to the answer to an activation; returns false if there is none.
    pub(super) fn warn(&mut self, warnings: &[String]) -> bool {
        let Some(activation) = &mut self.activation else {
            return false;
        };
        for warning in warnings {
            if !activation.warnings.contains(warning) {
                activation.warnings.push(warning.clone());
            }
        }
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
