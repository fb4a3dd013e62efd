//! For the targets of `tests/fuzz`: manifests, by plain types. A part of its module in debug builds only.

use std::path::{Path, PathBuf};

use serde_json::Map;

use super::manifest::{Manifest, OWN, with_capabilities};
use super::overrides;
use crate::wire::WebCapabilities;

/// What a manifest says.
#[derive(Debug, PartialEq)]
pub struct Told {
    pub entry: PathBuf,
    pub preview: Option<PathBuf>,
    pub title: String,
    pub capabilities: WebCapabilities,
    /// Its overrides, and whether those that it allows are allowed.
    pub overrides: Option<bool>,
    /// With these capabilities instead.
    pub granted: Option<String>,
}

/// None where it is refused.
pub fn manifest(text: &str, granted: WebCapabilities) -> Option<Told> {
    let manifest = Manifest::parse(OWN, text, Path::new("/walls/Rain")).ok()?;
    let declared = &manifest.wallpaper_config;
    let kept = |given| -> Map<_, _> { overrides::allowed(declared, given).0 };
    let allowed = |given| overrides::check(declared, &kept(given)).is_ok();
    Some(Told {
        overrides: manifest.overrides.as_ref().map(allowed),
        granted: with_capabilities(OWN, text, granted).ok(),
        entry: manifest.entry,
        preview: manifest.preview,
        title: manifest.title,
        capabilities: manifest.capabilities,
    })
}
