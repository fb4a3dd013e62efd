//! The order of an import: workers look at files as they come to them, and files land in the order in
//! which they were named, so that ids and times follow it.
//!
//! Used by the thread `import`, which gives turns out, and its workers, which wait for theirs: the
//! first of all that are out never waits, so that all come to an end.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Gives turns out.
#[derive(Default)]
pub(super) struct Turns {
    given: u64,
    line: Arc<Line>,
}

/// A place in the line, left when dropped.
pub(super) struct Turn {
    number: u64,
    line: Arc<Line>,
    left: AtomicBool,
    waiting: AtomicBool,
}

#[derive(Default)]
struct Line {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    /// All before have left.
    first: u64,
    /// Those after it that have left.
    left: BTreeSet<u64>,
}

impl Turns {
    pub(super) fn next(&mut self) -> Turn {
        self.given += 1;
        let (number, line) = (self.given - 1, Arc::clone(&self.line));
        Turn { number, line, left: AtomicBool::new(false), waiting: AtomicBool::new(false) }
    }
}

impl Turn {
    /// Returns when all that are before it have left; false where it was left meanwhile.
    pub(super) fn wait(&self) -> bool {
        let state = self.line.lock();
        let waits = |state: &mut State| state.first < self.number && !self.has_left();
        self.waiting.store(true, Ordering::Relaxed);
        drop(self.line.moved.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner));
        self.waiting.store(false, Ordering::Relaxed);
        !self.has_left()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Gives the place up, whoever has it; once.
    pub(super) fn leave(&self) {
        let mut state = self.line.lock();
        if self.left.swap(true, Ordering::Relaxed) {
            return;
        }
        state.left.insert(self.number);
        while let State { first, left } = &mut *state
            && left.remove(first)
        {
            *first += 1;
        }
        self.line.moved.notify_all();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_in_which_they_were_given() {
        let mut turns = Turns::default();
        let given: Vec<_> = (0..20).map(|number| (number, turns.next())).collect();
        let landed = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for (number, turn) in given.into_iter().rev() {
                let landed = &landed;
                scope.spawn(move || {
                    // Some have nothing to land.
                    if number % 3 > 0 {
                        assert!(turn.wait());
                        landed.lock().unwrap().push(number);
                    }
                });
            }
        });
        let expected: Vec<_> = (0..20).filter(|number| number % 3 > 0).collect();
        assert_eq!(*landed.lock().unwrap(), expected);
    }
}
