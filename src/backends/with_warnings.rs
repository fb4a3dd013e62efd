//! A wrapper around every backend: it carries the transition of one call, and warns about programs
//! that draw over the backend. Runs on the backend's own thread.

use std::collections::BTreeSet;

use super::fit_and_transition::OwnTransition;
use super::foreign::{Surroundings, find, is_used, warning};
use super::{Backend, Error, Placement};
use crate::config::BackendName;
use crate::sys::Cancel;

/// A backend that adds warnings about such programs after each change.
pub(super) struct WithWarnings {
    pub(super) backend: Box<dyn Backend>,
    pub(super) name: BackendName,
    pub(super) surroundings: Surroundings,
    pub(super) transition: OwnTransition,
}

impl Backend for WithWarnings {
    fn use_transition(&mut self, word: Option<&str>) {
        self.transition.set(word);
        self.backend.use_transition(word);
    }

    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error> {
        self.backend.show(placements, cancel)
    }

    fn renew(&mut self) {
        self.backend.renew();
    }

    fn warnings(&mut self) -> Vec<String> {
        let conflicts = find(&self.surroundings).into_iter();
        let conflicts = conflicts.filter(|conflict| !is_used(self.name, &conflict.program));
        let warnings = conflicts.map(|conflict| warning(&conflict, &self.surroundings));
        self.backend.warnings().into_iter().chain(warnings).collect()
    }

    fn spans_outputs(&self) -> bool {
        self.backend.spans_outputs()
    }

    fn knows_by_path(&self) -> bool {
        self.backend.knows_by_path()
    }

    fn unseen(&mut self) -> Vec<String> {
        self.backend.unseen()
    }

    fn pause(&mut self, outputs: &BTreeSet<String>, cancel: &Cancel) -> Result<(), Error> {
        self.backend.pause(outputs, cancel)
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.backend.clear()
    }

    fn is_whole(&mut self) -> bool {
        self.backend.is_whole()
    }
}
