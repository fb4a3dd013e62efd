//! Watched directories, as the API shows them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::names::words;

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
    /// Where that leads; null where it leads nowhere.
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
