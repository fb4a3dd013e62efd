//! The record of an image as its row has it; and columns that the other tables have, too. Pure; never
//! writes a row.

use std::str::FromStr;

use rusqlite::types::{FromSqlError, ValueRef};
use rusqlite::{Row, Rows};
use serde::Deserialize;

use super::Error;
use crate::wire::{Image, ImageRow, Timestamp, WebMeta};

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
                log::warn!("skipping an unreadable row of the database: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The columns that [`image`] reads, in its order.
pub(super) const IMAGE_COLUMNS: &str = "id, name, path, media_type, format, width, height, duration, animated, \
    audio_enabled, file_size, checksum, tags, colors, folder_id, is_selected, imported_at, \
    source_path, preview_path, web_meta, overrides, hue_group, in_place";

pub(super) fn image(row: &Row<'_>) -> Result<Image, Error> {
    image_row(row).map(Image::from)
}

/// The same without a copy of what lies in the row.
pub(super) fn image_row<'r>(row: &'r Row<'_>) -> Result<ImageRow<'r>, Error> {
    let web_meta: Option<WebMeta> = json(row, 19)?;
    let overrides = match (optional_text(row, 20)?, &web_meta) {
        (Some(text), _) => Some(parse(text)?),
        // A package has them, if there are none.
        (None, Some(_)) => Some(parse("{}")?),
        (None, None) => None,
    };
    Ok(ImageRow {
        id: row.get(0)?,
        name: text(row, 1)?,
        path: text(row, 2)?,
        media_type: word(row, 3)?,
        format: word(row, 4)?,
        width: row.get(5)?,
        height: row.get(6)?,
        duration: row.get(7)?,
        animated: row.get(8)?,
        audio_enabled: row.get(9)?,
        file_size: row.get::<_, i64>(10)?.unsigned_abs(),
        checksum: blob(row, 11)?,
        tags: tags(row, 12)?,
        colors: blob(row, 13)?,
        hue_group: row.get(21)?,
        folder_id: row.get(14)?,
        is_selected: row.get(15)?,
        imported_at: Timestamp::from_micros(row.get(16)?),
        source_path: text(row, 17)?,
        in_place: row.get(22)?,
        preview_path: optional_text(row, 18)?,
        web_meta,
        wallpaper_config_overrides: overrides,
    })
}

/// A column that holds one of the words of `T`.
pub(super) fn word<T: FromStr>(row: &Row<'_>, column: usize) -> Result<T, Error> {
    let text = text(row, column)?;
    text.parse().map_err(|_| Error::Damaged { what: format!("{text:?} is no word of ours") })
}

/// The same, or nothing.
pub(super) fn optional_word<T: FromStr>(row: &Row<'_>, column: usize) -> Result<Option<T>, Error> {
    if optional_text(row, column)?.is_none() { Ok(None) } else { word(row, column).map(Some) }
}

/// A column that holds JSON, or nothing.
pub(super) fn json<'r, T: Deserialize<'r>>(
    row: &'r Row<'_>,
    column: usize,
) -> Result<Option<T>, Error> {
    optional_text(row, column)?.map(parse).transpose()
}

fn parse<'r, T: Deserialize<'r>>(text: &'r str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Damaged { what: error.to_string() })
}

fn tags(row: &Row<'_>, column: usize) -> Result<Vec<String>, Error> {
    match text(row, column)? {
        // Most have none.
        "[]" => Ok(Vec::new()),
        list => parse(list),
    }
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, Error> {
    let value = row.get_ref(column)?;
    Ok(value.as_str().map_err(|error| conversion(column, value, error))?)
}

fn optional_text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, Error> {
    let value = row.get_ref(column)?;
    Ok(value.as_str_or_null().map_err(|error| conversion(column, value, error))?)
}

fn blob<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], Error> {
    let value = row.get_ref(column)?;
    Ok(value.as_blob().map_err(|error| conversion(column, value, error))?)
}

fn conversion(column: usize, value: ValueRef<'_>, error: FromSqlError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(error))
}
