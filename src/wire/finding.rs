//! What `murald doctor` finds.

use serde::{Deserialize, Serialize};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub subject: String,
    pub state: FindingState,
    /// A sentence without its full stop.
    pub text: String,
    /// What mends it, or may be done about it.
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
