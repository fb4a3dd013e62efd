//! The kernel, each thing once: descriptors that wake a thread, and waits that end in time.
//!
//! Runs on the calling thread. Nothing here knows what it is waited for.

mod cancel;
mod descriptors;
mod gate;
mod inotify;
mod lock;
mod patient;
mod poll;
mod socket;
mod timer;
mod uevents;
mod waker;
mod watch_paths;

pub use cancel::Cancel;
pub(crate) use cancel::CancelOnDrop;
pub(crate) use descriptors::{FOR_CLIENT, has_descriptors};
pub(crate) use gate::Gate;
pub(crate) use inotify::{Inotify, no_watches_left};
pub(crate) use lock::{lock, read, unpoisoned, write};
pub(crate) use patient::Patient;
pub(crate) use poll::{is_readable, poll_until};
pub(crate) use socket::{connect, is_listened_on, is_queue_full};
pub(crate) use timer::Timer;
pub(crate) use uevents::Uevents;
pub(crate) use waker::Waker;
pub(crate) use watch_paths::WatchPaths;
