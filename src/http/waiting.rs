//! Limits on slow work, and requests that wait for another thread.
//!
//! A handler waits in the thread of its connection. Only a limited number may wait, so that quick
//! requests always find a place. The end of the server ends every wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::error::Error;
use crate::sys::lock;

/// Called by another thread with its result.
pub type Reply<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

#[derive(Debug)]
pub(super) struct PendingRequests {
    /// Permits that are left.
    free: Arc<AtomicUsize>,
    /// Closed when the time for answers is over.
    end: Mutex<Option<Sender<()>>>,
    ended: Receiver<()>,
}

impl PendingRequests {
    pub(super) fn new(most: usize) -> Self {
        let (end, ended) = bounded(0);
        Self {
            free: Arc::new(AtomicUsize::new(most)),
            end: Mutex::new(Some(end)),
            ended,
        }
    }

    pub(super) fn permit(&self) -> Result<Permit, Error> {
        let take = |free: usize| free.checked_sub(1);
        match self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        {
            Ok(_) => Ok(Permit(Arc::clone(&self.free))),
            Err(_) => Err(Error::busy("too many slow requests at once")),
        }
    }

    pub(super) fn wait<T: Send + 'static, E: Into<Error> + Send + 'static>(
        &self,
        patience: Duration,
        command: impl FnOnce(Reply<T, E>),
    ) -> Result<T, Error> {
        let _permit = self.permit()?;
        let (answer, answered) = bounded(1);
        // Fails only if the request does not wait any more.
        command(Box::new(move |result| drop(answer.try_send(result))));
        select! {
            recv(answered) -> result => match result {
                Ok(result) => result.map_err(Into::into),
                Err(_) => Err(Error::internal("internal error: a thread ended without an answer")),
            },
            recv(self.ended) -> _ => Err(Error::busy("the daemon is shutting down")),
            default(patience) => Err(Error::busy("the answer took too long")),
        }
    }

    /// Refuses all requests that wait, and all that are about to.
    pub(super) fn end(&self) {
        lock(&self.end).take();
    }
}

/// A permit; dropping it returns it.
#[derive(Debug)]
pub struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
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
        // Each wait returns its permit.
        assert_eq!(
            status(waiting.wait(LONG, |reply: Reply<_, Error>| reply(Ok(1)))),
            1
        );
        assert_eq!(
            status(waiting.wait(LONG, |reply: Reply<_, Error>| reply(Ok(1)))),
            1
        );
    }
}
