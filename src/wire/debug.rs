//! The daemon as it is at one moment, for reports of faults: the record of the API. Never a secret:
//! no setting is in it.

use crossbeam_channel::Sender;
use serde::{Deserialize, Serialize};

use super::{ActivePlaylist, ApplyFailure, Fit, HookFailure, Mode, Power, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Debug {
    pub version: String,
    /// Seconds.
    pub uptime: u64,
    /// By name.
    pub threads: Vec<DebugThread>,
    pub queues: Vec<DebugQueue>,
    /// Of all monitors that are known.
    pub assignments: Vec<DebugAssignment>,
    /// None: the player does not answer.
    pub playlists: Option<Vec<ActivePlaylist>>,
    pub children: Vec<DebugChild>,
    pub power: Power,
    /// The last ones, the newest last.
    pub failures: Vec<DebugFailure>,
    /// Of the hook's last run.
    pub hook_failure: Option<HookFailure>,
    /// Connections that are open, this one among them.
    pub clients: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct DebugThread {
    pub name: String,
}

/// What waits for a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DebugQueue {
    pub name: String,
    pub length: usize,
    pub capacity: Option<usize>,
}

impl DebugQueue {
    pub(crate) fn of<T>(name: &str, inbox: &Sender<T>) -> Self {
        Self { name: name.to_owned(), length: inbox.len(), capacity: inbox.capacity() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DebugAssignment {
    pub monitor: String,
    pub image_id: i64,
    pub mode: Mode,
    pub backend: String,
    pub set_at: Timestamp,
    pub fit: Option<Fit>,
}

/// A process of a backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DebugChild {
    pub pid: i32,
    pub backend: String,
    /// What it is assigned to show something on.
    pub monitors: Vec<String>,
    pub started_at: Option<Timestamp>,
    /// What it has of the machine's memory; none: it has just ended.
    pub memory_kb: Option<u64>,
}

/// A picture that did not come up, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DebugFailure {
    pub monitors: Vec<String>,
    #[serde(flatten)]
    pub failure: ApplyFailure,
}
