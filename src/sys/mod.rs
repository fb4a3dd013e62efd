//! Thin wrappers over the kernel: waits that a thread can be woken from, sockets, and file and device
//! events.
//!
//! Everything runs on the calling thread. Nothing here knows what the caller waits for.

mod kernel_events;
mod socket;
mod wait;

pub(crate) use kernel_events::{Inotify, Uevents, WatchPaths, no_watches_left};
pub(crate) use socket::{FOR_CLIENT, connect, has_descriptors, is_listened_on, is_queue_full};
pub use wait::Cancel;
pub(crate) use wait::{
    CancelOnDrop, Gate, Timer, Waker, is_readable, lock, poll_until, read, unpoisoned, write,
};
