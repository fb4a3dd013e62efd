//! Messages to the thread `watch`, the changes that its directories report, and the status of each
//! directory that it reports itself. Sending never blocks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::mem::{discriminant, take};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use crossbeam_channel::Sender;

use super::super::Error;
use super::findings::Findings;
use super::notices::Notices;
use super::settings::{ANYWHERE, SETTLE, SETTLE_MAX, WatchSettings};
use crate::sys::{Waker, lock};
use crate::wire::WatchState;

/// The maximum number of changed paths of a directory. Beyond that, it is listed as a whole.
const PATHS_MAX: usize = 50_000;

pub(super) enum Message {
    Settings(WatchSettings),
    /// Look at everything.
    Scan,
    /// Files were imported in place by their paths.
    Named,
    /// Something has happened at these paths, or anywhere below them.
    Changed {
        directory: u64,
        paths: BTreeSet<PathBuf>,
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
    changes: BTreeMap<u64, Changes>,
}

/// The changed paths of a directory, and the times of the first and the last change.
struct Changes {
    paths: BTreeSet<PathBuf>,
    first: Instant,
    last: Instant,
}

impl Changes {
    fn due(&self) -> Instant {
        (self.last + SETTLE).min(self.first + SETTLE_MAX)
    }
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let shared = InboxShared {
            waiting: Mutex::default(),
            waker: Waker::new()?,
        };
        Ok(Self(Arc::new(shared)))
    }

    /// Never blocks.
    pub(super) fn send(&self, message: Message) {
        let mut waiting = self.lock();
        if matches!(
            message,
            Message::Settings(_) | Message::Scan | Message::Named
        ) {
            // Only the latest of these matters.
            waiting
                .messages
                .retain(|other| discriminant(other) != discriminant(&message));
        }
        match message {
            // Settings come first: a request to forget a directory may follow its removal from them.
            Message::Settings(_) => waiting.messages.push_front(message),
            _ => waiting.messages.push_back(message),
        }
        drop(waiting);
        self.0.waker.wake();
    }

    /// Stores that something has happened at a path, or anywhere below it. Only the first change of a
    /// directory wakes the thread, which hears of all of them when they have settled.
    pub(super) fn changed(&self, directory: u64, path: PathBuf, now: Instant) {
        let mut waiting = self.lock();
        let is_first = !waiting.changes.contains_key(&directory);
        let none = || Changes {
            paths: BTreeSet::new(),
            first: now,
            last: now,
        };
        let changes = waiting.changes.entry(directory).or_insert_with(none);
        changes.last = now;
        if changes.paths.len() < PATHS_MAX {
            changes.paths.insert(path);
        } else {
            changes.paths = [PathBuf::from(ANYWHERE)].into();
        }
        drop(waiting);
        if is_first {
            self.0.waker.wake();
        }
    }

    /// When the changes of a directory have settled; `None` if there are none.
    pub(super) fn settled(&self, directory: u64) -> Option<Instant> {
        self.lock().changes.get(&directory).map(Changes::due)
    }

    /// Takes all waiting messages, and the changes that have settled.
    pub(super) fn take(&self, now: Instant) -> VecDeque<Message> {
        self.0.waker.reset();
        let mut waiting = self.lock();
        let changes = take(&mut waiting.changes).into_iter();
        let (settled, unsettled) = changes.partition(|(_, changes)| changes.due() <= now);
        waiting.changes = unsettled;
        let mut messages = take(&mut waiting.messages);
        for (directory, Changes { paths, .. }) in settled {
            messages.push_back(Message::Changed { directory, paths });
        }
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
            if !before
                .iter()
                .any(|old| old.written == one.written && old.state == one.state)
            {
                let message = one.message.as_deref().unwrap_or_default();
                log::warn!(
                    "the watched directory {} is {}: {message}",
                    one.written,
                    one.state
                );
            }
        }
        *before = now;
    }

    pub(super) fn of(&self, written: &str) -> Option<Status> {
        self.lock()
            .iter()
            .find(|one| one.written == written)
            .cloned()
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
    use super::*;

    #[test]
    fn changes_are_taken_together_when_they_have_settled() {
        let (inbox, now) = (Inbox::new().unwrap(), Instant::now());
        let taken = |at| -> Vec<(u64, usize)> {
            let one = |message| match message {
                Message::Changed { directory, paths } => (directory, paths.len()),
                _ => panic!("another message"),
            };
            inbox.take(at).into_iter().map(one).collect()
        };
        // Steady changes do not postpone the look for ever.
        for step in 0..100 {
            inbox.changed(1, format!("/w/{step}").into(), now + SETTLE / 2 * step);
        }
        inbox.changed(2, "/x".into(), now);
        inbox.changed(2, "/x".into(), now + SETTLE / 2);
        assert_eq!(inbox.settled(1), Some(now + SETTLE_MAX));
        assert_eq!(taken(now + SETTLE), []);
        assert_eq!(taken(now + SETTLE * 3 / 2), [(2, 1)]);
        assert_eq!(taken(now + SETTLE_MAX), [(1, 100)]);
        assert_eq!(inbox.settled(1), None);
    }

    #[test]
    fn too_many_changes_mean_the_whole_directory() {
        let (inbox, now) = (Inbox::new().unwrap(), Instant::now());
        (0..=PATHS_MAX).for_each(|number| inbox.changed(1, number.to_string().into(), now));
        let Some(Message::Changed { paths, .. }) = inbox.take(now + SETTLE).pop_front() else {
            panic!("no changes");
        };
        assert_eq!(paths, [PathBuf::from("/")].into());
    }

    #[test]
    fn waiting_scans_and_settings_are_merged() {
        let inbox = Inbox::new().unwrap();
        let (reply, _answer) = crossbeam_channel::bounded(1);
        inbox.send(Message::Forget {
            directory: PathBuf::new(),
            reply,
        });
        for folders in [true, false, true] {
            inbox.send(Message::Scan);
            inbox.send(Message::Settings(WatchSettings {
                folders,
                ..Default::default()
            }));
        }
        // The latest settings come before requests for a directory that they may have removed.
        let messages = inbox.take(Instant::now());
        let [
            Message::Settings(settings),
            Message::Forget { .. },
            Message::Scan,
        ] = &messages.iter().collect::<Vec<_>>()[..]
        else {
            panic!("{} messages", messages.len());
        };
        assert!(settings.folders && inbox.take(Instant::now()).is_empty());
    }
}
