//! The record of an image, and of the web package that it may be. Reads no file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Format, MediaType, Timestamp};

/// An item of the library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    pub id: i64,
    /// File stem, unique in the library.
    pub name: String,
    /// Absolute, in `images_dir` unless it is in place.
    #[serde(serialize_with = "put_own_path")]
    pub path: PathBuf,
    pub media_type: MediaType,
    pub format: Format,
    /// Pixels as shown, orientation applied.
    pub width: u32,
    pub height: u32,
    /// Seconds, 0 for stills.
    pub duration: f64,
    pub animated: bool,
    pub audio_enabled: bool,
    /// Bytes.
    pub file_size: u64,
    /// `sha256:<hex>`
    pub checksum: String,
    pub tags: Vec<String>,
    /// `#rrggbb`, most dominant first, at most 12.
    pub colors: Vec<String>,
    /// 0 to 11, or 99 where no colour decides.
    pub hue_group: u8,
    pub folder_id: Option<i64>,
    pub is_selected: bool,
    pub imported_at: Timestamp,
    pub source_path: PathBuf,
    /// `path` is the owner's own file, and there is no copy.
    #[serde(default)]
    pub in_place: bool,
    /// Resolution to absolute path, only those that exist on disk now.
    pub thumbnails: BTreeMap<String, PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview_path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_meta: Option<WebMeta>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wallpaper_config_overrides: Option<JsonObject>,
}

/// What follows the path in the row of an image whose file has another one's content now, and then its
/// id: no file is there.
pub(crate) const DISPLACED: &str = ".murald-displaced-";

/// The path that an image's owner knows, of the one in its row.
pub(crate) fn own_path(path: &Path) -> &Path {
    path.to_str().map_or(path, |path| Path::new(own_text(path)))
}

pub(super) fn own_text(path: &str) -> &str {
    match path.rsplit_once(DISPLACED) {
        Some((own, id)) if id.bytes().all(|byte| byte.is_ascii_digit()) => own,
        _ => path,
    }
}

fn put_own_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    own_path(path).serialize(serializer)
}

impl Image {
    /// What it is on disk: its file, or its package.
    pub fn home(&self) -> &Path {
        self.web_meta.as_ref().map_or(&self.path, |meta| &meta.package_root)
    }
}

/// An object as it is written. A list carries hundreds that nobody looks into, of up to 64 KiB each,
/// which would take twenty times as much if they were read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonObject(Box<RawValue>);

impl JsonObject {
    /// Its fields; none where it is no object.
    pub fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl From<&Map<String, Value>> for JsonObject {
    fn from(fields: &Map<String, Value>) -> Self {
        Self(serde_json::value::to_raw_value(fields).expect("a map of JSON is JSON"))
    }
}

impl From<&RawValue> for JsonObject {
    fn from(object: &RawValue) -> Self {
        Self(object.to_owned())
    }
}

impl Default for JsonObject {
    fn default() -> Self {
        Self::from(&Map::new())
    }
}

impl PartialEq for JsonObject {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// What the manifest of a web package says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebMeta {
    pub package_root: PathBuf,
    pub manifest_path: PathBuf,
    pub entry_path: PathBuf,
    pub title: String,
    pub description: String,
    pub author: String,
    pub capabilities: WebCapabilities,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallax_direction: Option<String>,
    pub wallpaper_config: JsonObject,
}

impl WebMeta {
    /// The same package at another place.
    pub fn moved(&self, root: &Path) -> Self {
        let at = |path: &Path| match path.strip_prefix(&self.package_root) {
            Ok(inside) => root.join(inside),
            Err(_) => path.to_owned(),
        };
        Self {
            package_root: root.to_owned(),
            manifest_path: at(&self.manifest_path),
            entry_path: at(&self.entry_path),
            ..self.clone()
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebCapabilities {
    pub network: bool,
    pub keyboard: bool,
    pub audio_reactive: bool,
    pub parallax_aware: bool,
    pub pointer_interactive: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_told_as_its_owner_knows_it() {
        let check = |path: &str, own: &str| assert_eq!(own_path(Path::new(path)), Path::new(own));
        check("/p/a.png", "/p/a.png");
        check("/p/a.png.murald-displaced-7", "/p/a.png");
        check("/p/a.murald-displaced-b.png", "/p/a.murald-displaced-b.png");
        check("/p/a.murald-displaced-7.png", "/p/a.murald-displaced-7.png");
    }
}
