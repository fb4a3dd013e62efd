//! The processes of a backend that has one for all outputs. While it is replaced there are two, and an
//! earlier daemon may have left more; the last one is what is seen.
//!
//! Runs on the worker's thread.

use super::context::Context;
use crate::process::BackendProcess;

pub(super) struct Processes {
    /// All of ours that run, the oldest first.
    running: Vec<BackendProcess>,
    /// How one of them is ended.
    end: fn(BackendProcess),
}

impl Processes {
    /// Those of an earlier daemon.
    pub(super) fn taken_over(context: &Context, backend: &str, end: fn(BackendProcess)) -> Self {
        Self { running: context.take_over(backend), end }
    }

    pub(super) fn newest(&self) -> Option<&BackendProcess> {
        self.running.last()
    }

    /// Whether others were there before the newest.
    pub(super) fn has_older(&self) -> bool {
        self.running.len() > 1
    }

    pub(super) fn any(&self, is_it: impl FnMut(&BackendProcess) -> bool) -> bool {
        self.running.iter().any(is_it)
    }

    /// Whether the one that is seen still runs; forgets those that have ended.
    pub(super) fn is_whole(&mut self) -> bool {
        let identity = |all: &Self| all.newest().map(|process| process.child().identity());
        let seen = identity(self);
        self.reap();
        identity(self) == seen
    }

    /// Forgets those that have ended.
    pub(super) fn reap(&mut self) {
        for dead in self.running.extract_if(.., |process| !process.child().is_running()) {
            let how = dead.ended().map_or_else(String::new, |ended| format!(" ({ended})"));
            log::info!("ended{how}: {}", dead.record().shown());
            dead.forget();
        }
    }

    /// Takes one out, without an end to it.
    pub(super) fn take(
        &mut self,
        is_it: impl FnMut(&BackendProcess) -> bool,
    ) -> Option<BackendProcess> {
        let at = self.running.iter().position(is_it)?;
        Some(self.running.remove(at))
    }

    /// Adds one; those before stay until it is seen.
    pub(super) fn push(&mut self, new: BackendProcess) {
        self.running.push(new);
    }

    /// Takes out the newest, without an end to it.
    pub(super) fn pop(&mut self) -> Option<BackendProcess> {
        self.running.pop()
    }

    /// Leaves this one running, and ends all others.
    pub(super) fn replace(&mut self, kept: BackendProcess) {
        self.push(kept);
        self.keep_newest();
    }

    /// Ends all others.
    pub(super) fn keep_newest(&mut self) {
        let end = self.end;
        self.older().for_each(end);
    }

    /// The same, where one that ends by itself would remove what is in the place of its socket by then.
    pub(super) fn kill_older(&mut self) {
        self.older().for_each(BackendProcess::kill);
    }

    fn older(&mut self) -> impl Iterator<Item = BackendProcess> {
        let older = self.running.len().saturating_sub(1);
        self.running.drain(..older)
    }

    pub(super) fn end_all(&mut self) {
        self.running.drain(..).for_each(self.end);
    }
}
