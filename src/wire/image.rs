//! The records of an image, of a plain colour instead of one, and of a web package. Reads no file.
//!
//! Inside murald a colour is an image with an id below 0 ([`color::of_image`]); outside, its id and path
//! are null, and its name is `#rrggbb`.
//!
//! A new stored field also needs a column in `store::row` and `store::migrations`, and a line in
//! `store::images` or `store::edits`, where it is written.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Format, MediaType, Position, Timestamp, zone};
use crate::color::{self, Rgb, hex, hue_group};
use crate::digest::{self, Checksum, hex_of, sha256};

/// An item of the library. [`Image::write`] has its fields as they are on the wire.
#[derive(Clone, Debug, PartialEq)]
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
    pub checksum: Checksum,
    pub tags: Vec<String>,
    /// A description for people who cannot see the picture; empty if there is none.
    pub description: String,
    /// Most dominant first, at most 12.
    pub colors: Vec<Rgb>,
    /// 0 to 11, or 99 if no colour decides.
    pub hue_group: u8,
    pub folder_id: Option<i64>,
    pub is_selected: bool,
    pub imported_at: Timestamp,
    pub source_path: PathBuf,
    /// `path` is the owner's own file, and there is no copy.
    pub in_place: bool,
    /// The part that is shown; none: as the backend's settings say.
    pub position: Option<Position>,
    /// Not stored in a row: the cache has them.
    pub thumbnails: ThumbnailPaths,
    pub preview_path: Option<PathBuf>,
    pub web_meta: Option<WebMeta>,
    pub wallpaper_config_overrides: Option<JsonObject>,
}

/// The thumbnails of an image that exist on disk now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThumbnailPaths {
    /// The directory of the cache, escaped for JSON.
    pub(crate) cache: Arc<[u8]>,
    /// Sizes in the order of their names, each with the directory of the size that serves for it.
    pub(crate) sizes: Vec<(&'static str, &'static str)>,
}

/// Bytes of a description.
pub(crate) const DESCRIPTION_MAX: usize = 4 << 10;

/// The suffix to a path, before the image's id, in the row of an image whose file now has the
/// content of another. No file has such a path.
pub(crate) const DISPLACED: &str = ".murald-displaced-";

/// The path that the owner of an image knows, from the path in its row.
pub(crate) fn own_path(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let digits = bytes
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let own = bytes[..bytes.len() - digits].strip_suffix(DISPLACED.as_bytes());
    own.map_or(path, |own| Path::new(OsStr::from_bytes(own)))
}

/// Appends fields of an object, each after a comma.
macro_rules! put_fields {
    ($out:ident; $($name:ident: $put:expr,)*) => {
        $($out.extend(concat!(",\"", stringify!($name), "\":").as_bytes()); $put?;)*
    };
}

impl Image {
    /// The path on disk: the image's own file, or its package.
    pub fn home(&self) -> &Path {
        self.web_meta
            .as_ref()
            .map_or(&self.path, |meta| &meta.package_root)
    }

    /// `sha256:<hex>`
    pub fn checksum_text(&self) -> String {
        format!("sha256:{}", digest::hex(&self.checksum))
    }

    /// `#rrggbb`
    pub(crate) fn color_texts(&self) -> Vec<String> {
        self.colors.iter().map(|&color| hex(color)).collect()
    }

    /// Appends the image as JSON, with its times in this zone. Avoids serde, which takes four times
    /// as long, because lists have many images.
    pub(crate) fn write(&self, out: &mut Vec<u8>, zone: &TimeZone) -> serde_json::Result<()> {
        out.extend(br#"{"id":"#);
        put(out, &self.id)?;
        put_fields! { out;
            name: put_text(out, &self.name),
            path: put_path(out, own_path(&self.path)),
            media_type: put_word(out, self.media_type.as_str()),
            format: put_word(out, self.format.as_str()),
            width: put(out, &self.width),
            height: put(out, &self.height),
            duration: put(out, &self.duration),
            animated: put(out, &self.animated),
            audio_enabled: put(out, &self.audio_enabled),
            file_size: put(out, &self.file_size),
            checksum: self.put_checksum(out),
            tags: put(out, &self.tags),
            description: put_text(out, &self.description),
            colors: self.put_colors(out),
            hue_group: put(out, &self.hue_group),
            folder_id: put(out, &self.folder_id),
            is_selected: put(out, &self.is_selected),
            imported_at: put_time(out, self.imported_at, zone),
            source_path: put_path(out, &self.source_path),
            in_place: put(out, &self.in_place),
            position: put(out, &self.position),
            thumbnails: self.put_thumbnails(out),
        }
        if let Some(path) = &self.preview_path {
            put_fields! { out; preview_path: put_path(out, path), }
        }
        if let Some(meta) = &self.web_meta {
            put_fields! { out; web_meta: put(out, meta), }
        }
        if let Some(overrides) = &self.wallpaper_config_overrides {
            put_fields! { out; wallpaper_config_overrides: put(out, overrides), }
        }
        out.push(b'}');
        Ok(())
    }

    fn put_checksum(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.extend(br#""sha256:"#);
        out.extend(hex_of(&self.checksum).as_flattened());
        out.push(b'"');
        Ok(())
    }

    fn put_colors(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.push(b'[');
        for (at, color) in self.colors.iter().enumerate() {
            let [r, g, b] = hex_of(color);
            let text = [
                *b",\"",
                [b'#', r[0]],
                [r[1], g[0]],
                [g[1], b[0]],
                [b[1], b'"'],
            ];
            // No comma precedes the first.
            out.extend(&text.as_flattened()[usize::from(at == 0)..]);
        }
        out.push(b']');
        Ok(())
    }

    fn put_thumbnails(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let checksum = hex_of(&self.checksum);
        out.push(b'{');
        for (at, (size, directory)) in self.thumbnails.sizes.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            put_word(out, size)?;
            out.extend(br#":""#);
            let cache = &*self.thumbnails.cache;
            for part in [
                cache,
                b"/",
                directory.as_bytes(),
                b"/",
                checksum.as_flattened(),
            ] {
                out.extend(part);
            }
            out.extend(br#".webp""#);
        }
        out.push(b'}');
        Ok(())
    }
}

impl Serialize for Image {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut json = Vec::new();
        self.write(&mut json, &zone::local())
            .map_err(serde::ser::Error::custom)?;
        let json: Box<RawValue> =
            serde_json::from_slice(&json).map_err(serde::ser::Error::custom)?;
        json.serialize(serializer)
    }
}

/// An object, kept as text. A list carries hundreds of up to 64 KiB each that nobody looks into;
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    serde_json::to_writer(out, value)
}

/// Appends one of our own words, which need no escapes.
fn put_word(out: &mut Vec<u8>, word: &str) -> serde_json::Result<()> {
    out.push(b'"');
    out.extend(word.as_bytes());
    out.push(b'"');
    Ok(())
}

/// The database has only UTF-8 paths.
fn put_path(out: &mut Vec<u8>, path: &Path) -> serde_json::Result<()> {
    let Some(text) = path.to_str() else {
        return put(out, &path.to_string_lossy());
    };
    put_text(out, text)
}

fn put_time(out: &mut Vec<u8>, time: Timestamp, zone: &TimeZone) -> serde_json::Result<()> {
    out.push(b'"');
    time.write(out, zone);
    out.push(b'"');
    Ok(())
}

/// Most texts need no escapes: one scan for them takes a third of the time.
fn put_text(out: &mut Vec<u8>, text: &str) -> serde_json::Result<()> {
    let needs_escape = |found, &byte: &u8| found | (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.as_bytes().iter().fold(false, needs_escape) {
        return put(out, text);
    }
    put_word(out, text)
}

/// The size of a colour's file: enough for programs that blend edges when they scale.
pub(crate) const COLOR_SIZE: (u32, u32) = (960, 540);

impl Image {
    /// The record of a plain colour; its file is at `path`.
    pub(crate) fn of_color(rgb: Rgb, path: &Path) -> Self {
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
        color::of_image(self.id).map(hex)
    }

    /// The id of an image; none for a plain colour.
    pub(crate) fn library_id(&self) -> Option<i64> {
        color::of_image(self.id).is_none().then_some(self.id)
    }

    /// The path that the image's owner knows; none for a plain colour.
    pub(crate) fn library_path(&self) -> Option<PathBuf> {
        self.library_id().map(|_| own_path(&self.path).to_owned())
    }
}

/// An image with its id, for people.
pub(crate) fn labelled(name: &str, id: i64) -> String {
    match color::of_image(id) {
        Some(_) => name.to_owned(),
        None => format!("{name} ({id})"),
    }
}

/// Writes an id; null for a plain colour.
pub(crate) fn put_id<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    color::of_image(*id)
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
    let color = color::of_image(id).map(hex);
    color.map_or_else(|| Value::from(id), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_shown_as_its_owner_knows_it() {
        let check = |path: &str, own: &str| assert_eq!(own_path(Path::new(path)), Path::new(own));
        check("/p/a.png", "/p/a.png");
        check("/p/a.png.murald-displaced-7", "/p/a.png");
        check("/p/a.murald-displaced-b.png", "/p/a.murald-displaced-b.png");
        check("/p/a.murald-displaced-7.png", "/p/a.murald-displaced-7.png");
    }
}
