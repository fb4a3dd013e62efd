//! For the targets of `tests/fuzz`: parsers, by plain types. A part of its module in debug builds only.

use std::path::Path;

use super::name::Name;
use crate::wire::Format;

pub use super::package::fuzz::{Told, manifest};

/// What the library calls a file of this name.
pub fn file_name(source: &Path, format: Format) -> Option<String> {
    let name = Name::of(source, format).ok()?;
    Some(name.file(&name.stem))
}
