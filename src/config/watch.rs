//! The thread `config`: notices edits of the file and has each read once.
//!
//! It sleeps until the kernel reports a change; programs that read the file do not wake it. It waits
//! with a deadline only during an edit, and never reads or writes the file itself.
//!
//! It watches the file, its directory and the directory of each link that leads to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::handle::Settled;
use super::{ConfigHandle, Error};
use crate::error_chain::plain;
use crate::paths::{Presence, presence};
use crate::sys::{Cancel, CancelOnDrop, Inotify, WatchPaths, poll_until};
use crate::thread::{Spawner, Thread};

/// The delay from a change until the file is read: editors make several changes in a row.
const SETTLE: Duration = Duration::from_millis(250);
/// The delay from the last write until the file is read even if it is still open, missing, empty or
/// broken: the edit is reported within two seconds.
const LAST: Duration = Duration::from_millis(1800);
/// `CLOSE_WRITE` ends an edit. With `OPEN`, each reader would wake the thread.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF);

/// The running watch; dropping it ends the thread.
#[derive(Debug)]
pub struct Watch {
    // Declared above the thread: it cancels before the thread is joined.
    end: CancelOnDrop,
    thread: Thread,
}

impl Watch {
    pub fn start(config: ConfigHandle, spawner: &Spawner) -> Result<Self, Error> {
        let failed = |source| Error::Watch { source };
        // In this thread: no edit is missed from here on, and a system without watches left is
        // reported at once.
        let places = Places::watch(config.path()).map_err(failed)?;
        config.refresh(false);
        let end = Cancel::new().map_err(failed)?;
        let mut watcher = Watcher {
            config,
            places,
            due: None,
            written: Instant::now(),
        };
        let ended = end.clone();
        let thread = spawner
            .spawn("config", move || watcher.run(&ended))
            .map_err(failed)?;
        Ok(Self {
            end: CancelOnDrop(end),
            thread,
        })
    }

    /// Tells the thread to end, and returns it to be joined.
    pub fn end(self) -> Thread {
        drop(self.end);
        self.thread
    }
}

/// Each watch, with the names in the directory that matter; none for the file itself.
type Watches = BTreeMap<i32, Option<BTreeSet<OsString>>>;

/// The watches on the way to a path, as it was when they were made.
struct Places {
    inotify: Inotify,
    names: Watches,
}

impl Places {
    fn watch(path: &Path) -> io::Result<Self> {
        let mut places = Self {
            inotify: Inotify::new()?,
            names: BTreeMap::new(),
        };
        places.follow(path)?;
        Ok(places)
    }

    /// Watches the places of the path as they are now, and no others. If it fails, the former places
    /// stay watched.
    fn follow(&mut self, path: &Path) -> io::Result<()> {
        /// If paths change faster than this, another event is waiting.
        const TRIES: usize = 8;
        let mut all: BTreeSet<i32> = self.names.keys().copied().collect();
        let mut way = WatchPaths::on_the_way_to(path);
        let mut followed = Ok(());
        for _ in 0..TRIES {
            match self.add_all(&way, &mut all) {
                Ok(names) => self.names = names,
                Err(error) => {
                    followed = Err(error);
                    break;
                }
            }
            // Directories that were made between the look and the watch are found by the next look.
            let now = WatchPaths::on_the_way_to(path);
            if now == way {
                break;
            }
            way = now;
        }
        all.iter()
            .filter(|watch| !self.names.contains_key(watch))
            .for_each(|watch| {
                self.inotify.unwatch(*watch);
            });
        followed
    }

    /// Adds the watches of a way, also to `all`, which has them even if it fails.
    fn add_all(&self, way: &WatchPaths, all: &mut BTreeSet<i32>) -> io::Result<Watches> {
        let mut watches = Watches::new();
        for (directory, names) in &way.directories {
            // The nearest directory above a missing one reports when it is made.
            if !names.is_empty()
                && let Some(watch) = self.add(directory, all)?
            {
                let known = watches.entry(watch).or_default();
                known.get_or_insert_default().extend(names.iter().cloned());
            }
        }
        // The file may also be written under another name.
        if let Some(file) = &way.file
            && let Some(watch) = self.add(file, all)?
        {
            watches.insert(watch, None);
        }
        Ok(watches)
    }

    /// None if it was removed again, or is not readable: its directory reports when that changes.
    fn add(&self, path: &Path, all: &mut BTreeSet<i32>) -> io::Result<Option<i32>> {
        use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
        match self.inotify.watch(path, CHANGES) {
            Ok(watch) => {
                all.insert(watch);
                Ok(Some(watch))
            }
            Err(error) => match error.kind() {
                NotFound | NotADirectory | PermissionDenied => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// How long the edit may still take after an event; none if it belongs to no edit.
    fn delay_after(&self, watch: i32, what: ReadFlags, name: Option<&OsStr>) -> Option<Duration> {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return Some(SETTLE);
        }
        if let (Some(names), Some(name)) = (self.names.get(&watch)?, name)
            && !names.contains(name)
        {
            return None;
        }
        // A new file is empty at first, because its creator is still writing.
        let is_new = what.contains(ReadFlags::CREATE) && !what.contains(ReadFlags::ISDIR);
        Some(if is_new || what.contains(ReadFlags::MODIFY) {
            LAST
        } else {
            SETTLE
        })
    }
}

struct Watcher {
    config: ConfigHandle,
    places: Places,
    /// When the current edit is read.
    due: Option<Instant>,
    /// When the file was last written.
    written: Instant,
}

impl Watcher {
    fn run(&mut self, end: &Cancel) {
        loop {
            let mut waited = [
                PollFd::new(&self.places.inotify, PollFlags::IN),
                PollFd::new(end, PollFlags::IN),
            ];
            match poll_until(&mut waited, self.due) {
                Ok(_) if !waited[1].revents().is_empty() => return,
                Ok(true) => self.read_events(),
                Ok(false) => self.read_edit(),
                Err(error) => {
                    let path = self.config.path().display();
                    return self
                        .config
                        .is_unwatched(&format!("cannot watch {path}: {}", plain(&error)));
                }
            }
        }
    }

    /// Handles all events that have arrived: a close ends an edit that a write began.
    fn read_events(&mut self) {
        let mut last = None;
        self.places.inotify.read(|event| {
            let name = event
                .file_name()
                .map(|name| OsStr::from_bytes(name.to_bytes()));
            last = self
                .places
                .delay_after(event.wd(), event.events(), name)
                .or(last);
        });
        if let Some(delay) = last {
            self.written = Instant::now();
            self.due = Some(self.written + delay);
        }
    }

    fn read_edit(&mut self) {
        // Another file may have the name now.
        self.follow();
        let last = self.written + LAST;
        let settled = self.config.refresh(Instant::now() < last);
        self.due = (settled == Settled::Perhaps).then_some(last);
    }

    /// Watches the places of the path as they are now, even if their names are the same: they may
    /// be other files. Unread events belong to the edit that is about to be read.
    fn follow(&mut self) {
        let path = self.config.path().to_owned();
        if presence(&path) == Presence::NoAnswer {
            let path = path.display();
            return self
                .config
                .is_unwatched(&format!("the disk of {path} does not answer"));
        }
        self.places.inotify.drain();
        match self.places.follow(&path) {
            Ok(()) => self.config.is_watched(),
            Err(error) => {
                self.config.is_unwatched(&format!(
                    "cannot watch {}: {}",
                    path.display(),
                    plain(&error)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;
    use crate::events::EventBus;

    struct Room {
        root: PathBuf,
        watcher: Watcher,
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
        let places = Places::watch(config.path()).unwrap();
        let watcher = Watcher {
            config,
            places,
            due: None,
            written: Instant::now(),
        };
        Room {
            root,
            watcher,
            _directory: directory,
        }
    }

    impl Room {
        /// The delay after all that has happened since the last call.
        fn delay(&mut self) -> Option<Duration> {
            self.watcher.due = None;
            self.watcher.read_events();
            Some(self.watcher.due? - self.watcher.written)
        }
    }

    #[test]
    fn edit_is_read_once_no_program_writes_any_more() {
        let mut room = room();
        let one = room.root.join("a/one");
        let mut writer = OpenOptions::new().append(true).open(&one).unwrap();
        assert_eq!(room.delay(), None, "an open file is not written yet");
        writer.write_all(b"# more").unwrap();
        assert_eq!(room.delay(), Some(LAST), "it may write more");
        drop(writer);
        assert_eq!(room.delay(), Some(SETTLE));
        fs::read(&one).unwrap();
        assert_eq!(room.delay(), None, "readers change nothing");
        for other in ["a/two", "other", "a/more"] {
            fs::write(room.root.join(other), "x").unwrap();
        }
        assert_eq!(room.delay(), None, "other files are not the configuration");
        fs::set_permissions(&one, fs::metadata(&one).unwrap().permissions()).unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
        fs::rename(room.root.join("a/two"), &one).unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
        fs::remove_file(&one).unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
        drop(fs::File::create(&one).unwrap());
        assert_eq!(room.delay(), Some(SETTLE), "it is closed");
        fs::remove_file(room.root.join("link")).unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
        symlink("a/more", room.root.join("link")).unwrap();
        assert_eq!(room.delay(), Some(LAST), "its creator may be writing still");
        fs::remove_dir_all(room.root.join("a")).unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
    }

    #[test]
    fn event_overflow_leads_to_a_read() {
        let room = room();
        let missed = ReadFlags::QUEUE_OVERFLOW;
        assert_eq!(
            room.watcher.places.delay_after(-1, missed, None),
            Some(SETTLE)
        );
        assert_eq!(
            room.watcher.places.delay_after(-1, ReadFlags::MODIFY, None),
            None
        );
    }

    #[test]
    fn half_written_file_is_read_once_more() {
        let mut room = room();
        let path = room.watcher.config.path().to_owned();
        let whole = fs::read_to_string(&path).unwrap();
        let later = Instant::now() + Duration::from_secs(600);
        let mut due = |text: &str, written: Instant| {
            fs::write(&path, text).unwrap();
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
        let two = room.root.join("a/two");
        fs::remove_file(room.root.join("link")).unwrap();
        symlink("a/two", room.root.join("link")).unwrap();
        room.watcher.config.is_unwatched("on purpose");
        assert_eq!(room.watcher.config.warnings().len(), 1);
        room.delay();
        fs::write(&two, "").unwrap();
        assert_eq!(room.delay(), None);
        let descriptor = room.watcher.places.inotify.as_fd().as_raw_fd();
        room.watcher.read_edit();
        let now = room.watcher.places.inotify.as_fd().as_raw_fd();
        assert_eq!(
            now, descriptor,
            "other programs may have used up the instances"
        );
        fs::write(&two, "").unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
        assert_eq!(
            room.watcher.config.warnings(),
            [""; 0],
            "it is watched again"
        );
        // The former file is no longer watched, even if it was moved to another directory.
        let moved = room.root.join("b");
        fs::create_dir(&moved).unwrap();
        fs::rename(room.root.join("a/one"), moved.join("one")).unwrap();
        room.delay();
        fs::write(moved.join("one"), "").unwrap();
        let mut waited = [PollFd::new(&room.watcher.places.inotify, PollFlags::IN)];
        assert!(!poll_until(&mut waited, Some(Instant::now())).unwrap());
    }

    #[test]
    fn creation_of_a_missing_directory_is_noticed() {
        let mut room = room();
        room.watcher.places = Places::watch(&room.root.join("b/c/file")).unwrap();
        fs::write(room.root.join("c"), "").unwrap();
        assert_eq!(room.delay(), None);
        fs::create_dir(room.root.join("b")).unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
    }
}
