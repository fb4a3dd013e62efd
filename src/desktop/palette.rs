//! The colours of what is shown, as `palette.json` has them. Pure.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::scheme::Scheme;
use super::shown::Shown;

/// One monitor's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Palette {
    pub(super) monitor: String,
    pub(super) image_id: i64,
    pub(super) image_name: String,
    pub(super) path: PathBuf,
    /// None: it could not be made.
    pub(super) still: Option<PathBuf>,
    pub(super) appearance: &'static str,
    pub(super) background: String,
    pub(super) foreground: String,
    pub(super) accent: String,
    pub(super) colors: Vec<String>,
}

/// All of them, and that of what was set last.
#[derive(Debug, Default, Serialize)]
pub(super) struct Palettes<'p> {
    pub(super) newest: Option<&'p Palette>,
    pub(super) monitors: BTreeMap<&'p str, &'p Palette>,
}

impl Palette {
    pub(super) fn of(shown: &Shown, still: Option<PathBuf>) -> Self {
        let image = &shown.image;
        let Scheme { appearance, background, foreground, accent } = Scheme::of(&image.colors);
        Self {
            monitor: shown.monitor.clone(),
            image_id: image.id,
            image_name: image.name.clone(),
            path: image.path.clone(),
            still,
            appearance: appearance.as_str(),
            background,
            foreground,
            accent,
            colors: image.colors.clone(),
        }
    }
}
