//! One file for each resource: parse, call a handle, answer. Workers run them.

pub(super) mod daemon;
pub(super) mod events;

use std::time::Instant;

use crossbeam_channel::Sender;

use crate::events::Hub;

/// What the handlers call.
#[derive(Debug)]
pub struct Api {
    pub events: Hub,
    /// Asks `main` to stop; a full channel means that it was asked already.
    pub stop: Sender<Stop>,
    /// When the daemon started.
    pub started: Instant,
}

/// A client's wish that the daemon stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Take the wallpapers down, too.
    pub clear: bool,
}
