//! Keeps the logs of backends short, on the thread `logs`.
//!
//! It sleeps unless a backend writes to its log. While one keeps writing, it checks the logs ten times a
//! second.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::WatchFlags;
use rustix::fs::{FlockOperation, flock};

use crate::kernel::{Kernel, Subscriber};
use crate::sys::{Cancel, CancelOnDrop, Waker, poll_until};
use crate::thread::{OwnedThread, Spawner};

/// Size in bytes above which a log is emptied.
const LOG_MAX: u64 = 1 << 20;
/// The same for a held log, that is, one that is still being read while its backend starts.
const HELD_LOG_MAX: u64 = 64 << 20;
/// The time from a write to the check of the logs. A backend that writes as fast as possible writes
/// some 25 MB in that time, to a directory in memory.
const LOG_PAUSE: Duration = Duration::from_millis(100);

/// The running thread; dropping it ends the thread.
pub(crate) struct LogLimit(OwnedThread<CancelOnDrop>);

impl LogLimit {
    /// Keeps the `*.log` files in this directory short.
    pub(crate) fn start(kernel: &Kernel, spawner: &Spawner, directory: &Path) -> io::Result<Self> {
        let written = Arc::new(Waker::new()?);
        let wake = Arc::clone(&written);
        let mut logs = Logs {
            directory: directory.to_owned(),
            files: kernel.subscribe(move |_| wake.wake()),
            written,
        };
        // The limit on watches is per user, and other programs may have used it up. Then only the limit
        // on file sizes applies.
        if let Err(error) = logs.watch() {
            log::warn!("cannot limit the size of the logs of processes: {error}");
        }
        let stop = Cancel::new()?;
        let until = stop.clone();
        let thread = spawner.spawn("logs", move || logs.run(&until))?;
        Ok(Self(OwnedThread::new(CancelOnDrop(stop), thread)))
    }

    /// Ends the thread; returns false if it misses the deadline.
    pub(crate) fn end(self, deadline: Instant) -> bool {
        self.0.end(deadline)
    }
}

struct Logs {
    directory: PathBuf,
    files: Subscriber,
    /// Readable when a log was written.
    written: Arc<Waker>,
}

impl Logs {
    fn watch(&mut self) -> io::Result<()> {
        let mut watches = self.files.watch();
        // Further writes until the next check cause no event.
        let once = WatchFlags::MODIFY | WatchFlags::ONESHOT;
        watches.directory(&self.directory, once);
        watches.keep_earlier()
    }

    fn run(&mut self, stop: &Cancel) {
        loop {
            let mut fds = [
                PollFd::new(stop, PollFlags::IN),
                PollFd::new(&*self.written, PollFlags::IN),
            ];
            if poll_until(&mut fds, None).is_err() || stop.is_cancelled() {
                return;
            }
            let check = Instant::now() + LOG_PAUSE;
            if poll_until(&mut [PollFd::new(stop, PollFlags::IN)], Some(check)).unwrap_or(true) {
                return;
            }
            self.written.reset();
            // Watched before the check, so that no later write is missed. If that fails, the next check
            // follows.
            if self.watch().is_err() {
                self.written.wake();
            }
            self.shorten();
        }
    }

    fn shorten(&self) {
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
                shorten(&path, metadata.len());
            }
        }
    }
}

fn shorten(log: &Path, length: u64) {
    let Ok(file) = OpenOptions::new().write(true).open(log) else {
        return;
    };
    let is_held = || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err();
    if length > HELD_LOG_MAX || !is_held() {
        // Writers use O_APPEND, so they continue at the start.
        file.set_len(0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Launch, ProcessRecords};

    #[test]
    fn log_of_a_new_process_is_emptied_after_its_release() {
        let dir = tempfile::tempdir().unwrap();
        let records = ProcessRecords::open(dir.path()).unwrap();
        let mut process = records
            .start("test", None, |_| Launch::new("/bin/sleep").args(["1000"]))
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
        let kernel = Kernel::start(&spawner).unwrap();
        let _limit = LogLimit::start(&kernel, &spawner, dir.path()).unwrap();
        // The log is watched again after a check.
        for _ in 0..2 {
            std::fs::write(&log, vec![b'x'; usize::try_from(LOG_MAX).unwrap() + 1]).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            while std::fs::metadata(&log).unwrap().len() > 0 {
                assert!(Instant::now() < deadline, "never emptied");
                std::thread::yield_now();
            }
        }
    }
}
