//! A bell: something that a thread in `epoll` or `poll` can be woken with (an eventfd).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable until it is silenced. Never blocks.
    pub(super) fn ring(&self) {
        // It fails only where the counter is full, and then it is ringing already.
        rustix::io::write(&self.0, &1u64.to_ne_bytes()).ok();
    }

    pub(super) fn silence(&self) {
        // It fails only where nobody has rung.
        rustix::io::read(&self.0, &mut [0u8; 8]).ok();
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
