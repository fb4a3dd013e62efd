//! Waits on descriptors that end at a deadline, whatever signals come.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Waits until one of the descriptors has something to tell: `true`; `false` when the time is up.
/// Without a deadline it waits for ever.
pub(crate) fn poll_until(fds: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // A wait of more than fits is as good as one without end.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(fds, timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether it can be read now, or has hung up.
pub(crate) fn is_readable(fd: &impl AsFd) -> bool {
    poll_until(&mut [PollFd::new(fd, PollFlags::IN)], Some(Instant::now())).unwrap_or(false)
}
