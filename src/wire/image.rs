//! The records of an image, of a plain colour instead of one, and of a web package. Reads no file.
//!
//! Inside murald a colour is an image with an id below 0 ([`color::from_image_id`]); outside, its id and
//! path are null, and its name is `#rrggbb`.
//!
//! A new stored field also needs a column in `store::row` and `store::migrations`, and a line in
//! `store::images` or `store::edits`, where it is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Format, MediaType, Position, Timestamp};
use crate::color::{self, Rgb, hex, hue_group};
use crate::digest::{self, Checksum, sha256};

/// An item of the library.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Image {
    pub id: i64,
    /// File stem, unique in the library.
    pub name: String,
    /// Absolute, in `images_dir` unless it is in place.
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
    #[serde(serialize_with = "put_checksum")]
    pub checksum: Checksum,
    pub tags: Vec<String>,
    /// A description for people who cannot see the picture; empty if there is none.
    pub description: String,
    /// Most dominant first, at most 12.
    #[serde(serialize_with = "put_colors")]
    pub colors: Vec<Rgb>,
    /// 0 to 11, or 99 if no colour decides.
    pub hue_group: u8,
    pub folder_id: Option<i64>,
    pub is_selected: bool,
    pub imported_at: Timestamp,
    pub source_path: PathBuf,
    /// `path` is the owner's own file, and there is no copy.
    pub in_place: bool,
    /// Since when the file is missing, in microseconds since 1970; 0 without a time limit.
    #[serde(skip)]
    pub missing_since: Option<i64>,
    /// The part that is shown; none: as the backend's settings say.
    pub position: Option<Position>,
    /// Not stored in a row: the cache has them.
    pub thumbnails: ThumbnailPaths,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_meta: Option<WebMeta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallpaper_config_overrides: Option<JsonObject>,
}

/// The thumbnails of an image that exist on disk now, by the names of their sizes.
pub(crate) type ThumbnailPaths = BTreeMap<&'static str, String>;

/// Bytes of a description.
pub(crate) const DESCRIPTION_MAX: usize = 4 << 10;

impl Image {
    /// The path on disk: the image's own file, or its package.
    pub fn home(&self) -> &Path {
        self.web_meta
            .as_ref()
            .map_or(&self.path, |meta| &meta.package_root)
    }

    /// Whether the image is in place and its file is missing. Another image may have the file at its
    /// path.
    pub(crate) fn is_absent(&self) -> bool {
        self.in_place && self.missing_since.is_some()
    }

    /// `sha256:<hex>`
    pub fn checksum_text(&self) -> String {
        format!("sha256:{}", digest::hex(&self.checksum))
    }

    /// `#rrggbb`
    pub(crate) fn color_texts(&self) -> Vec<String> {
        self.colors.iter().map(|&color| hex(color)).collect()
    }
}

fn put_checksum<S: Serializer>(checksum: &Checksum, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("sha256:{}", digest::hex(checksum)))
}

fn put_colors<S: Serializer>(colors: &[Rgb], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(colors.iter().map(|&color| hex(color)))
}

/// An object, kept as text. A list carries hundreds of up to 64 KiB each that no code looks into;
/// parsing them would cost twenty times as much.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallax_direction: Option<String>,
    pub wallpaper_config: JsonObject,
}

impl WebMeta {
    /// The same package in another directory; a path outside of the package becomes that directory.
    pub fn moved(&self, root: &Path) -> Self {
        let at = |path: &Path| match path.strip_prefix(&self.package_root) {
            Ok(inside) => root.join(inside),
            Err(_) => root.to_owned(),
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

/// The size of a colour's file: enough for programs that blend edges when they scale.
pub(crate) const COLOR_SIZE: (u32, u32) = (960, 540);

impl Image {
    /// The record of a plain colour; its file is at `path`.
    pub(crate) fn from_color(rgb: Rgb, path: &Path) -> Self {
        let name = hex(rgb);
        Self {
            id: color::image_id(rgb),
            path: path.to_owned(),
            media_type: MediaType::Image,
            format: Format::Png,
            width: COLOR_SIZE.0,
            height: COLOR_SIZE.1,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: 0,
            checksum: sha256(&name),
            description: String::new(),
            tags: Vec::new(),
            colors: vec![rgb],
            hue_group: hue_group(&[rgb]),
            folder_id: None,
            is_selected: false,
            imported_at: Timestamp::from_micros(0),
            source_path: PathBuf::new(),
            in_place: false,
            missing_since: None,
            position: None,
            thumbnails: ThumbnailPaths::default(),
            preview_path: None,
            web_meta: None,
            wallpaper_config_overrides: None,
            name,
        }
    }

    /// `#rrggbb` of a plain colour; none for an image.
    pub(crate) fn color(&self) -> Option<String> {
        color::from_image_id(self.id).map(hex)
    }

    /// The id of an image; none for a plain colour.
    pub(crate) fn library_id(&self) -> Option<i64> {
        color::from_image_id(self.id).is_none().then_some(self.id)
    }

    /// The path that the image's owner knows; none for a plain colour.
    pub(crate) fn library_path(&self) -> Option<PathBuf> {
        self.library_id().map(|_| self.path.clone())
    }
}

/// An image with its id, for people.
pub(crate) fn labelled(name: &str, id: i64) -> String {
    match color::from_image_id(id) {
        Some(_) => name.to_owned(),
        None => format!("{name} ({id})"),
    }
}

/// Writes an id; null for a plain colour.
pub(crate) fn put_id<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    color::from_image_id(*id)
        .is_none()
        .then_some(id)
        .serialize(serializer)
}

/// Writes the ids of monitors; `#rrggbb` for plain colours.
pub(super) fn put_ids<S: Serializer>(
    ids: &BTreeMap<String, i64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(ids.iter().map(|(monitor, id)| (monitor, id_or_color(*id))))
}

/// An id, or `#rrggbb` for a plain colour.
pub(crate) fn id_or_color(id: i64) -> Value {
    let color = color::from_image_id(id).map(hex);
    color.map_or_else(|| Value::from(id), Value::from)
}
