//! The order in which the files of an import are committed: the order in which they were named, so that
//! ids and times follow it.
//!
//! Workers prepare files as they get them. Files that are ready and next to each other are committed
//! together, by the worker of the first. The thread `import` gives turns out, and its workers wait for
//! theirs; the first turn of all never waits, so that all of them end.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::Error;
use super::task::{Landed, Ready};
use crate::sys::{lock, unpoisoned};

/// Gives turns out.
pub(super) struct Turns {
    given: u64,
    line: Arc<Line>,
    rested: Receiver<()>,
}

/// A place in the line, left when dropped.
pub(super) struct Turn {
    number: u64,
    line: Arc<Line>,
    place: Arc<LinePlace>,
}

#[derive(Default)]
struct LinePlace {
    moved: Condvar,
    left: AtomicBool,
    /// For others, whose signs of life are its own.
    waiting: AtomicBool,
    /// It has nothing more to do for the processor.
    resting: AtomicBool,
}

struct Line {
    state: Mutex<LineState>,
    rested: Sender<()>,
}

#[derive(Default)]
struct LineState {
    /// All before have left.
    first: u64,
    /// Numbers after it that have left.
    left: BTreeSet<u64>,
    waiting: BTreeMap<u64, WaitingFile>,
}

/// One that is in its place until its turn comes.
struct WaitingFile {
    place: Arc<LinePlace>,
    /// The file to commit, until a worker takes it.
    ready: Option<Ready>,
    landed: Option<Landed>,
}

impl Default for Turns {
    fn default() -> Self {
        let (sender, rested) = bounded(1);
        Self { given: 0, line: Arc::new(Line { state: Mutex::default(), rested: sender }), rested }
    }
}

impl Turns {
    pub(super) fn next(&mut self) -> Turn {
        self.given += 1;
        Turn { number: self.given - 1, line: Arc::clone(&self.line), place: Arc::default() }
    }

    /// Told when one has begun to rest.
    pub(super) fn rested(&self) -> &Receiver<()> {
        &self.rested
    }
}

impl Turn {
    /// Returns when all turns before it have left; false if it was given up in between.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.wait_with(None);
        state.waiting.remove(&self.number);
        !self.has_left()
    }

    /// Waits for its turn, and lands what is ready; with all that is next in the line and ready by then.
    /// Or somebody before it does: `land` is for several, in their order.
    pub(super) fn land(
        &self,
        ready: Ready,
        land: impl FnOnce(Vec<Ready>) -> Vec<Landed>,
    ) -> Landed {
        let mut state = self.wait_with(Some(ready));
        let group = if self.has_left() { Vec::new() } else { state.take_ready(self.number) };
        if group.is_empty() {
            let own = state.waiting.remove(&self.number);
            // A file that nobody took is removed on drop: not under the lock.
            drop(state);
            return own.and_then(|own| own.landed).unwrap_or(Err(Error::Stopped));
        }
        drop(state);
        let (numbers, group): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        // Nobody else would tell the others of the group.
        let landed = catch_unwind(AssertUnwindSafe(|| land(group)));
        let failed = |panic: Box<dyn Any + Send>| {
            numbers.iter().map(|_| Err(Error::of_panic(&*panic))).collect()
        };
        let landed = landed.unwrap_or_else(failed);
        let mut landed = numbers.into_iter().zip(landed);
        let own = landed.next().map(|(_, landed)| landed);
        let mut state = self.line.lock();
        state.waiting.remove(&self.number);
        landed.for_each(|(number, landed)| state.hand(number, landed));
        own.unwrap_or(Err(Error::Ended))
    }

    /// Lets another file be begun: what is left of this one is for the disk.
    pub(super) fn rest(&self) {
        if !self.place.resting.swap(true, Ordering::Relaxed) {
            // Full means that it is about to be seen.
            self.line.rested.try_send(()).ok();
        }
    }

    pub(super) fn is_resting(&self) -> bool {
        self.place.resting.load(Ordering::Relaxed)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.place.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn has_left(&self) -> bool {
        self.place.left.load(Ordering::Relaxed)
    }

    /// Gives the place up, whoever has it; once.
    pub(super) fn leave(&self) {
        let mut state = self.line.lock();
        if self.place.left.swap(true, Ordering::Relaxed) {
            return;
        }
        state.left.insert(self.number);
        while let LineState { first, left, .. } = &mut *state
            && left.remove(first)
        {
            *first += 1;
        }
        if let Some(next) = state.waiting.get(&state.first) {
            next.place.moved.notify_one();
        }
        self.place.moved.notify_one();
    }

    /// Until its turn has come, or it was left, or `ready` is in another one's hands and has ended
    /// there.
    fn wait_with(&self, ready: Option<Ready>) -> MutexGuard<'_, LineState> {
        self.rest();
        let mut state = self.line.lock();
        let (number, lands) = (self.number, ready.is_some());
        let place = Arc::clone(&self.place);
        state.waiting.insert(number, WaitingFile { place, ready, landed: None });
        self.place.waiting.store(true, Ordering::Relaxed);
        let waits = |state: &mut LineState| {
            let own = state.waiting.get(&number);
            let taken = own.is_some_and(|own| lands && own.ready.is_none());
            let ended = own.is_none_or(|own| own.landed.is_some());
            !self.has_left() && !ended && (taken || state.first < number)
        };
        let state = self.place.moved.wait_while(state, waits);
        self.place.waiting.store(false, Ordering::Relaxed);
        unpoisoned(state)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, LineState> {
        lock(&self.state)
    }
}

impl LineState {
    /// The files that are ready at this number, and at the following ones without a gap.
    fn take_ready(&mut self, first: u64) -> Vec<(u64, Ready)> {
        let mut group = Vec::new();
        for number in first.. {
            let waiting = self.waiting.get_mut(&number);
            match waiting.and_then(|one| Some((&one.place, one.ready.take()?))) {
                Some((place, ready)) => {
                    // From here on it hangs where that one hangs.
                    place.waiting.store(false, Ordering::Relaxed);
                    group.push((number, ready));
                }
                None if number > first && self.left.contains(&number) => {}
                None => break,
            }
        }
        group
    }

    fn hand(&mut self, number: u64, landed: Landed) {
        // If it was given up in between, its file has been reported as failed.
        if let Some(waiting) = self.waiting.get_mut(&number) {
            waiting.landed = Some(landed);
            waiting.place.moved.notify_one();
        }
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
