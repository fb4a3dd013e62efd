//! Errands: slow work of a handler that has no thread of its own to go to, such as making a
//! thumbnail or walking directories. Two threads (`errand-0`, `errand-1`) run them; the client gets
//! the result as a promise, and no worker waits.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::error::Error;
use super::promise::{Giver, Outcome};
use crate::thread::panic_text;

/// Errands that wait; one more is refused (503).
const WAITING: usize = 64;

/// What an errand does.
pub(super) type Work = Box<dyn FnOnce() -> Outcome + Send>;

#[derive(Debug)]
pub(super) struct Errands {
    inbox: Sender<Errand>,
    waiting: Receiver<Errand>,
}

struct Errand {
    work: Work,
    giver: Giver,
}

impl Errands {
    pub(super) fn new() -> Self {
        let (inbox, waiting) = bounded(WAITING);
        Self { inbox, waiting }
    }

    /// Hands an errand over; where too many wait, the giver is told.
    pub(super) fn send(&self, work: Work, giver: Giver) {
        if let Err(full) = self.inbox.try_send(Errand { work, giver }) {
            full.into_inner().giver.give(Err(Error::busy("too many requests take their time")));
        }
    }

    /// A thread's whole life: until `end` closes.
    pub(super) fn run(&self, end: &Receiver<()>) {
        loop {
            select! {
                recv(self.waiting) -> errand => match errand {
                    Ok(errand) => errand.run(),
                    Err(_) => return,
                },
                recv(end) -> _ => return,
            }
        }
    }
}

impl Errand {
    fn run(self) {
        // Also for a client that has gone: it may have asked for a change.
        let outcome = catch_unwind(AssertUnwindSafe(self.work)).unwrap_or_else(|panic| {
            let text = panic_text(&*panic).to_owned();
            Err(Error::internal(format!("a handler panicked: {text}")))
        });
        self.giver.give(outcome);
    }
}
