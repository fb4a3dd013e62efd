//! A wish to stop, that a wait on descriptors can see.
//!
//! Given to whoever starts something slow; cancelled from any thread, once and for good.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::{Waker, is_readable};

/// All clones are cancelled together.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Readable for ever once cancelled: nobody resets it.
    waker: Arc<Waker>,
}

impl Cancel {
    pub fn new() -> io::Result<Self> {
        Ok(Self { waker: Arc::new(Waker::new()?) })
    }

    pub fn cancel(&self) {
        self.waker.wake();
    }

    pub fn is_cancelled(&self) -> bool {
        is_readable(self)
    }
}

/// Cancels when it is dropped. In a handle it stands above the thread that it ends, which is joined
/// after it.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(pub(crate) Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
