//! Notifies workers when processes of their backends end, and keeps the logs of these short.
//!
//! The thread `reaper` waits on all pidfds and on the directory of the logs. It does not reap
//! processes; their owner does. It sleeps unless something happens, and while backends write to
//! their logs, it wakes at most twenty times a second.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fs::inotify::WatchFlags;
use rustix::fs::{FlockOperation, flock};

use super::Child;
use crate::sys::{Cancel, CancelOnDrop, Inotify, lock};
use crate::thread::{Spawner, Thread};

/// Size in bytes above which a log is emptied.
const LOG_MAX: u64 = 1 << 20;
/// Disk usage in bytes above which a held log is emptied, that is, one that is still being read
/// while its backend starts. The reader frees the part that it has read.
const HELD_LOG_MAX: u64 = 256 << 20;
/// The time between two checks of the logs. A backend that writes as fast as possible writes some
/// 25 MB in that time, to a directory in memory.
const LOG_PAUSE: Duration = Duration::from_millis(100);

/// Tokens of events that do not belong to a process; those of processes are their descriptors.
const STOP: u64 = u64::MAX;
const LOGS: u64 = u64::MAX - 1;

/// Watches processes; the thread ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Reaper {
    shared: Arc<Shared>,
    _owner: Arc<Owner>,
}

#[derive(Debug)]
struct Shared {
    epoll: OwnedFd,
    /// Kept open while the thread runs: closing it would remove it from the epoll, and the wake-up
    /// would be lost.
    _stop: Cancel,
    /// The children and the channels to notify when they end, by descriptor.
    watched: Mutex<HashMap<u64, (Child, Sender<()>)>>,
}

/// The fields are dropped in this order: the thread is told to stop before it is joined.
#[derive(Debug)]
struct Owner {
    _stop: CancelOnDrop,
    _thread: Thread,
}

impl Reaper {
    /// `logs` is the directory whose `*.log` files are kept short.
    pub fn start(spawner: &Spawner, logs: &Path) -> io::Result<Self> {
        let stop = Cancel::new()?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        // The limit on watches is per user, and other programs may have used it up.
        let notify = watch_logs(logs)
            .inspect_err(|error| {
                log::warn!("cannot limit the size of the logs of processes: {error}")
            })
            .ok();
        epoll::add(&epoll, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        if let Some(notify) = &notify {
            epoll::add(&epoll, notify, EventData::new_u64(LOGS), EventFlags::IN)?;
        }
        let shared = Arc::new(Shared {
            epoll,
            _stop: stop.clone(),
            watched: Mutex::default(),
        });
        let logs = Logs {
            notify,
            directory: logs.to_owned(),
            next_look: None,
        };
        let theirs = Arc::clone(&shared);
        let thread = spawner.spawn("reaper", move || watch(&theirs, logs))?;
        let owner = Arc::new(Owner {
            _stop: CancelOnDrop(stop),
            _thread: thread,
        });
        Ok(Self {
            shared,
            _owner: owner,
        })
    }

    /// Sends on `tell` once the child has ended. If the channel is full, the owner will check
    /// anyway.
    pub fn watch(&self, child: &Child, tell: &Sender<()>) -> io::Result<()> {
        let token = token(child);
        let mut watched = lock(&self.shared.watched);
        epoll::add(
            &self.shared.epoll,
            child,
            EventData::new_u64(token),
            EventFlags::IN,
        )?;
        watched.insert(token, (child.clone(), tell.clone()));
        Ok(())
    }

    /// Stops watching a child.
    pub fn forget(&self, child: &Child) {
        if let Some((child, _)) = lock(&self.shared.watched).remove(&token(child)) {
            epoll::delete(&self.shared.epoll, &child).ok();
        }
    }
}

/// Clones of a child share the descriptor, which stays open while the child is watched.
fn token(child: &Child) -> u64 {
    child.as_fd().as_raw_fd().unsigned_abs().into()
}

impl Shared {
    fn take_ended(&self, token: u64) -> Option<Sender<()>> {
        let mut watched = lock(&self.watched);
        // The event may be from a forgotten child whose descriptor number was reused.
        watched
            .get(&token)
            .filter(|(child, _)| !child.is_running())?;
        let (child, tell) = watched.remove(&token)?;
        epoll::delete(&self.epoll, &child).ok();
        Some(tell)
    }
}

fn watch(shared: &Shared, mut logs: Logs) {
    let mut buffer = [MaybeUninit::<Event>::uninit(); 16];
    loop {
        let timeout = logs
            .next_look
            .map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|left| Timespec::try_from(left).ok());
        let events = match epoll::wait(&shared.epoll, &mut buffer, timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => panic!("epoll_wait failed: {error}"),
        };
        for event in events {
            match event.data.u64() {
                STOP => return,
                LOGS => logs.shorten(&shared.epoll),
                token => {
                    if let Some(tell) = shared.take_ended(token) {
                        tell.try_send(()).ok();
                    }
                }
            }
        }
        logs.rearm(&shared.epoll);
    }
}

fn watch_logs(directory: &Path) -> io::Result<Inotify> {
    let notify = Inotify::new()?;
    notify.watch(directory, WatchFlags::MODIFY)?;
    Ok(notify)
}

struct Logs {
    /// `None` if the directory cannot be watched; then only the limit on file sizes applies.
    notify: Option<Inotify>,
    directory: PathBuf,
    /// While set, writes to logs do not wake the thread.
    next_look: Option<Instant>,
}

impl Logs {
    fn shorten(&mut self, epoll: &OwnedFd) {
        let Some(notify) = &self.notify else { return };
        notify.drain();
        epoll::modify(epoll, notify, EventData::new_u64(LOGS), EventFlags::empty()).ok();
        self.next_look = Some(Instant::now() + LOG_PAUSE);
        let Ok(entries) = std::fs::read_dir(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.len() > LOG_MAX
                && path.extension().is_some_and(|extension| extension == "log")
            {
                shorten(&path, metadata.blocks() * 512);
            }
        }
    }

    fn rearm(&mut self, epoll: &OwnedFd) {
        if self.next_look.is_some_and(|at| at <= Instant::now()) {
            self.next_look = None;
            if let Some(notify) = &self.notify {
                epoll::modify(epoll, notify, EventData::new_u64(LOGS), EventFlags::IN).ok();
            }
        }
    }
}

fn shorten(log: &Path, usage: u64) {
    let Ok(file) = OpenOptions::new().write(true).open(log) else {
        return;
    };
    let is_held = || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
    if usage > HELD_LOG_MAX || !is_held() {
        // Writers use O_APPEND, so they continue at the start.
        file.set_len(0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Launch, ProcessRecords};
    use crossbeam_channel::bounded;
    use rustix::process::{Pid, Signal, kill_process};

    #[test]
    fn reaper_notifies_when_a_process_ends() {
        let dir = tempfile::tempdir().unwrap();
        let (spawner, deaths) = Spawner::new();
        let records = ProcessRecords::open(dir.path()).unwrap();
        let reaper = Reaper::start(&spawner, dir.path()).unwrap();
        let process = records
            .start(&Launch::new("/bin/sleep").args(["1000"]), "test", None)
            .unwrap();
        let (tell, told) = bounded(1);
        reaper.watch(process.child(), &tell).unwrap();
        assert!(
            reaper.shared.take_ended(token(process.child())).is_none(),
            "a stale event"
        );
        assert!(told.try_recv().is_err());
        let pid = Pid::from_raw(process.child().identity().pid).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(()));
        assert_eq!(
            process.child().ended(),
            Some(crate::process::Ended::Signal(9))
        );
        drop(reaper);
        assert!(deaths.try_recv().is_err());
    }

    #[test]
    fn forgotten_process_is_not_reported() {
        let dir = tempfile::tempdir().unwrap();
        let (spawner, _deaths) = Spawner::new();
        let records = ProcessRecords::open(dir.path()).unwrap();
        let reaper = Reaper::start(&spawner, dir.path()).unwrap();
        let sleeper = || Launch::new("/bin/sleep").args(["1000"]);
        let (one, other) = (
            records.start(&sleeper(), "test", None).unwrap(),
            records.start(&sleeper(), "test", None).unwrap(),
        );
        let (tell, told) = bounded(1);
        let (tell_other, told_other) = bounded(1);
        reaper.watch(one.child(), &tell).unwrap();
        reaper.watch(other.child(), &tell_other).unwrap();
        reaper.forget(one.child());
        one.kill();
        other.kill();
        told_other.recv_timeout(Duration::from_secs(60)).unwrap();
        drop(tell);
        assert!(told.recv().is_err());
    }

    #[test]
    fn log_of_a_new_process_is_emptied_after_its_release() {
        let dir = tempfile::tempdir().unwrap();
        let records = ProcessRecords::open(dir.path()).unwrap();
        let mut process = records
            .start(&Launch::new("/bin/sleep").args(["1000"]), "test", None)
            .unwrap();
        let log = process.log_path();
        std::fs::write(&log, "drawn\n").unwrap();
        shorten(&log, 0);
        assert_eq!(std::fs::read(&log).unwrap(), b"drawn\n");
        process.release_log();
        shorten(&log, 0);
        assert!(std::fs::read(&log).unwrap().is_empty());
        process.kill();
    }

    #[test]
    fn long_log_is_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let (spawner, _deaths) = Spawner::new();
        let log = dir.path().join("x.log");
        let _reaper = Reaper::start(&spawner, dir.path()).unwrap();
        std::fs::write(&log, vec![b'x'; usize::try_from(LOG_MAX).unwrap() + 1]).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::fs::metadata(&log).unwrap().len() > 0 {
            assert!(Instant::now() < deadline, "never emptied");
            std::thread::yield_now();
        }
    }
}
