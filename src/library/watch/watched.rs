//! A watched directory as other threads see it: its changes that wait, its files that are not read yet,
//! and its state. Only [`Watched::wait`] waits.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::super::task::{Directory, Which};
use crate::kernel::ANYWHERE;
use crate::sys::{lock, unpoisoned};
use crate::wire::WatchState;

/// The delay after the last event of a directory, as most files are written in several steps.
const SETTLE: Duration = Duration::from_millis(400);
/// The maximum delay after the first event, even if more follow: a file is imported within two seconds
/// of its last write.
const SETTLE_MAX: Duration = Duration::from_millis(1200);
/// The maximum number of changed paths of a directory. Beyond that, it is listed as a whole.
const PATHS_MAX: usize = 50_000;
/// A walk without a sign of life for this long waits for a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Watched {
    pub(super) id: u64,
    /// The directory as written in the configuration.
    pub(super) written: String,
    pub(super) directory: Arc<Directory>,
    inbox: Mutex<Inbox>,
    wake: Condvar,
    /// Files that a walk has found and whose content is not read yet, and their sizes.
    pub(super) unsettled: Mutex<BTreeMap<PathBuf, u64>>,
    /// The last sign of life of a walk in progress.
    pub(super) walking: Mutex<Option<Instant>>,
    status: Mutex<Status>,
}

/// The state of a watched directory, for people.
#[derive(Clone)]
pub(super) struct Status {
    pub(super) state: WatchState,
    pub(super) message: Option<String>,
    /// The number of files and directories that cannot be read now.
    pub(super) unreadable: usize,
}

impl Status {
    pub(super) fn new(state: WatchState, message: Option<String>) -> Self {
        Self {
            state,
            message,
            unreadable: 0,
        }
    }
}

/// What waits for the thread of a directory.
#[derive(Default)]
struct Inbox {
    changes: Option<Changes>,
    waiting: Waiting,
    is_busy: bool,
}

/// What the thread of a directory has to do.
#[derive(Default)]
pub(super) struct Waiting {
    /// Something has happened at these paths, or anywhere below them.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Look at everything.
    pub(super) scan: bool,
    /// The imports have ended the files that they were given; true if rows could not be written.
    pub(super) ended: Option<bool>,
}

/// The changed paths, and the times of the first and the last change.
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

impl Watched {
    pub(super) fn new(id: u64, written: String, directory: Directory) -> Self {
        let inbox = Inbox {
            is_busy: true,
            ..Inbox::default()
        };
        Self {
            id,
            written,
            directory: Arc::new(directory),
            inbox: Mutex::new(inbox),
            wake: Condvar::new(),
            unsettled: Mutex::default(),
            walking: Mutex::default(),
            status: Mutex::new(Status::new(WatchState::Watched, None)),
        }
    }

    /// Notes that something has happened at a path, or anywhere below it. Only the first change wakes
    /// the thread, which hears of all of them when they have settled.
    pub(super) fn changed(&self, path: &Path, now: Instant) {
        let mut inbox = lock(&self.inbox);
        let is_first = inbox.changes.is_none();
        let changes = inbox.changes.get_or_insert_with(|| Changes {
            paths: BTreeSet::new(),
            first: now,
            last: now,
        });
        changes.last = now;
        if changes.paths.len() < PATHS_MAX {
            changes.paths.insert(path.to_owned());
        } else {
            changes.paths = [PathBuf::from(ANYWHERE)].into();
        }
        drop(inbox);
        if is_first {
            self.wake.notify_one();
        }
    }

    pub(super) fn scan(&self) {
        lock(&self.inbox).waiting.scan = true;
        self.wake.notify_one();
    }

    pub(super) fn ended(&self, is_unsaved: bool) {
        lock(&self.inbox).waiting.ended = Some(is_unsaved);
        self.wake.notify_one();
    }

    /// Has the thread end after its present step, which may wait for a disk for ever.
    pub(super) fn end(&self) {
        self.directory.ended.store(true, Ordering::Release);
        // Not between the thread's check and its wait.
        drop(lock(&self.inbox));
        self.wake.notify_one();
    }

    /// Waits until there is something to do, or until `due`; `None` when the thread is to end.
    /// `is_busy`: whether the thread has work that it has not done yet.
    pub(super) fn wait(&self, due: Option<Instant>, is_busy: bool) -> Option<Waiting> {
        let mut inbox = lock(&self.inbox);
        loop {
            if self.directory.has_ended() {
                return None;
            }
            let now = Instant::now();
            let settled = inbox.changes.as_ref().map(Changes::due);
            let is_waiting = inbox.waiting.scan || inbox.waiting.ended.is_some();
            let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            if is_waiting || is_due(settled) || is_due(due) {
                let mut waiting = std::mem::take(&mut inbox.waiting);
                if is_due(settled) {
                    waiting.paths = inbox
                        .changes
                        .take()
                        .map_or_else(BTreeSet::new, |it| it.paths);
                }
                inbox.is_busy = true;
                return Some(waiting);
            }
            inbox.is_busy = is_busy;
            inbox = match settled.into_iter().chain(due).min() {
                Some(at) => unpoisoned(self.wake.wait_timeout(inbox, at - now)).0,
                None => unpoisoned(self.wake.wait(inbox)),
            };
        }
    }

    fn is_busy(&self) -> bool {
        let inbox = lock(&self.inbox);
        inbox.is_busy || inbox.changes.is_some()
    }

    fn hangs(&self) -> bool {
        lock(&self.walking).is_some_and(|since| since.elapsed() > PATIENCE)
    }

    /// Stores the state, and logs it when the directory is no longer watched completely.
    pub(super) fn tell(&self, new: Status) {
        let mut status = lock(&self.status);
        if new.state != WatchState::Watched && status.state != new.state {
            let message = new.message.as_deref().unwrap_or_default();
            let written = &self.written;
            let state = new.state;
            log::warn!("the watched directory {written} is {state}: {message}");
        }
        *status = new;
    }

    pub(super) fn status(&self) -> Status {
        if self.hangs() {
            let why = "its disk does not answer".to_owned();
            return Status::new(WatchState::Unreadable, Some(why));
        }
        let mut status = lock(&self.status).clone();
        if status.state == WatchState::Watched && status.message.is_none() && self.is_busy() {
            status.message = Some("scanning".to_owned());
        }
        status
    }
}

/// The watched directories. Clones share the same list.
#[derive(Clone, Default)]
pub(crate) struct WatchList(Arc<Mutex<Vec<Arc<Watched>>>>);

impl WatchList {
    pub(super) fn all(&self) -> Vec<Arc<Watched>> {
        lock(&self.0).clone()
    }

    pub(super) fn set(&self, directories: Vec<Arc<Watched>>) -> Vec<Arc<Watched>> {
        std::mem::replace(&mut *lock(&self.0), directories)
    }

    /// The directories that are watched as a whole, which may be reached over links.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let list = lock(&self.0);
        let whole = list.iter().filter(|one| one.directory.which == Which::All);
        whole.map(|one| one.directory.path.clone()).collect()
    }

    /// Passes on a change to all directories.
    pub(super) fn changed(&self, path: &Path) {
        let now = Instant::now();
        lock(&self.0).iter().for_each(|one| one.changed(path, now));
    }

    /// Has a file looked at again.
    pub(crate) fn look_at(&self, file: &Path) {
        let now = Instant::now();
        let list = lock(&self.0);
        let with = list
            .iter()
            .filter(|one| file.starts_with(&one.directory.path));
        with.for_each(|one| one.changed(file, now));
    }

    /// The directory that a file belongs to: of several, the innermost.
    pub(super) fn root_of(&self, file: &Path) -> Option<Arc<Watched>> {
        let list = lock(&self.0);
        let whole = list.iter().filter(|one| {
            one.directory.which == Which::All && file.starts_with(&one.directory.path)
        });
        let innermost = whole.max_by_key(|one| one.directory.path.components().count());
        innermost.cloned()
    }

    /// Whether the directory of a file is away, as its thread has told.
    pub(super) fn is_away(&self, file: &Path) -> bool {
        let root = self.root_of(file);
        root.is_some_and(|one| lock(&one.status).state == WatchState::Away)
    }

    /// Whether a file was found, and its present content is not read yet.
    pub(super) fn is_unsettled(&self, file: &Path) -> bool {
        lock(&self.0)
            .iter()
            .any(|one| lock(&one.unsettled).contains_key(file))
    }

    /// Notes that the content of a file was read.
    pub(crate) fn settled(&self, file: &Path) {
        for one in lock(&self.0).iter() {
            lock(&one.unsettled).remove(file);
        }
    }

    /// The sizes of the files that were found and are not read yet.
    pub(super) fn unsettled_sizes(&self) -> HashSet<u64> {
        let list = lock(&self.0);
        let sizes = |one: &Arc<Watched>| lock(&one.unsettled).values().copied().collect::<Vec<_>>();
        list.iter().flat_map(sizes).collect()
    }

    /// Whether a directory is being listed.
    pub(super) fn is_walking(&self) -> bool {
        let is_walking = |one: &Arc<Watched>| lock(&one.walking).is_some() && !one.hangs();
        lock(&self.0).iter().any(is_walking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_taken_together_when_they_have_settled() {
        let one = Watched::new(1, "w".to_owned(), Directory::default());
        let begun = Instant::now() - SETTLE * 2;
        // Steady changes do not postpone the look for ever.
        (0..4).for_each(|step| {
            one.changed(Path::new(&format!("/w/{step}")), begun + SETTLE / 2 * step)
        });
        assert!(one.status().message.is_some(), "it is busy");
        let waiting = one.wait(None, false).unwrap();
        assert_eq!(waiting.paths.len(), 4);
        let due = Some(Instant::now());
        assert!(one.wait(due, false).unwrap().paths.is_empty());
        one.end();
        assert!(one.wait(None, false).is_none());
    }

    #[test]
    fn too_many_changes_mean_the_whole_directory() {
        let one = Watched::new(1, "w".to_owned(), Directory::default());
        let begun = Instant::now() - SETTLE_MAX;
        (0..=PATHS_MAX).for_each(|number| one.changed(Path::new(&number.to_string()), begun));
        assert_eq!(
            one.wait(None, false).unwrap().paths,
            [PathBuf::from("/")].into()
        );
    }
}
