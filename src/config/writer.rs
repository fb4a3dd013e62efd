//! Whether somebody is writing the file: the watch says so, and changes wait for the end.
//!
//! What is told here ends by itself, so that a watch which fails holds up nobody.

use crate::sys::{lock, unpoisoned};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

#[derive(Default)]
pub(super) struct Writer {
    /// Until when it counts as at work.
    until: Mutex<Option<Instant>>,
    changed: Condvar,
}

impl Writer {
    /// Somebody may write until then, or, with `None`, has ended.
    pub(super) fn is_at_work(&self, until: Option<Instant>) {
        *lock(&self.until) = until;
        self.changed.notify_all();
    }

    /// Waits for the end; false where it has not come by the deadline.
    pub(super) fn ends_by(&self, deadline: Instant) -> bool {
        let mut until = lock(&self.until);
        loop {
            let now = Instant::now();
            let Some(end) = until.filter(|end| *end > now) else { return true };
            if deadline <= now {
                return false;
            }
            let waited = self.changed.wait_timeout(until, end.min(deadline) - now);
            until = unpoisoned(waited).0;
        }
    }
}
