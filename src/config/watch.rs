//! The thread `config`: notices edits of the file and has each read once.
//!
//! It sleeps until an event arrives; programs that read the file do not wake it. It waits with a
//! deadline only during an edit, and never reads or writes the file itself.
//!
//! It watches the file, its directory and the directory of each link that leads to it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};
use notify::event::{AccessKind, CreateKind, EventKind, EventKindMask, ModifyKind};
use notify::{Config, ErrorKind, Event, INotifyWatcher, RecursiveMode, Watcher as _};
use rustix::io::Errno;

use super::handle::Settled;
use super::{ConfigHandle, Error};
use crate::paths::{Presence, presence};
use crate::sys::{WatchPaths, no_watches_left};
use crate::thread::{Spawner, Thread};

/// The delay from a change until the file is read: editors make several changes in a row.
pub(super) const SETTLE: Duration = Duration::from_millis(250);
/// The delay from the last write until the file is read even if it is still open, missing, empty or
/// broken: the edit is reported within two seconds.
pub(super) const LAST: Duration = Duration::from_millis(1800);
/// Events that wait for the thread. If there are more, the file is read in any case.
const EVENTS: usize = 64;
/// `ACCESS_CLOSE` ends an edit. With `OPEN`, each reader would wake the thread.
const KINDS: EventKindMask = EventKindMask::CORE.union(EventKindMask::ACCESS_CLOSE);

/// The running watch; dropping it ends the thread.
#[derive(Debug)]
pub struct Watch {
    // Declared above the thread: it closes before the thread is joined.
    end: Sender<()>,
    thread: Thread,
}

impl Watch {
    pub fn start(config: ConfigHandle, spawner: &Spawner) -> Result<Self, Error> {
        let watched = Watcher::new(config).and_then(|mut watcher| {
            // In this thread: no edit is missed from here on, and a system without watches left is
            // reported at once.
            watcher.watch()?;
            Ok(watcher)
        });
        let mut watcher = watched.map_err(|error| Error::Watch { source: why(error) })?;
        watcher.config.refresh(false);
        // Nothing is ever sent: it closes.
        let (end, ended) = bounded(0);
        let thread = spawner.spawn("config", move || watcher.run(&ended));
        let thread = thread.map_err(|source| Error::Watch { source })?;
        Ok(Self { end, thread })
    }

    /// Ends the thread by the deadline; false if it is late.
    pub fn end(self, deadline: Instant) -> bool {
        drop(self.end);
        self.thread.join_by(deadline)
    }
}

/// The kernel's reason, with what to do about a limit.
fn why(error: notify::Error) -> io::Error {
    match error.kind {
        ErrorKind::MaxFilesWatch => no_watches_left("watches"),
        ErrorKind::Io(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            no_watches_left("instances")
        }
        ErrorKind::Io(error) => error,
        _ => io::Error::other(error),
    }
}

/// The places to watch for a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places {
    watched: BTreeSet<PathBuf>,
    /// The names whose events matter: of the file and of the links that lead to it.
    names: Vec<PathBuf>,
}

impl Places {
    fn of(path: &Path) -> Self {
        let way = WatchPaths::on_the_way_to(path);
        let mut places = Self::default();
        // The nearest directory above a missing one reports when it is made.
        for (directory, names) in way.directories.into_iter().filter(|(_, names)| !names.is_empty())
        {
            places.names.extend(names.iter().map(|name| directory.join(name)));
            places.watched.insert(directory);
        }
        // It may be written under another name, too.
        places.watched.extend(way.file);
        places
    }

    fn concern(&self, event: &Event) -> bool {
        let is_place = |path: &PathBuf| self.names.contains(path) || self.watched.contains(path);
        event.need_rescan() || event.paths.iter().any(is_place)
    }
}

struct Watcher {
    config: ConfigHandle,
    path: PathBuf,
    watcher: INotifyWatcher,
    places: Places,
    events: Receiver<notify::Result<Event>>,
    /// Set before an event may be dropped.
    overflowed: Arc<AtomicBool>,
    /// When the current edit is read.
    due: Option<Instant>,
    /// When the file was last written.
    written: Instant,
}

impl Watcher {
    fn new(config: ConfigHandle) -> notify::Result<Self> {
        let (sender, events) = bounded(EVENTS);
        let overflowed = Arc::new(AtomicBool::new(false));
        let full = Arc::clone(&overflowed);
        let handler = move |event| {
            if sender.is_full() {
                full.store(true, Ordering::Release);
            }
            sender.try_send(event).ok();
        };
        let watcher = INotifyWatcher::new(handler, Config::default().with_event_kinds(KINDS))?;
        let (path, places) = (config.path().to_owned(), Places::default());
        let (due, written) = (None, Instant::now());
        Ok(Self { config, path, watcher, places, events, overflowed, due, written })
    }

    fn run(&mut self, end: &Receiver<()>) {
        loop {
            let due = self.due.map_or_else(never, at);
            select! {
                recv(self.events) -> event => match event {
                    Ok(event) => self.on_event(event),
                    Err(_) => {
                        let path = self.path.display();
                        return self.config.is_unwatched(&format!("{path} is no longer watched"));
                    }
                },
                recv(due) -> _ => self.read_edit(),
                recv(end) -> _ => return,
            }
        }
    }

    /// Handles the events that have arrived since, too: a close ends an edit that a write began.
    fn on_event(&mut self, first: notify::Result<Event>) {
        let events = std::iter::once(first).chain(self.events.try_iter());
        let delay = events.filter_map(|event| self.delay_after(event)).last();
        let overflow = self.overflowed.swap(false, Ordering::AcqRel).then_some(SETTLE);
        let Some(delay) = delay.or(overflow) else { return };
        self.written = Instant::now();
        self.due = Some(self.written + delay);
    }

    /// How long the edit may still take after an event; none if it belongs to no edit.
    fn delay_after(&self, event: notify::Result<Event>) -> Option<Duration> {
        let event = event.inspect_err(|error| {
            log::warn!("changes of {} may have been missed: {error}", self.path.display());
        });
        let Ok(event) = event else { return Some(SETTLE) };
        if !self.places.concern(&event) {
            return None;
        }
        match event.kind {
            EventKind::Modify(ModifyKind::Data(_)) => Some(LAST),
            // A new file is empty at first, because its creator is still writing.
            EventKind::Create(kind) if kind != CreateKind::Folder => Some(LAST),
            EventKind::Access(AccessKind::Open(_)) => None,
            _ => Some(SETTLE),
        }
    }

    fn read_edit(&mut self) {
        // Another file may have the name now.
        self.follow();
        let last = self.written + LAST;
        let settled = self.config.refresh(Instant::now() < last);
        self.due = (settled == Settled::Perhaps).then_some(last);
    }

    fn follow(&mut self) {
        if presence(&self.path) == Presence::NoAnswer {
            let path = self.path.display();
            return self.config.is_unwatched(&format!("the disk of {path} does not answer"));
        }
        match self.watch() {
            Ok(()) => self.config.is_watched(),
            Err(error) => {
                self.config.is_unwatched(&format!("cannot watch {}: {error}", self.path.display()));
            }
        }
    }

    /// Watches the places of the path as they are now, also if they have the same names: they may be
    /// other files.
    fn watch(&mut self) -> notify::Result<()> {
        /// If paths change faster than this, another event is waiting.
        const TRIES: usize = 8;
        for _ in 0..TRIES {
            let places = Places::of(&self.path);
            for path in &self.places.watched {
                // It fails if the kernel has removed the watch already.
                self.watcher.unwatch(path).ok();
            }
            for path in &places.watched {
                match self.watcher.watch(path, RecursiveMode::NonRecursive) {
                    Err(error) if !is_gone(&error) => return Err(error),
                    // Removed again, or not readable: its directory reports when that changes.
                    _ => {}
                }
            }
            self.places = places;
            // Directories that were made between the look and the watch are found by the next look.
            if self.places == Places::of(&self.path) {
                break;
            }
        }
        Ok(())
    }
}

fn is_gone(error: &notify::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => {
            matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use notify::event::{AccessMode, DataChange, Flag, MetadataKind, RemoveKind, RenameMode};

    use super::*;
    use crate::events::EventBus;

    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const OPENED: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Read));
    const MADE: EventKind = EventKind::Create(CreateKind::File);
    const MADE_FOLDER: EventKind = EventKind::Create(CreateKind::Folder);
    const MOVED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));
    const ALLOWED: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
    const REMOVED: EventKind = EventKind::Remove(RemoveKind::Any);

    struct Room {
        root: PathBuf,
        watcher: Watcher,
        /// Events of the test's own, in place of the kernel's.
        events: Sender<notify::Result<Event>>,
        _directory: tempfile::TempDir,
    }

    /// `link` leads to the file `a/one`.
    fn room() -> Room {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir(root.join("a")).unwrap();
        for name in ["a/one", "a/two"] {
            fs::write(root.join(name), "").unwrap();
        }
        symlink("a/one", root.join("link")).unwrap();
        let config = ConfigHandle::open(root.join("link"), EventBus::new()).unwrap();
        let mut watcher = Watcher::new(config).unwrap();
        watcher.watch().unwrap();
        let (events, ours) = bounded(EVENTS);
        watcher.events = ours;
        Room { root, watcher, events, _directory: directory }
    }

    impl Room {
        fn event(&self, kind: EventKind, name: &str) -> notify::Result<Event> {
            Ok(Event::new(kind).add_path(self.root.join(name)))
        }

        fn delay(&self, kind: EventKind, name: &str) -> Option<Duration> {
            self.watcher.delay_after(self.event(kind, name))
        }
    }

    #[test]
    fn edit_is_waited_for_as_long_as_another_program_may_write() {
        let mut room = room();
        for (kind, expected) in [
            (WRITTEN, Some(LAST)),
            (MADE, Some(LAST)),
            (OPENED, None),
            (CLOSED, Some(SETTLE)),
            (MADE_FOLDER, Some(SETTLE)),
            (MOVED, Some(SETTLE)),
            (ALLOWED, Some(SETTLE)),
            (REMOVED, Some(SETTLE)),
        ] {
            assert_eq!(room.delay(kind, "a/one"), expected, "{kind:?}");
            assert_eq!(room.delay(kind, "link"), expected, "{kind:?}");
            for other in ["a/two", "other", "a/one/in"] {
                assert_eq!(room.delay(kind, other), None, "{kind:?} of {other}");
            }
        }
        assert_eq!(room.delay(REMOVED, "a"), Some(SETTLE));
        let missed = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(room.watcher.delay_after(Ok(missed)), Some(SETTLE));
        assert_eq!(
            room.watcher.delay_after(Err(notify::Error::generic("on purpose"))),
            Some(SETTLE)
        );
        // The last one counts.
        room.events.send(room.event(CLOSED, "a/one")).unwrap();
        room.events.send(room.event(CLOSED, "a/two")).unwrap();
        room.watcher.on_event(room.event(WRITTEN, "a/one"));
        assert_eq!(room.watcher.due, Some(room.watcher.written + SETTLE));
    }

    #[test]
    fn events_that_were_dropped_have_the_file_read() {
        let mut room = room();
        room.watcher.on_event(room.event(WRITTEN, "other"));
        assert_eq!(room.watcher.due, None);
        room.watcher.overflowed.store(true, Ordering::Release);
        room.watcher.on_event(room.event(WRITTEN, "other"));
        assert_eq!(room.watcher.due, Some(room.watcher.written + SETTLE));
    }

    #[test]
    fn file_that_may_be_on_its_way_is_looked_at_once_more() {
        let mut room = room();
        let whole = fs::read_to_string(&room.watcher.path).unwrap();
        let later = Instant::now() + Duration::from_secs(600);
        let mut due = |text: &str, written: Instant| {
            fs::write(&room.watcher.path, text).unwrap();
            room.watcher.written = written;
            room.watcher.read_edit();
            room.watcher.due
        };
        assert_eq!(due(&format!("{whole}# more"), later), None);
        assert_eq!(due("[app", later), Some(later + LAST));
        assert_eq!(due("[app", Instant::now().checked_sub(LAST).unwrap()), None);
        assert_eq!(due(&whole, later), None);
    }

    #[test]
    fn another_file_of_the_same_name_is_watched_after_an_edit() {
        let mut room = room();
        fs::remove_file(room.root.join("link")).unwrap();
        symlink("a/two", room.root.join("link")).unwrap();
        room.watcher.config.is_unwatched("on purpose");
        assert_eq!(room.watcher.config.warnings().len(), 1);
        assert_eq!(room.delay(WRITTEN, "a/two"), None);
        room.watcher.read_edit();
        assert_eq!(room.delay(WRITTEN, "a/two"), Some(LAST));
        assert_eq!(room.watcher.config.warnings(), [""; 0], "it is watched again");
    }

    #[test]
    fn missing_directory_is_waited_for_where_it_will_be_made() {
        let room = room();
        let places = Places::of(&room.root.join("b/c/file"));
        assert_eq!(places.watched, BTreeSet::from([room.root.clone()]));
        assert_eq!(places.names, [room.root.join("b")]);
        let places = Places::of(&room.watcher.path);
        let expected = ["", "a", "a/one"].map(|name| room.root.join(name));
        assert_eq!(places.watched, BTreeSet::from(expected));
    }

    #[test]
    fn missing_files_are_no_error() {
        let io = |kind: io::ErrorKind| notify::Error::io(kind.into());
        assert!(is_gone(&notify::Error::path_not_found()));
        for kind in
            [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::PermissionDenied]
        {
            assert!(is_gone(&io(kind)), "{kind:?}");
        }
        assert!(!is_gone(&io(io::ErrorKind::StorageFull)));
        assert!(!is_gone(&notify::Error::new(ErrorKind::MaxFilesWatch)));
    }
}
