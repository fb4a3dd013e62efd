//! What has changed of the settings, and what changed it. Pure.

use std::path::PathBuf;

use super::schema::Section;

/// Settings that are other than they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Never empty.
    pub sections: Vec<Section>,
    pub source: ChangeSource,
}

/// What changed the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeSource {
    Patch,
    File,
    ResetAll,
    ResetBackend,
}

/// What a request changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub sections: Vec<Section>,
    /// `[daemon]` is among them, or is written otherwise.
    pub restart_required: bool,
    /// What is not as it should be in the sections that were to be changed.
    pub warnings: Vec<String>,
    /// Of a reset: where the file as it was is kept.
    pub backup: Option<PathBuf>,
}

impl ChangeSource {
    /// As `config_changed` says it; nothing for a plain patch.
    pub(super) fn event_name(self) -> Option<&'static str> {
        match self {
            Self::Patch => None,
            Self::File => Some("file"),
            Self::ResetAll => Some("api_reset_all"),
            Self::ResetBackend => Some("api_reset_backend"),
        }
    }
}
