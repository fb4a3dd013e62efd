//! Parsers with plain types, for the targets of `tests/fuzz`. Part of its module with `cfg(parsers)`.

use std::path::Path;

use super::name::Name;
use crate::wire::Format;

pub use super::package::fuzz::{Told, manifest};

/// The file's name in the library.
pub fn file_name(source: &Path, format: Format) -> Option<String> {
    let name = Name::from_path(source, format).ok()?;
    Some(name.file(&name.stem))
}
