//! Parsers of manifests with plain types, for the targets of `tests/fuzz`. Part of its module in debug
//! builds only.

use std::path::{Path, PathBuf};

use super::manifest::{Manifest, OWN, with_capabilities};
use crate::wire::WebCapabilities;

/// The content of a manifest.
#[derive(Debug, PartialEq)]
pub struct Told {
    pub entry: PathBuf,
    pub preview: Option<PathBuf>,
    pub title: String,
    pub capabilities: WebCapabilities,
    /// The manifest's text with these capabilities instead.
    pub granted: Option<String>,
}

/// The content of a manifest; `None` if it is invalid.
pub fn manifest(text: &str, granted: WebCapabilities) -> Option<Told> {
    let manifest = Manifest::parse(OWN, text, Path::new("/walls/Rain")).ok()?;
    Some(Told {
        granted: with_capabilities(OWN, text, granted).ok(),
        entry: manifest.entry,
        preview: manifest.preview,
        title: manifest.title,
        capabilities: manifest.capabilities,
    })
}
