//! The facts beside the text of a configuration that its steps are made from.

use std::path::PathBuf;

use serde_json::Value;

use super::super::call::Setting;
use super::disk::Disk;

/// What is known beside the text of a configuration.
pub(in crate::cli) struct Known<'a> {
    pub(in crate::cli) disk: &'a Disk,
    /// Ours.
    pub(in crate::cli) settings: &'a [Setting],
    /// What Waypaper Engine's daemon says that it has, where it runs.
    pub(in crate::cli) library: Option<&'a Library>,
    /// Where Waypaper Engine keeps images unless its configuration says otherwise.
    pub(in crate::cli) usual_images: PathBuf,
    /// What waypaper keeps beside its configuration, where it does.
    pub(in crate::cli) state: Option<&'a str>,
}

/// Images and playlists of Waypaper Engine, as its API has them.
#[derive(Debug, Default)]
pub(in crate::cli) struct Library {
    pub(in crate::cli) images: Vec<Value>,
    pub(in crate::cli) playlists: Vec<Value>,
}
