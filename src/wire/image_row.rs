//! An item of the library as it lies in its row: lists are written of it without a copy.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde::ser::{SerializeSeq as _, Serializer};
use serde_json::value::RawValue;

use super::{Format, Image, MediaType, Timestamp, WebMeta};
use crate::digest::{hex, push_hex};

/// [`Image`], borrowed; it is written the same.
#[derive(Clone, Debug, Serialize)]
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
    #[serde(serialize_with = "write_checksum")]
    pub checksum: &'r [u8],
    pub tags: Vec<String>,
    /// Three bytes each.
    #[serde(serialize_with = "write_colors")]
    pub colors: &'r [u8],
    pub hue_group: u8,
    pub folder_id: Option<i64>,
    pub is_selected: bool,
    pub imported_at: Timestamp,
    pub source_path: &'r str,
    pub in_place: bool,
    pub thumbnails: BTreeMap<&'static str, PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_path: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_meta: Option<WebMeta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallpaper_config_overrides: Option<&'r RawValue>,
}

impl From<ImageRow<'_>> for Image {
    fn from(row: ImageRow<'_>) -> Self {
        let thumbnails = row.thumbnails.into_iter();
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
            thumbnails: thumbnails.map(|(size, path)| (size.to_owned(), path)).collect(),
            preview_path: row.preview_path.map(PathBuf::from),
            web_meta: row.web_meta,
            wallpaper_config_overrides: row.wallpaper_config_overrides.map(|raw| raw.into()),
        }
    }
}

fn write_checksum<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    let mut text = String::with_capacity("sha256:".len() + 2 * bytes.len());
    text.push_str("sha256:");
    push_hex(bytes, &mut text);
    to.serialize_str(&text)
}

fn write_colors<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    let mut colors = to.serialize_seq(Some(bytes.len() / 3))?;
    let mut text = String::with_capacity(7);
    for color in bytes.chunks_exact(3) {
        text.clear();
        text.push('#');
        push_hex(color, &mut text);
        colors.serialize_element(&text)?;
    }
    colors.end()
}
