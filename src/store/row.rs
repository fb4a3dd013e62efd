//! What a row of the library becomes: an image, or what the index keeps of it; and columns that the
//! other tables have, too. Pure; never writes a row.

use std::path::PathBuf;
use std::str::FromStr;

use rusqlite::{Row, Rows};

use super::Error;
use super::index::Entry;
use crate::digest::hex;
use crate::wire::{Image, JsonObject, Timestamp};

/// All rows but those that cannot be read, which are told of.
pub(super) fn readable<T>(
    mut rows: Rows<'_>,
    read: impl Fn(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(value) => found.push(value),
            Err(error) if error.is_of_a_row() => {
                log::warn!("a row of the database cannot be read and is left out: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The columns that [`image`] reads, in its order.
pub(super) const IMAGE_COLUMNS: &str = "id, name, path, media_type, format, width, height, duration, animated, \
    audio_enabled, file_size, checksum, tags, colors, folder_id, is_selected, imported_at, \
    source_path, preview_path, web_meta, overrides, hue_group";

pub(super) fn image(row: &Row<'_>) -> Result<Image, Error> {
    let colors: Vec<u8> = row.get(13)?;
    let checksum: Vec<u8> = row.get(11)?;
    let web_meta = json(row, 19)?;
    // A package has them, if there are none.
    let overrides = json(row, 20)?.or_else(|| web_meta.is_some().then(JsonObject::default));
    Ok(Image {
        id: row.get(0)?,
        name: row.get(1)?,
        path: row.get::<_, String>(2)?.into(),
        media_type: word(row, 3)?,
        format: word(row, 4)?,
        width: row.get(5)?,
        height: row.get(6)?,
        duration: row.get(7)?,
        animated: row.get(8)?,
        audio_enabled: row.get(9)?,
        file_size: row.get::<_, i64>(10)?.unsigned_abs(),
        checksum: format!("sha256:{}", hex(&checksum)),
        tags: json(row, 12)?.unwrap_or_default(),
        colors: colors.chunks_exact(3).map(|color| format!("#{}", hex(color))).collect(),
        hue_group: row.get(21)?,
        folder_id: row.get(14)?,
        is_selected: row.get(15)?,
        imported_at: Timestamp::from_micros(row.get(16)?),
        source_path: row.get::<_, String>(17)?.into(),
        thumbnails: Default::default(),
        preview_path: row.get::<_, Option<String>>(18)?.map(PathBuf::from),
        web_meta,
        wallpaper_config_overrides: overrides,
    })
}

/// The columns that [`entry`] reads, in its order.
pub(super) const ENTRY_COLUMNS: &str =
    "id, name, media_type, folder_id, tags, colors, file_size, imported_at, animated";

pub(super) fn entry(row: &Row<'_>) -> Result<Entry, Error> {
    let colors: Vec<u8> = row.get(5)?;
    Ok(Entry {
        id: row.get(0)?,
        name: row.get(1)?,
        media_type: word(row, 2)?,
        folder_id: row.get(3)?,
        tags: json(row, 4)?.unwrap_or_default(),
        colors: colors.chunks_exact(3).map(|color| [color[0], color[1], color[2]]).collect(),
        file_size: row.get::<_, i64>(6)?.unsigned_abs(),
        imported_at: row.get(7)?,
        animated: row.get(8)?,
    })
}

/// A column that holds one of the words of `T`.
pub(super) fn word<T: FromStr>(row: &Row<'_>, column: usize) -> Result<T, Error> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| Error::Damaged { what: format!("{text:?} is no word of ours") })
}

/// A column that holds JSON, or nothing.
pub(super) fn json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<T>, Error> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Error::Damaged { what: error.to_string() })
}
