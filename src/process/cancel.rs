//! A wish to stop, that a wait on descriptors can see.
//!
//! Given to whoever starts something slow; cancelled from any thread, once and for good.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// All clones are cancelled together.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Readable for ever once cancelled: nobody reads it.
    event: Arc<OwnedFd>,
}

impl Cancel {
    pub fn new() -> std::io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event: Arc::new(event) })
    }

    pub fn cancel(&self) {
        // Fails only when the counter is full: then it is cancelled already.
        rustix::io::write(&self.event, &1u64.to_ne_bytes()).ok();
    }

    pub fn is_cancelled(&self) -> bool {
        let mut fds = [PollFd::new(&self.event, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
