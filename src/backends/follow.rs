//! Reading what a setter writes to its log while it comes up, without polling.
//!
//! Runs on the hand's thread. The log is a file, not a pipe: the setter outlives us.

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;

use crate::process::{Cancel, Child};

/// How following ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Followed<T> {
    /// The reader of the lines has seen enough.
    Seen(T),
    /// The process is gone.
    Ended,
    Late,
    Cancelled,
}

/// Gives each whole line of the log to `read`, from its start and as they come, until it breaks.
pub(super) fn follow<T>(
    log: &Path,
    child: &Child,
    until: Instant,
    cancel: &Cancel,
    mut read: impl FnMut(&str) -> ControlFlow<T>,
) -> io::Result<Followed<T>> {
    let notify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    // Before the first read: what is written after it wakes us.
    inotify::add_watch(&notify, log, inotify::WatchFlags::MODIFY)?;
    let mut lines = Lines { file: File::open(log)?, pending: Vec::new() };
    loop {
        // Looked at before the lines are read: what it wrote before its end is then among them.
        let alive = child.is_running();
        if let ControlFlow::Break(seen) = lines.read_new(&mut read)? {
            return Ok(Followed::Seen(seen));
        }
        if !alive {
            return Ok(Followed::Ended);
        }
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [
            PollFd::new(&notify, PollFlags::IN),
            PollFd::from_borrowed_fd(child.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(cancel.as_fd(), PollFlags::IN),
        ];
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => return Ok(Followed::Late),
            Ok(_) if !fds[2].revents().is_empty() => return Ok(Followed::Cancelled),
            Ok(_) => drain(&notify),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn drain(notify: &impl AsFd) {
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut events = inotify::Reader::new(notify, &mut buffer);
    while events.next().is_ok() {}
}

struct Lines {
    file: File,
    /// The start of a line whose end is not written yet.
    pending: Vec<u8>,
}

impl Lines {
    fn read_new<T>(
        &mut self,
        read: &mut impl FnMut(&str) -> ControlFlow<T>,
    ) -> io::Result<ControlFlow<T>> {
        self.file.read_to_end(&mut self.pending)?;
        let mut start = 0;
        while let Some(length) = self.pending[start..].iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&self.pending[start..start + length]);
            if let ControlFlow::Break(seen) = read(&line) {
                return Ok(ControlFlow::Break(seen));
            }
            start += length + 1;
        }
        self.pending.drain(..start);
        Ok(ControlFlow::Continue(()))
    }
}
