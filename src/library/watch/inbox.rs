//! Messages to the thread `watch`, and the status of each directory that it reports. Sending never
//! blocks.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use crossbeam_channel::Sender;

use super::super::Error;
use super::findings::Findings;
use super::notices::Notices;
use super::settings::WatchSettings;
use crate::sys::{Waker, lock};
use crate::wire::WatchState;

/// The maximum number of waiting messages. Beyond that, only the directories of lost events are stored.
const EVENTS_MAX: usize = 50_000;

pub(super) enum Message {
    Settings(WatchSettings),
    /// Look at everything.
    Scan,
    /// Files were imported in place by their paths.
    Named,
    /// Something has happened at this path, or anywhere below it.
    Event {
        directory: u64,
        path: PathBuf,
    },
    /// A look has ended.
    Looked {
        look: u64,
        findings: Box<Findings>,
        notices: Notices,
    },
    /// The imports have ended all files that they were given.
    Taken {
        directory: u64,
        /// Whether the database could not be written for any of them.
        is_unsaved: bool,
    },
    /// Remove the images of a directory that is no longer watched.
    Forget {
        directory: PathBuf,
        reply: Sender<Result<(), Error>>,
    },
    End,
}

/// The queue of messages. Clones share the same queue.
#[derive(Clone)]
pub(super) struct Inbox(Arc<InboxShared>);

struct InboxShared {
    waiting: Mutex<WaitingMessages>,
    waker: Waker,
}

#[derive(Default)]
struct WaitingMessages {
    messages: VecDeque<Message>,
    /// The directories that lost events.
    overflowed: BTreeSet<u64>,
    /// The latest settings.
    settings: Option<WatchSettings>,
    scan: bool,
    named: bool,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let shared = InboxShared { waiting: Mutex::default(), waker: Waker::new()? };
        Ok(Self(Arc::new(shared)))
    }

    /// Never blocks.
    pub(super) fn send(&self, message: Message) {
        let mut waiting = self.lock();
        match message {
            Message::Event { directory, .. } if waiting.messages.len() >= EVENTS_MAX => {
                waiting.overflowed.insert(directory);
            }
            Message::Settings(settings) => waiting.settings = Some(settings),
            Message::Scan => waiting.scan = true,
            Message::Named => waiting.named = true,
            message => waiting.messages.push_back(message),
        }
        drop(waiting);
        self.0.waker.wake();
    }

    /// Takes all waiting messages.
    pub(super) fn take(&self) -> VecDeque<Message> {
        self.0.waker.reset();
        let WaitingMessages { mut messages, overflowed, settings, scan, named } =
            std::mem::take(&mut *self.lock());
        let anywhere = |directory| Message::Event { directory, path: PathBuf::from("/") };
        let overflows = overflowed.into_iter().map(anywhere);
        messages.extend(overflows);
        messages.extend(named.then_some(Message::Named));
        messages.extend(scan.then_some(Message::Scan));
        // Settings come first: a request to forget a directory may follow its removal from the settings.
        settings.into_iter().for_each(|latest| messages.push_front(Message::Settings(latest)));
        messages
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.0.waker
    }

    fn lock(&self) -> MutexGuard<'_, WaitingMessages> {
        lock(&self.0.waiting)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    /// The directory as written in the configuration.
    pub(super) written: String,
    pub(super) state: WatchState,
    pub(super) message: Option<String>,
}

/// The status of all watched directories. Clones share the same list.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusList(Arc<Mutex<Vec<Status>>>);

impl StatusList {
    /// Stores the status, and logs each directory once when it is no longer watched completely.
    pub(super) fn set(&self, now: Vec<Status>) {
        let mut before = self.lock();
        for one in now.iter().filter(|one| one.state != WatchState::Watched) {
            if !before.iter().any(|old| old.written == one.written && old.state == one.state) {
                let message = one.message.as_deref().unwrap_or_default();
                log::warn!("the watched directory {} is {}: {message}", one.written, one.state);
            }
        }
        *before = now;
    }

    pub(super) fn of(&self, written: &str) -> Option<Status> {
        self.lock().iter().find(|one| one.written == written).cloned()
    }

    /// The warnings, for people.
    pub(super) fn warnings(&self) -> Vec<String> {
        let bad = |one: &&Status| one.state != WatchState::Watched;
        let text = |one: &Status| {
            let message = one.message.as_deref().unwrap_or_default();
            format!("{} is {}: {message}", one.written, one.state)
        };
        self.lock().iter().filter(bad).map(text).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Status>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn overflow_is_reported_for_each_directory_that_lost_events() {
        let inbox = Inbox::new().unwrap();
        let event = |directory| Message::Event { directory, path: PathBuf::new() };
        (0..EVENTS_MAX).for_each(|_| inbox.send(event(1)));
        [2, 3, 2, 3].into_iter().for_each(|directory| inbox.send(event(directory)));
        let messages = inbox.take();
        let overflow = |message: &Message| match message {
            Message::Event { directory, path } if path == Path::new("/") => Some(*directory),
            _ => None,
        };
        assert_eq!(messages.iter().filter_map(overflow).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(messages.len(), EVENTS_MAX + 2);
        assert!(inbox.take().is_empty());
    }

    #[test]
    fn waiting_scans_and_settings_are_merged() {
        let inbox = Inbox::new().unwrap();
        let (reply, _answer) = crossbeam_channel::bounded(1);
        inbox.send(Message::Forget { directory: PathBuf::new(), reply });
        for in_place in [true, false, true] {
            inbox.send(Message::Scan);
            inbox.send(Message::Settings(WatchSettings { in_place, ..Default::default() }));
        }
        // The latest settings come before requests for a directory that they may have removed.
        let messages = inbox.take();
        let [Message::Settings(settings), Message::Forget { .. }, Message::Scan] =
            &messages.iter().collect::<Vec<_>>()[..]
        else {
            panic!("{} messages", messages.len());
        };
        assert!(settings.in_place && inbox.take().is_empty());
    }
}
