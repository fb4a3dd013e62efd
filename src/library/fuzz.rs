//! What `tests/fuzz` sees of this room: its parsers, by plain types. The product calls none of it.

use std::path::Path;

use super::name::Name;
use crate::wire::Format;

pub use super::package::fuzz::{Told, manifest};

/// What the library calls a file of this name.
pub fn file_name(source: &Path, format: Format) -> Option<String> {
    let name = Name::of(source, format).ok()?;
    Some(name.file(&name.stem))
}
