//! The thread `config`: sees edits of the file, and has each taken up once.
//!
//! It sleeps in the kernel on an inotify descriptor of its own, which asks for exactly what
//! matters: other programs that read or write beside the file do not wake it. Only while an edit
//! is in flight does it wait with a deadline. It never writes, and never reads the file itself.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::handle::Settled;
use super::watch_paths::WatchPaths;
use super::{ConfigHandle, Error};
use crate::thread::{Spawner, Thread};

/// From the end of a change to when it is taken up: editors make several in a row.
const SETTLE: Duration = Duration::from_millis(250);
/// From the last write to when the file counts as it is, even if somebody has it open still, or it
/// is missing, empty or broken: within two seconds that is told.
const LAST: Duration = Duration::from_millis(1800);
/// The watch is made anew so often; after that something is wrong that will not pass.
const RENEWALS: u32 = 3;

/// What is wrong with a descriptor, as poll says it.
const BROKEN: PollFlags = PollFlags::ERR.union(PollFlags::HUP).union(PollFlags::NVAL);
/// Of a directory, where only its own end matters.
const GONE: WatchFlags = WatchFlags::DELETE_SELF.union(WatchFlags::MOVE_SELF);
/// Of a directory, where names in it matter. `CLOSE_WRITE`: a new file is often written and closed
/// before it can be watched itself.
const NAMES: WatchFlags = GONE
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);
/// Of the file. `ATTRIB`: it may become readable.
const CONTENT: WatchFlags =
    WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE).union(WatchFlags::ATTRIB);

/// The running watch; dropping it ends the thread.
#[derive(Debug)]
pub struct Watch {
    // Declared above the thread: it is rung before the thread is joined.
    bell: Bell,
    thread: Thread,
}

#[derive(Debug)]
struct Bell(Arc<OwnedFd>);

impl Drop for Bell {
    fn drop(&mut self) {
        // Fails only when the counter is full, and then the thread wakes as well.
        rustix::io::write(&*self.0, &1_u64.to_ne_bytes()).ok();
    }
}

impl Watch {
    pub fn start(config: ConfigHandle, spawner: &Spawner) -> Result<Self, Error> {
        Self::begin(config, spawner).map_err(|source| Error::Watch { source })
    }

    fn begin(config: ConfigHandle, spawner: &Spawner) -> io::Result<Self> {
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut watcher = Watcher {
            path: config.path().to_owned(),
            watched: HashMap::new(),
            due: None,
            written: Instant::now(),
            renewals: 0,
            inotify,
            config,
        };
        // In this thread: from here on no edit goes unseen, and a system without watches left
        // says so at once.
        watcher.watch()?;
        watcher.config.refresh(false);
        let bell = Bell(Arc::clone(&end));
        let thread = spawner.spawn("config", move || watcher.run(&end))?;
        Ok(Self { bell, thread })
    }

    /// Ends the thread by the deadline; false where it is late.
    pub fn end(self, deadline: Instant) -> bool {
        drop(self.bell);
        self.thread.join_by(deadline)
    }
}

struct Watcher {
    config: ConfigHandle,
    path: PathBuf,
    inotify: OwnedFd,
    /// What each watch is for.
    watched: HashMap<i32, Watched>,
    /// When the edit that is in flight is taken up.
    due: Option<Instant>,
    /// When it was last seen to go on.
    written: Instant,
    /// How often the watch was made anew.
    renewals: u32,
}

#[derive(Debug, PartialEq)]
enum Watched {
    Directory(BTreeSet<OsString>),
    File,
}

/// How far an edit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EditPhase {
    Done,
    /// Somebody may have it open for writing.
    Open,
}

impl Watcher {
    fn run(&mut self, end: &OwnedFd) {
        loop {
            match self.wait(end) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => match self.renew(&error) {
                    Ok(()) => continue,
                    Err(error) => {
                        let path = self.path.display();
                        return self.config.is_unwatched(&format!("cannot watch {path}: {error}"));
                    }
                },
            }
            if let Some(phase) = self.drain() {
                self.written = Instant::now();
                self.due =
                    Some(self.written + if phase == EditPhase::Open { LAST } else { SETTLE });
                self.follow();
            } else if self.due.is_some_and(|due| due <= Instant::now()) {
                self.take_up();
            }
        }
    }

    /// Until there is something to do; whether it is the end.
    fn wait(&self, end: &OwnedFd) -> io::Result<bool> {
        let left = self.due.map(|due| due.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| {
            Timespec::try_from(left).expect("a deadline is seconds away, not centuries")
        });
        let mut sources =
            [PollFd::new(end, PollFlags::IN), PollFd::new(&self.inotify, PollFlags::IN)];
        match poll(&mut sources, timeout.as_ref()) {
            // Nothing would come from it any more, and the wait would end at once for ever.
            Ok(_) if sources[1].revents().intersects(BROKEN) => {
                Err(io::Error::other("the kernel has ended the watch"))
            }
            Ok(_) => Ok(!sources[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the watch anew after an error, and looks at what may have gone unseen.
    fn renew(&mut self, why: &io::Error) -> io::Result<()> {
        if self.renewals == RENEWALS {
            return Err(io::Error::other(why.to_string()));
        }
        self.renewals += 1;
        log::warn!("the watch on {} is made anew: {why}", self.path.display());
        self.inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        self.watched.clear();
        self.watch()?;
        self.written = Instant::now();
        self.due = Some(self.written + SETTLE);
        Ok(())
    }

    fn take_up(&mut self) {
        // What was made between the last event and its watch is found by looking again.
        self.follow();
        let last = self.written + LAST;
        let settled = self.config.refresh(Instant::now() < last);
        self.due = (settled == Settled::Perhaps).then_some(last);
    }

    /// The phase after the newest of the events that matter; `None` where none does.
    fn drain(&mut self) -> Option<EditPhase> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        // A close ends what a write began.
        let mut last = None;
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            let phase = match self.watched.get(&event.wd()) {
                _ if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => Some(EditPhase::Done),
                // Of a watch that was given up.
                None => None,
                Some(watched) => watched.phase(event.events(), name),
            };
            if event.events().contains(ReadFlags::IGNORED) {
                self.watched.remove(&event.wd());
            }
            last = phase.or(last);
        }
        last
    }

    fn follow(&mut self) {
        match self.watch() {
            Ok(()) => self.config.is_watched(),
            Err(error) => {
                self.config.is_unwatched(&format!("cannot watch {}: {error}", self.path.display()));
            }
        }
    }

    /// Brings the watches to where the path leads now.
    fn watch(&mut self) -> io::Result<()> {
        /// Somebody who moves things faster than this has an event waiting for us.
        const TRIES: usize = 8;
        let mut before = None;
        for _ in 0..TRIES {
            let paths = WatchPaths::on_the_way_to(&self.path);
            // What was made between the look and the watch shows in the next look.
            if before.as_ref() == Some(&paths) {
                return Ok(());
            }
            // Also where the names are the same: another file may be under them.
            self.watch_paths(&paths)?;
            before = Some(paths);
        }
        Ok(())
    }

    fn watch_paths(&mut self, paths: &WatchPaths) -> io::Result<()> {
        let mut watched = HashMap::new();
        for (directory, names) in &paths.directories {
            let flags = if names.is_empty() { GONE } else { NAMES };
            if let Some(wd) = self.add(directory, flags | WatchFlags::ONLYDIR)? {
                watched.insert(wd, Watched::Directory(names.clone()));
            }
        }
        if let Some(file) = &paths.file
            && let Some(wd) = self.add(file, CONTENT)?
        {
            watched.insert(wd, Watched::File);
        }
        for wd in self.watched.keys().filter(|wd| !watched.contains_key(wd)) {
            // Fails where the kernel has given it up already.
            inotify::remove_watch(&self.inotify, *wd).ok();
        }
        self.watched = watched;
        Ok(())
    }

    /// `None` where it is gone again or not ours to watch.
    fn add(&self, path: &Path, flags: WatchFlags) -> io::Result<Option<i32>> {
        match inotify::add_watch(&self.inotify, path, flags) {
            Ok(wd) => Ok(Some(wd)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Watched {
    /// How far an edit is after an event; `None` where the event is none of one.
    fn phase(&self, events: ReadFlags, name: Option<&OsStr>) -> Option<EditPhase> {
        match (self, name) {
            (Self::File, _) if events.contains(ReadFlags::MODIFY) => Some(EditPhase::Open),
            // A new file is empty at first, and whoever made it is still writing.
            (Self::Directory(names), Some(name)) if names.contains(name) => {
                let new = events.contains(ReadFlags::CREATE) && !events.contains(ReadFlags::ISDIR);
                Some(if new { EditPhase::Open } else { EditPhase::Done })
            }
            (Self::Directory(_), Some(_)) => None,
            (Self::File, _) | (Self::Directory(_), None) => Some(EditPhase::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventBus;

    #[test]
    fn config_watch_that_the_kernel_ends_is_made_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        let config = ConfigHandle::open(path.clone(), EventBus::new()).unwrap();
        // Its other end is closed: poll says so, for ever.
        let (broken, _) = rustix::pipe::pipe().unwrap();
        let end = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let mut watcher = Watcher {
            path: path.clone(),
            watched: HashMap::new(),
            due: None,
            written: Instant::now(),
            renewals: 0,
            inotify: broken,
            config: config.clone(),
        };
        let error = watcher.wait(&end).unwrap_err();
        watcher.renew(&error).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("theme = \"dark\"", "theme = \"x\"")).unwrap();
        while config.current().app.theme != "x" {
            assert!(!watcher.wait(&end).unwrap());
            watcher.drain();
            watcher.take_up();
        }
        watcher.renewals = RENEWALS;
        assert!(watcher.renew(&error).is_err(), "not for ever");
    }
}
