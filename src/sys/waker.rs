//! Wakes a thread that waits in `poll` (an eventfd).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable until it is reset. Never blocks.
    pub(crate) fn wake(&self) {
        // It fails only where the counter is full, and then it is readable already.
        rustix::io::write(&self.0, &1u64.to_ne_bytes()).ok();
    }

    pub(crate) fn reset(&self) {
        // It fails only where nobody has woken it.
        rustix::io::read(&self.0, &mut [0u8; 8]).ok();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
