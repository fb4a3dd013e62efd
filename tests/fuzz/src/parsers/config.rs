//! For the targets of `tests/fuzz`: parsers, by plain types. A part of its module in debug builds only.

use std::path::Path;

use serde_json::{Map, Value as Json};

use super::{document, overlay, patch};

/// All settings of a text; or what is wrong with it.
pub fn read(text: &str) -> Result<Json, String> {
    let parsed = document::read(text, Path::new("/c.toml")).map_err(|error| error.to_string())?;
    let mut all = parsed.config.to_json();
    // Warnings tell lines.
    all.remove("warnings");
    Ok(all.into())
}

/// A text that can be read, with the keys that it lacks.
pub fn completed(text: &str) -> Option<String> {
    let parsed = document::read(text, Path::new("/c.toml")).ok()?;
    overlay::complete(text, &parsed.missing).ok()
}

/// A text that can be read, with what the body of a `PATCH` of all settings says laid over it.
pub fn patched(text: &str, body: &Map<String, Json>) -> Option<String> {
    document::read(text, Path::new("/c.toml")).ok()?;
    overlay::apply(text, &patch::whole(body).ok()?).ok()
}
