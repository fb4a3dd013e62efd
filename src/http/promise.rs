//! Answers that another thread gives later, so that slow work never holds a worker.
//!
//! A handler returns the [`Promise`] and hands the [`Giver`] to the thread that finishes the work.
//! The connection waits without a thread; the gift rings a bell in the workers' epoll. A giver
//! that is dropped with empty hands gives a 500. The number of promises is bounded.

use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::bell::Bell;
use super::errand::Errands;
use super::error::Error;
use super::limits::{Permit, Semaphore};
use super::response::Response;

/// What the client gets in the end.
pub(super) type Outcome = Result<Response, Error>;

/// An answer that is owed; the handler returns it as [`Response::Later`].
#[derive(Debug)]
pub struct Promise {
    cell: Arc<Cell>,
    pub(super) deadline: Instant,
}

/// The other end of a [`Promise`].
#[derive(Debug)]
pub struct Giver {
    cell: Arc<Cell>,
    promises: Arc<Promises>,
    given: bool,
}

#[derive(Debug)]
struct Cell {
    state: Mutex<State>,
    _claim: Permit,
}

#[derive(Debug)]
enum State {
    New,
    /// A connection waits under this token.
    Awaited(u64),
    Given(Box<Outcome>),
    /// Nobody waits any more.
    Over,
}

/// All promises of a server.
#[derive(Debug)]
pub(super) struct Promises {
    budget: Arc<Semaphore>,
    /// Tokens of connections whose answers are there. At most one for each promise made since the
    /// last look, and a ring follows each.
    ready: Mutex<Vec<u64>>,
    pub(super) bell: Bell,
    pub(super) errands: Errands,
}

impl Promises {
    pub(super) fn new(most: usize) -> io::Result<Arc<Self>> {
        let (budget, ready) = (Semaphore::new(most), Mutex::default());
        Ok(Arc::new(Self { budget, ready, bell: Bell::new()?, errands: Errands::new() }))
    }

    /// `None` where too many are open.
    pub(super) fn make(self: &Arc<Self>, patience: Duration) -> Option<(Promise, Giver)> {
        let claim = self.budget.claim()?;
        let cell = Arc::new(Cell { state: Mutex::new(State::New), _claim: claim });
        let promise = Promise { cell: Arc::clone(&cell), deadline: Instant::now() + patience };
        Some((promise, Giver { cell, promises: Arc::clone(self), given: false }))
    }

    /// The connections to look at, after a ring.
    pub(super) fn take_ready(&self) -> Vec<u64> {
        // Silenced first: a gift after this rings again.
        self.bell.silence();
        mem::take(&mut lock(&self.ready))
    }
}

impl Promise {
    /// Says which connection waits, or takes the answer that is there already.
    pub(super) fn await_at(&self, token: u64) -> Option<Outcome> {
        let mut state = lock(&self.cell.state);
        match mem::replace(&mut *state, State::Over) {
            State::Given(outcome) => Some(*outcome),
            State::New | State::Awaited(_) => {
                *state = State::Awaited(token);
                None
            }
            State::Over => None,
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        *lock(&self.cell.state) = State::Over;
    }
}

impl Giver {
    /// Whether the client is still there to be answered.
    pub fn is_awaited(&self) -> bool {
        !matches!(*lock(&self.cell.state), State::Over)
    }

    /// Answers the client, if it is still there. Never blocks.
    pub fn give(mut self, outcome: Result<Response, Error>) {
        self.put(outcome);
    }

    fn put(&mut self, outcome: Outcome) {
        self.given = true;
        let mut state = lock(&self.cell.state);
        match *state {
            State::Over => return,
            State::New | State::Given(_) => *state = State::Given(Box::new(outcome)),
            State::Awaited(token) => {
                *state = State::Given(Box::new(outcome));
                lock(&self.promises.ready).push(token);
            }
        }
        drop(state);
        self.promises.bell.ring();
    }
}

impl Drop for Giver {
    fn drop(&mut self) {
        if !self.given {
            self.put(Err(Error::internal("an answer was promised and never given")));
        }
    }
}

/// Each state is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(outcome: Option<Outcome>) -> u16 {
        match outcome {
            Some(Ok(Response::Full(full))) => full.status,
            Some(Err(failure)) => failure.status(),
            _ => 0,
        }
    }

    #[test]
    fn a_gift_reaches_the_waiting_connection_before_and_after_it_waits() {
        let promises = Promises::new(2).unwrap();
        let (early, giver) = promises.make(Duration::from_secs(1)).unwrap();
        giver.give(Ok(Response::empty(204)));
        assert_eq!(status(early.await_at(7)), 204);

        let (late, giver) = promises.make(Duration::from_secs(1)).unwrap();
        assert!(late.await_at(8).is_none() && giver.is_awaited());
        giver.give(Ok(Response::empty(202)));
        assert_eq!(promises.take_ready(), [8]);
        assert_eq!(status(late.await_at(8)), 202);
    }

    #[test]
    fn dropped_givers_answer_500_and_dropped_promises_free_their_place() {
        let promises = Promises::new(1).unwrap();
        let (promise, giver) = promises.make(Duration::from_secs(1)).unwrap();
        assert!(promises.make(Duration::from_secs(1)).is_none());
        drop(giver);
        assert_eq!(status(promise.await_at(1)), 500);
        drop(promise);
        let (promise, giver) = promises.make(Duration::from_secs(1)).unwrap();
        drop(promise);
        assert!(!giver.is_awaited());
        giver.give(Ok(Response::empty(204)));
        assert!(promises.take_ready().is_empty());
    }
}
