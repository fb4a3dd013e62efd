//! How many of a thing may exist at a time.

use crate::sys::{lock, unpoisoned};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Semaphore {
    free: Arc<(Mutex<usize>, Condvar)>,
}

/// Leave for one thing; dropping it makes room for the next.
#[derive(Debug)]
pub struct Permit {
    of: Semaphore,
}

impl Semaphore {
    pub(super) fn new(most: usize) -> Self {
        Self { free: Arc::new((Mutex::new(most), Condvar::new())) }
    }

    pub(super) fn try_acquire(&self) -> Option<Permit> {
        take(&mut self.lock()).then(|| Permit { of: self.clone() })
    }

    /// Waits for room until the deadline.
    pub(super) fn acquire_by(&self, deadline: Instant) -> Option<Permit> {
        let mut free = self.lock();
        loop {
            if take(&mut free) {
                return Some(Permit { of: self.clone() });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            free = unpoisoned(self.free.1.wait_timeout(free, left)).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        lock(&self.free.0)
    }
}

fn take(free: &mut usize) -> bool {
    let some = *free > 0;
    *free -= usize::from(some);
    some
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.of.lock() += 1;
        self.of.free.1.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn there_are_never_more_and_each_is_given_back() {
        let semaphore = Semaphore::new(2);
        let (one, two) = (semaphore.try_acquire(), semaphore.try_acquire());
        assert!(one.is_some() && two.is_some() && semaphore.try_acquire().is_none());
        assert!(semaphore.acquire_by(Instant::now()).is_none());
        let waiter = semaphore.clone();
        let waiting = std::thread::spawn(move || {
            waiter.acquire_by(Instant::now() + Duration::from_secs(60)).is_some()
        });
        drop(one);
        assert!(waiting.join().unwrap(), "who waits gets what is given back");
        assert!(semaphore.try_acquire().is_some());
    }
}
