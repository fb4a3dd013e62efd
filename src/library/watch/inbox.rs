//! What wakes the thread `watch`: messages, beside the descriptors that it waits for.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;

use super::super::Error;
use super::findings::Findings;
use super::notices::Notices;
use super::settings::WatchSettings;
use crate::sys::Waker;

/// Events that wait; of more than these it is only known that there were some.
const EVENTS_MAX: usize = 50_000;

pub(super) enum Message {
    Settings(WatchSettings),
    /// Look at everything.
    Scan,
    /// Something has happened at this path.
    Event {
        directory: u64,
        path: PathBuf,
    },
    /// Events were lost.
    Overflow {
        directory: u64,
    },
    /// A look has ended.
    Looked {
        look: u64,
        findings: Box<Findings>,
        notices: Option<Notices>,
    },
    /// The files that were given to the imports are through.
    Taken {
        directory: u64,
    },
    /// The images of a directory that is watched no more are to go.
    Forget {
        directory: PathBuf,
        reply: Sender<Result<(), Error>>,
    },
    End,
}

/// Clones are the same.
#[derive(Clone)]
pub(super) struct Inbox(Arc<Shared>);

struct Shared {
    messages: Mutex<VecDeque<Message>>,
    waker: Waker,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let shared = Shared { messages: Mutex::default(), waker: Waker::new()? };
        Ok(Self(Arc::new(shared)))
    }

    /// Never blocks.
    pub(super) fn send(&self, message: Message) {
        let mut messages = self.lock();
        let message = match message {
            Message::Event { directory, .. } if messages.len() >= EVENTS_MAX => {
                if matches!(messages.back(), Some(Message::Overflow { .. })) {
                    return;
                }
                Message::Overflow { directory }
            }
            message => message,
        };
        messages.push_back(message);
        drop(messages);
        self.0.waker.wake();
    }

    /// All that have come.
    pub(super) fn take(&self) -> VecDeque<Message> {
        self.0.waker.reset();
        std::mem::take(&mut *self.lock())
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.0.waker
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Message>> {
        self.0.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
