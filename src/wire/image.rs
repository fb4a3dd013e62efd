//! The record of an image and of a web package, owned and borrowed from its row. Reads no file.
//!
//! A new stored field also needs a column in `store::row`, `store::images` and `store::migrations`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Format, MediaType, Timestamp};
use crate::digest::{self, hex};

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
    /// 0 to 11, or 99 if no colour decides.
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

/// The suffix to the path, before the image's id, in the row of an image whose file now has
/// another's content: no file is there.
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
    /// The path on disk: the image's own file, or its package.
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
    /// The object's fields; none if the text is not an object.
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

/// The manifest of a web package.
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

/// [`Image`], borrowed, and without its thumbnails: they are in no row.
#[derive(Clone, Debug)]
pub struct ImageRow<'r> {
    pub id: i64,
    pub name: &'r str,
    pub path: &'r str,
    pub media_type: MediaType,
    pub format: Format,
    pub width: u32,
    pub height: u32,
    pub duration: f64,
    pub animated: bool,
    pub audio_enabled: bool,
    pub file_size: u64,
    pub checksum: &'r [u8],
    pub tags: Vec<String>,
    /// Three bytes each.
    pub colors: &'r [u8],
    pub hue_group: u8,
    pub folder_id: Option<i64>,
    pub is_selected: bool,
    pub imported_at: Timestamp,
    pub source_path: &'r str,
    pub in_place: bool,
    pub preview_path: Option<&'r str>,
    pub web_meta: Option<WebMeta>,
    pub wallpaper_config_overrides: Option<&'r RawValue>,
}

impl ImageRow<'_> {
    /// Appends it as [`Image`] is written, with its times in this zone. A thumbnail is a size and the
    /// directory of the one that serves for it, in the order of the sizes' names; `cache` is what
    /// stands before these directories, escaped as in a string of JSON.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        zone: &TimeZone,
        cache: &[u8],
        thumbnails: impl Iterator<Item = (&'static str, &'static str)>,
    ) -> serde_json::Result<()> {
        out.extend(br#"{"id":"#);
        put(out, &self.id)?;
        out.extend(br#","name":"#);
        put_text(out, self.name)?;
        out.extend(br#","path":"#);
        put_text(out, own_text(self.path))?;
        out.extend(br#","media_type":"#);
        put_word(out, self.media_type.as_str());
        out.extend(br#","format":"#);
        put_word(out, self.format.as_str());
        out.extend(br#","width":"#);
        put(out, &self.width)?;
        out.extend(br#","height":"#);
        put(out, &self.height)?;
        out.extend(br#","duration":"#);
        put(out, &self.duration)?;
        out.extend(br#","animated":"#);
        put(out, &self.animated)?;
        out.extend(br#","audio_enabled":"#);
        put(out, &self.audio_enabled)?;
        out.extend(br#","file_size":"#);
        put(out, &self.file_size)?;
        out.extend(br#","checksum":"sha256:"#);
        let checksum = out.len();
        digest::push_hex(self.checksum, out);
        let checksum = checksum..out.len();
        out.extend(br#"","tags":"#);
        put(out, &self.tags)?;
        out.extend(br#","colors":["#);
        for (at, color) in self.colors.as_chunks().0.iter().enumerate() {
            let [r, g, b] = digest::hex_of(color);
            let text = [*b",\"", [b'#', r[0]], [r[1], g[0]], [g[1], b[0]], [b[1], b'"']];
            // The first stands behind no comma.
            out.extend(&text.as_flattened()[usize::from(at == 0)..]);
        }
        out.extend(br#"],"hue_group":"#);
        put(out, &self.hue_group)?;
        out.extend(br#","folder_id":"#);
        put(out, &self.folder_id)?;
        out.extend(br#","is_selected":"#);
        put(out, &self.is_selected)?;
        out.extend(br#","imported_at":""#);
        self.imported_at.write(out, zone);
        out.extend(br#"","source_path":"#);
        put_text(out, self.source_path)?;
        out.extend(br#","in_place":"#);
        put(out, &self.in_place)?;
        out.extend(br#","thumbnails":{"#);
        for (at, (size, directory)) in thumbnails.enumerate() {
            if at > 0 {
                out.push(b',');
            }
            put_word(out, size);
            out.extend(br#":""#);
            for part in [cache, b"/", directory.as_bytes(), b"/"] {
                out.extend(part);
            }
            out.extend_from_within(checksum.clone());
            out.extend(br#".webp""#);
        }
        out.push(b'}');
        self.write_rare(out)
    }

    /// Fields that only some images have.
    fn write_rare(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        if let Some(path) = self.preview_path {
            out.extend(br#","preview_path":"#);
            put_text(out, path)?;
        }
        if let Some(meta) = &self.web_meta {
            out.extend(br#","web_meta":"#);
            put(out, meta)?;
        }
        if let Some(overrides) = self.wallpaper_config_overrides {
            out.extend(br#","wallpaper_config_overrides":"#);
            put(out, overrides)?;
        }
        out.push(b'}');
        Ok(())
    }
}

impl From<ImageRow<'_>> for Image {
    fn from(row: ImageRow<'_>) -> Self {
        Self {
            id: row.id,
            name: row.name.to_owned(),
            path: row.path.into(),
            media_type: row.media_type,
            format: row.format,
            width: row.width,
            height: row.height,
            duration: row.duration,
            animated: row.animated,
            audio_enabled: row.audio_enabled,
            file_size: row.file_size,
            checksum: format!("sha256:{}", hex(row.checksum)),
            tags: row.tags,
            colors: row.colors.chunks_exact(3).map(|color| format!("#{}", hex(color))).collect(),
            hue_group: row.hue_group,
            folder_id: row.folder_id,
            is_selected: row.is_selected,
            imported_at: row.imported_at,
            source_path: row.source_path.into(),
            in_place: row.in_place,
            thumbnails: BTreeMap::new(),
            preview_path: row.preview_path.map(PathBuf::from),
            web_meta: row.web_meta,
            wallpaper_config_overrides: row.wallpaper_config_overrides.map(|raw| raw.into()),
        }
    }
}

fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    serde_json::to_writer(out, value)
}

/// A word of ours: nothing in it needs an escape.
fn put_word(out: &mut Vec<u8>, word: &str) {
    out.push(b'"');
    out.extend(word.as_bytes());
    out.push(b'"');
}

/// Most texts need none either: looked through at once, they cost a third.
fn put_text(out: &mut Vec<u8>, text: &str) -> serde_json::Result<()> {
    let needs_escape = |found, &byte: &u8| found | (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.as_bytes().iter().fold(false, needs_escape) {
        return put(out, text);
    }
    put_word(out, text);
    Ok(())
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
