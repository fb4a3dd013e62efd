//! The findings so far.

use crate::wire::{Finding, FindingState};

#[derive(Debug, Default)]
pub(super) struct Report(Vec<Finding>);

impl Report {
    pub(super) fn ok(&mut self, subject: &str, text: impl Into<String>) {
        self.add(subject, FindingState::Ok, text.into(), None);
    }

    /// Works; `step` is what may be done about it, if anything.
    pub(super) fn note(&mut self, subject: &str, text: impl Into<String>, step: Option<&str>) {
        self.add(subject, FindingState::Note, text.into(), step.map(str::to_owned));
    }

    pub(super) fn fix(&mut self, subject: &str, text: impl Into<String>, step: impl Into<String>) {
        self.add(subject, FindingState::Fix, text.into(), Some(step.into()));
    }

    /// The number of things to fix.
    pub(super) fn count(&self) -> usize {
        self.0.iter().filter(|finding| finding.state == FindingState::Fix).count()
    }

    pub(super) fn findings(self) -> Vec<Finding> {
        self.0
    }

    fn add(&mut self, subject: &str, state: FindingState, text: String, step: Option<String>) {
        self.0.push(Finding { subject: subject.to_owned(), state, text, step });
    }
}
