//! The kernel, each thing once: descriptors that wake a thread, and waits that end in time.
//!
//! Runs on the calling thread. Nothing here knows what it is waited for.

mod cancel;
mod inotify;
mod poll;
mod socket;
mod timer;
mod waker;

pub use cancel::Cancel;
pub use inotify::Inotify;
pub use poll::{is_readable, poll_until};
pub use socket::connect;
pub use timer::Timer;
pub use waker::Waker;
