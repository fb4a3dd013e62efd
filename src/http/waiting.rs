//! Requests that wait for slow work: how many may at a time, and that the server's end ends it.
//!
//! A handler waits in the worker of its connection. Only so many may, so that quick requests always
//! find a worker.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::failure::Failure;
use super::limits::{Budget, Claim};

/// What another thread calls with its result.
pub type Reply<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

#[derive(Debug)]
pub(super) struct Waiting {
    permits: Arc<Budget>,
    /// Closed when the time for answers is over.
    end: Mutex<Option<Sender<()>>>,
    ended: Receiver<()>,
}

impl Waiting {
    pub(super) fn new(most: usize) -> Self {
        let (end, ended) = bounded(0);
        Self { permits: Budget::new(most), end: Mutex::new(Some(end)), ended }
    }

    pub(super) fn permit(&self) -> Result<Claim, Failure> {
        self.permits.claim().ok_or_else(|| Failure::busy("too many requests take their time"))
    }

    pub(super) fn wait<T: Send + 'static, E: Into<Failure> + Send + 'static>(
        &self,
        patience: Duration,
        command: impl FnOnce(Reply<T, E>),
    ) -> Result<T, Failure> {
        let _permit = self.permit()?;
        let (answer, answered) = bounded(1);
        // It fails only where nobody waits any more.
        command(Box::new(move |result| drop(answer.try_send(result))));
        select! {
            recv(answered) -> result => match result {
                Ok(result) => result.map_err(Into::into),
                Err(_) => Err(Failure::internal("who was asked has gone without an answer")),
            },
            recv(self.ended) -> _ => Err(Failure::busy("the daemon is ending")),
            default(patience) => Err(Failure::busy("the answer takes too long")),
        }
    }

    /// Refuses all that wait, and all that are about to.
    pub(super) fn end(&self) {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn status(result: Result<u8, Failure>) -> u16 {
        result.map_or_else(|failure| failure.status(), u16::from)
    }

    #[test]
    fn waits_end_with_the_answer_or_its_absence_or_the_deadline_or_the_server() {
        let waiting = Waiting::new(1);
        let wait =
            |patience, command: fn(Reply<u8, Failure>)| status(waiting.wait(patience, command));
        assert_eq!(wait(LONG, |reply| reply(Ok(7))), 7);
        assert_eq!(wait(LONG, |reply| reply(Err(Failure::not_found("no")))), 404);
        assert_eq!(wait(LONG, drop), 500);
        assert_eq!(wait(Duration::ZERO, std::mem::forget), 503);
        waiting.end();
        assert_eq!(wait(LONG, std::mem::forget), 503);
    }

    #[test]
    fn only_so_many_wait_at_a_time() {
        let waiting = Waiting::new(1);
        let permit = waiting.permit().unwrap();
        assert_eq!(waiting.permit().unwrap_err().status(), 503);
        drop(permit);
        assert_eq!(status(waiting.wait(LONG, |reply: Reply<_, Failure>| reply(Ok(1)))), 1);
    }
}
