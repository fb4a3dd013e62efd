//! Parsers with plain types, for the targets of `tests/fuzz`. Part of its module with `cfg(parsers)`.

use std::path::Path;

use serde_json::{Map, Value as Json};

use super::{document, overlay, patch};

/// All settings of a text, or the error.
pub fn read(text: &str) -> Result<Json, String> {
    let parsed = document::read(text, Path::new("/c.toml")).map_err(|error| error.to_string())?;
    let mut all = parsed.config.to_json();
    // Warnings have line numbers, which differ.
    all.remove("warnings");
    Ok(all.into())
}

/// A valid text, completed with its missing keys.
pub fn completed(text: &str) -> Option<String> {
    let parsed = document::read(text, Path::new("/c.toml")).ok()?;
    overlay::complete(text, &parsed.missing).ok()
}

/// A valid text with the changes of a `PATCH /config` body.
pub fn patched(text: &str, body: &Map<String, Json>) -> Option<String> {
    document::read(text, Path::new("/c.toml")).ok()?;
    overlay::apply(text, &patch::whole(body).ok()?).ok()
}
