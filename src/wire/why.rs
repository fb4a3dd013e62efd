//! Why a monitor shows what it shows: the record of the API.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{HistorySource, Timestamp};

/// Of one connected monitor; null is what there is nothing of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Why {
    pub monitor: String,
    pub image_id: Option<i64>,
    pub image_name: Option<String>,
    pub image_path: Option<PathBuf>,
    pub backend: Option<String>,
    pub source: Option<HistorySource>,
    pub set_at: Option<Timestamp>,
    pub next: Option<NextChange>,
    pub last_failure: Option<ApplyFailure>,
    /// Of the hook's last run; it is the same for all monitors.
    pub hook_failure: Option<HookFailure>,
    /// All of it in sentences.
    pub text: String,
}

/// What a playlist is about to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NextChange {
    pub playlist_id: i64,
    pub playlist_name: String,
    pub at: Timestamp,
}

/// A picture that did not come up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ApplyFailure {
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
