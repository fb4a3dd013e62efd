//! How the watched directories are, for whoever asks: never more than a lock away, whatever hangs.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::sys::lock;
use crate::wire::WatchState;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    /// As the configuration has it.
    pub(super) written: String,
    pub(super) state: WatchState,
    pub(super) message: Option<String>,
}

/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusList(Arc<Mutex<Vec<Status>>>);

impl StatusList {
    /// Tells the log of what is not as it should be, once.
    pub(super) fn set(&self, now: Vec<Status>) {
        let mut before = self.lock();
        for one in now.iter().filter(|one| one.state != WatchState::Watched) {
            if !before.iter().any(|old| old.written == one.written && old.state == one.state) {
                let message = one.message.as_deref().unwrap_or_default();
                log::warn!("the watched directory {} is {}: {message}", one.written, one.state);
            }
        }
        *before = now;
    }

    pub(super) fn of(&self, written: &str) -> Option<Status> {
        self.lock().iter().find(|one| one.written == written).cloned()
    }

    /// What is not as it should be, for people.
    pub(super) fn warnings(&self) -> Vec<String> {
        let bad = |one: &&Status| one.state != WatchState::Watched;
        let text = |one: &Status| {
            let message = one.message.as_deref().unwrap_or_default();
            format!("{} is {}: {message}", one.written, one.state)
        };
        self.lock().iter().filter(bad).map(text).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Status>> {
        lock(&self.0)
    }
}
