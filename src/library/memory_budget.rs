//! One permit of memory for all threads that decode.

use crate::sys::{lock, unpoisoned};
use std::sync::{Condvar, Mutex};

/// Bytes that may be in use at once.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    total: u64,
    used: Mutex<u64>,
    freed: Condvar,
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    budget: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    pub(super) fn new(total: u64) -> Self {
        Self { total, used: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until `bytes` are free. More than all counts as all.
    pub(super) fn take(&self, bytes: u64) -> Permit<'_> {
        let bytes = bytes.min(self.total);
        let used = lock(&self.used);
        let mut used = unpoisoned(self.freed.wait_while(used, |used| *used + bytes > self.total));
        *used += bytes;
        Permit { budget: self, bytes }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.budget.used) -= self.bytes;
        // All: the one that is woken might need more than what is free now.
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn no_more_than_the_total_is_ever_out() {
        let (budget, out) = (MemoryBudget::new(10), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (budget, out) = (&budget, &out);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let bytes = number * 3 % 12 + 1;
                        let permit = budget.take(bytes);
                        let granted = bytes.min(10);
                        assert!(out.fetch_add(granted, Ordering::SeqCst) + granted <= 10);
                        out.fetch_sub(granted, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        drop(budget.take(10));
    }
}
