//! The record of the daemon's current state, for bug reports. Never contains a setting or a secret.

use std::path::PathBuf;

use crossbeam_channel::Sender;
use serde::{Deserialize, Serialize};

use super::names::words;
use super::plain_color::put_id;
use super::{ActivePlaylist, Fit, HistorySource, Mode, Position, Power, Timestamp, Workspace};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Debug {
    pub version: String,
    /// Seconds.
    pub uptime: u64,
    /// Sorted by name.
    pub threads: Vec<DebugThread>,
    pub queues: Vec<DebugQueue>,
    /// Assignments of all known monitors.
    pub assignments: Vec<DebugAssignment>,
    /// None: the reconciler does not answer.
    pub workspaces: Option<Vec<Workspace>>,
    /// None: the player does not answer.
    pub playlists: Option<Vec<ActivePlaylist>>,
    pub children: Vec<DebugChild>,
    pub power: Power,
    /// The last ones, the newest last.
    pub failures: Vec<DebugFailure>,
    /// The failure of the hook's last run.
    pub hook_failure: Option<HookFailure>,
    /// Connections that are open, this one among them.
    pub clients: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct DebugThread {
    pub name: String,
}

/// Requests that wait for a thread.
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
    #[serde(serialize_with = "put_id")]
    pub image_id: i64,
    /// `#rrggbb`, in the place of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    pub mode: Mode,
    pub backend: String,
    pub set_at: Timestamp,
    pub fit: Option<Fit>,
    pub position: Option<Position>,
}

/// A process of a backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DebugChild {
    pub pid: i32,
    pub backend: String,
    /// The monitors that the process is assigned to.
    pub monitors: Vec<String>,
    pub started_at: Option<Timestamp>,
    /// The memory that it uses; none if it has just exited.
    pub memory_kb: Option<u64>,
}

/// A picture that did not come up, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DebugFailure {
    pub monitors: Vec<String>,
    #[serde(flatten)]
    pub failure: ApplyFailure,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub subject: String,
    pub state: FindingState,
    /// A sentence without its full stop.
    pub text: String,
    /// The step that fixes it, or may be done about it.
    pub step: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FindingState {
    /// As it should be.
    Ok,
    /// Works, and may not be as was meant.
    Note,
    /// In the way of wallpapers.
    Fix,
}

impl FindingState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Fix => "fix",
        }
    }
}

/// The record of one connected monitor; a null field does not apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Why {
    pub monitor: String,
    pub image_id: Option<i64>,
    pub image_name: Option<String>,
    pub image_path: Option<PathBuf>,
    /// `#rrggbb`, in the place of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    pub backend: Option<String>,
    pub source: Option<HistorySource>,
    pub set_at: Option<Timestamp>,
    pub next: Option<NextChange>,
    pub last_failure: Option<ApplyFailure>,
    /// The failure of the hook's last run, the same for all monitors.
    pub hook_failure: Option<HookFailure>,
    /// All of it in sentences.
    pub text: String,
}

/// The next action of a playlist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NextChange {
    pub playlist_id: i64,
    pub playlist_name: String,
    pub at: Timestamp,
}

/// A picture that did not come up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ApplyFailure {
    #[serde(serialize_with = "put_id")]
    pub image_id: i64,
    pub image_name: String,
    pub backend: String,
    pub error: String,
    pub at: Timestamp,
}

/// A run of the hook that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HookFailure {
    pub error: String,
    pub at: Timestamp,
}

words! {
    /// How a watched directory is.
    WatchState {
        Watched = "watched", Away = "away", Partial = "partial", Unreadable = "unreadable",
    }
}

/// A watched directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchedDirectory {
    /// As it was written.
    pub path: String,
    /// The target of the link; null if it leads nowhere.
    pub directory: Option<PathBuf>,
    pub state: WatchState,
    pub images: u64,
    /// For people.
    pub message: Option<String>,
}

/// `GET /library/watch`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LibraryWatch {
    pub watch: Vec<WatchedDirectory>,
    pub in_place: bool,
    pub watch_folders: bool,
}
