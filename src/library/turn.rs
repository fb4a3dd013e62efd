//! The order of an import: workers look at files as they come to them, and files land in the order in
//! which they were named, so that ids and times follow it.
//!
//! Used by the thread `import`, which gives turns out, and its workers, which wait for theirs: the
//! first of all that are out never waits, so that all come to an end.

use std::collections::BTreeSet;
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
        Turn { number: self.given - 1, line: Arc::clone(&self.line) }
    }
}

impl Turn {
    /// Returns when all that are before it have left.
    pub(super) fn wait(&self) {
        let state = self.line.lock();
        let waits = |state: &mut State| state.first < self.number;
        drop(self.line.moved.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        state.left.insert(self.number);
        while let State { first, left } = &mut *state
            && left.remove(first)
        {
            *first += 1;
        }
        self.line.moved.notify_all();
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
                        turn.wait();
                        landed.lock().unwrap().push(number);
                    }
                });
            }
        });
        let expected: Vec<_> = (0..20).filter(|number| number % 3 > 0).collect();
        assert_eq!(*landed.lock().unwrap(), expected);
    }
}
