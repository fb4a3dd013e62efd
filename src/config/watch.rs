//! The thread `config`: notices edits of the file and has each read once.
//!
//! It sleeps until the kernel reports a change; programs that read the file do not wake it. It waits
//! with a deadline only during an edit, and never reads or writes the file itself.
//!
//! It watches the file, and all directories and links that lead to it.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::WatchFlags;

use super::handle::Settled;
use super::{ConfigHandle, Error};
use crate::error_chain::plain;
use crate::kernel::{Kernel, NAMES, Notice, Subscriber};
use crate::paths::{Presence, presence};
use crate::sys::{Cancel, CancelOnDrop, Waker, lock, poll_until};
use crate::thread::{Spawner, Thread};

/// The delay from a change until the file is read: editors make several changes in a row.
const SETTLE: Duration = Duration::from_millis(250);
/// The delay from the last write until the file is read even if it is still open, missing, empty or
/// broken: the edit is reported within two seconds.
const LAST: Duration = Duration::from_millis(1800);
/// `CLOSE_WRITE` ends an edit. With `OPEN`, each reader would wake the thread.
const CHANGES: WatchFlags = NAMES
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE);

/// The running watch; dropping it ends the thread.
#[derive(Debug)]
pub struct Watch {
    // Declared above the thread: it cancels before the thread is joined.
    end: CancelOnDrop,
    thread: Thread,
}

impl Watch {
    pub fn start(config: ConfigHandle, kernel: &Kernel, spawner: &Spawner) -> Result<Self, Error> {
        let failed = |source| Error::Watch { source };
        let mut watcher = Watcher::new(config, kernel).map_err(failed)?;
        // In this thread: no edit is missed from here on, and a system without watches left is
        // reported at once.
        watcher.watch().map_err(failed)?;
        watcher.config.refresh(false);
        let end = Cancel::new().map_err(failed)?;
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

/// The last change of the file, for the thread.
struct LastChange {
    /// When the file was changed, and how long the edit may still take.
    change: Mutex<Option<(Instant, Duration)>>,
    waker: Waker,
}

impl LastChange {
    fn note(&self, notice: &Notice<'_>) {
        let delay = if notice.is_unfinished { LAST } else { SETTLE };
        *lock(&self.change) = Some((Instant::now(), delay));
        self.waker.wake();
    }

    fn take(&self) -> Option<(Instant, Duration)> {
        self.waker.reset();
        lock(&self.change).take()
    }
}

struct Watcher {
    config: ConfigHandle,
    last: Arc<LastChange>,
    files: Subscriber,
    /// When the current edit is read.
    due: Option<Instant>,
    /// When the file was last written.
    written: Instant,
}

impl Watcher {
    fn new(config: ConfigHandle, kernel: &Kernel) -> io::Result<Self> {
        let last = Arc::new(LastChange {
            change: Mutex::default(),
            waker: Waker::new()?,
        });
        let told = Arc::clone(&last);
        Ok(Self {
            config,
            last,
            files: kernel.subscribe(move |notice| told.note(notice)),
            due: None,
            written: Instant::now(),
        })
    }

    fn run(&mut self, end: &Cancel) {
        loop {
            let mut waited = [
                PollFd::new(&self.last.waker, PollFlags::IN),
                PollFd::new(end, PollFlags::IN),
            ];
            match poll_until(&mut waited, self.due) {
                Ok(_) if !waited[1].revents().is_empty() => return,
                Ok(true) => self.hear(),
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

    /// The last of several changes counts: a close ends an edit that a write began.
    fn hear(&mut self) {
        if let Some((written, delay)) = self.last.take() {
            self.written = written;
            self.due = Some(written + delay);
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
        self.last.take();
        match self.watch() {
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

    /// Watches the path and the file itself, which may also be written under another name.
    fn watch(&mut self) -> io::Result<()> {
        let mut watches = self.files.watch();
        watches.follow(self.config.path(), CHANGES);
        watches.file(self.config.path(), CHANGES);
        watches.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;
    use crate::events::EventBus;

    struct Room {
        root: PathBuf,
        kernel: Kernel,
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
        let kernel = Kernel::unattended();
        let mut watcher = Watcher::new(config, &kernel).unwrap();
        watcher.watch().unwrap();
        Room {
            root,
            kernel,
            watcher,
            _directory: directory,
        }
    }

    impl Room {
        /// The delay after all that has happened since the last call.
        fn delay(&mut self) -> Option<Duration> {
            self.watcher.due = None;
            self.kernel.read();
            self.watcher.hear();
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
        room.watcher.read_edit();
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
        assert_eq!(room.delay(), None);
    }

    #[test]
    fn creation_of_a_missing_directory_is_noticed() {
        let mut room = room();
        fs::remove_dir_all(room.root.join("a")).unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
        room.watcher.read_edit();
        fs::write(room.root.join("one"), "").unwrap();
        assert_eq!(room.delay(), None);
        fs::create_dir(room.root.join("a")).unwrap();
        assert_eq!(room.delay(), Some(SETTLE));
    }
}
