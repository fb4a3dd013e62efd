//! Limits on slow work: semaphores, and requests that wait for another thread.
//!
//! A handler waits in the worker of its connection. Only a limited number may wait, so that quick
//! requests always find a worker. The end of the server ends every wait.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::error::Error;
use crate::sys::{lock, unpoisoned};

/// Called by another thread with its result.
pub type Reply<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

#[derive(Debug)]
pub(super) struct PendingRequests {
    permits: Semaphore,
    /// Closed when the time for answers is over.
    end: Mutex<Option<Sender<()>>>,
    ended: Receiver<()>,
}

impl PendingRequests {
    pub(super) fn new(most: usize) -> Self {
        let (end, ended) = bounded(0);
        Self { permits: Semaphore::new(most), end: Mutex::new(Some(end)), ended }
    }

    pub(super) fn permit(&self) -> Result<Permit, Error> {
        self.permits.try_acquire().ok_or_else(|| Error::busy("too many requests take their time"))
    }

    pub(super) fn wait<T: Send + 'static, E: Into<Error> + Send + 'static>(
        &self,
        patience: Duration,
        command: impl FnOnce(Reply<T, E>),
    ) -> Result<T, Error> {
        let _permit = self.permit()?;
        let (answer, answered) = bounded(1);
        // It fails only where nobody waits any more.
        command(Box::new(move |result| drop(answer.try_send(result))));
        select! {
            recv(answered) -> result => match result {
                Ok(result) => result.map_err(Into::into),
                Err(_) => Err(Error::internal("who was asked has gone without an answer")),
            },
            recv(self.ended) -> _ => Err(Error::busy("the daemon is shutting down")),
            default(patience) => Err(Error::busy("the answer takes too long")),
        }
    }

    /// Refuses all that wait, and all that are about to.
    pub(super) fn end(&self) {
        lock(&self.end).take();
    }
}

/// Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Semaphore {
    free: Arc<(Mutex<usize>, Condvar)>,
}

/// A permit of a semaphore, given back when it is dropped.
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

    /// Waits for a permit until the deadline.
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
    use std::cell::RefCell;
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn status(result: Result<u8, Error>) -> u16 {
        result.map_or_else(|failure| failure.status(), u16::from)
    }

    #[test]
    fn waits_end_with_the_answer_or_its_absence_or_the_deadline_or_the_server() {
        let waiting = PendingRequests::new(1);
        let wait =
            |patience, command: &dyn Fn(Reply<u8, Error>)| status(waiting.wait(patience, command));
        assert_eq!(wait(LONG, &|reply| reply(Ok(7))), 7);
        assert_eq!(wait(LONG, &|reply| reply(Err(Error::not_found("no")))), 404);
        assert_eq!(wait(LONG, &drop), 500);
        let unanswered = RefCell::new(Vec::new());
        let keep = |reply| unanswered.borrow_mut().push(reply);
        assert_eq!(wait(Duration::ZERO, &keep), 503);
        waiting.end();
        assert_eq!(wait(LONG, &keep), 503);
    }

    #[test]
    fn waiting_requests_are_limited() {
        let waiting = PendingRequests::new(1);
        let permit = waiting.permit().unwrap();
        assert_eq!(waiting.permit().unwrap_err().status(), 503);
        drop(permit);
        assert_eq!(status(waiting.wait(LONG, |reply: Reply<_, Error>| reply(Ok(1)))), 1);
    }

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
