//! Reads and writes rows by their columns: the record of an image, conversions of columns, and
//! statements that take column names.

use std::path::PathBuf;
use std::str::FromStr;

use rusqlite::types::{FromSql, FromSqlError, Value, ValueRef};
use rusqlite::{Connection, Row, Rows, params_from_iter};
use serde::Deserialize;

use super::Error;
use crate::color::Rgb;
use crate::wire::{Image, ThumbnailPaths, Timestamp};

/// Columns of a row with their values.
pub(super) type Columns = Vec<(&'static str, Value)>;

/// Inserts a row and returns its id.
pub(super) fn insert(
    connection: &Connection,
    table: &str,
    columns: Columns,
) -> rusqlite::Result<i64> {
    let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let (names, places) = (names.join(", "), vec!["?"; names.len()].join(", "));
    connection
        .prepare_cached(&format!("INSERT INTO {table} ({names}) VALUES ({places})"))?
        .execute(params_from_iter(values))?;
    Ok(connection.last_insert_rowid())
}

/// Changes columns of a row; `columns` is not empty.
pub(super) fn update(
    connection: &Connection,
    table: &str,
    id: i64,
    columns: Columns,
) -> rusqlite::Result<usize> {
    let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let names = names.join(" = ?, ");
    connection
        .prepare_cached(&format!("UPDATE {table} SET {names} = ? WHERE id = ?"))?
        .execute(params_from_iter(values.into_iter().chain([id.into()])))
}

/// Reads all rows.
pub(super) fn all<T>(
    mut rows: Rows<'_>,
    read: impl Fn(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

/// Defines the list of an image's columns and the function that reads them. Columns and fields have
/// the same names.
macro_rules! columns {
    ($($field:ident: $read:ident,)*) => {
        pub(super) const IMAGE_COLUMNS: &str =
            concat!("id, ", $(stringify!($field), ", ",)* "ifnull(overrides, iif(web_meta IS NULL, NULL, '{}'))");

        pub(super) fn image(row: &Row<'_>) -> Result<Image, Error> {
            let mut column = 0;
            Ok(Image {
                id: row.get(0)?,
                $($field: { column += 1; $read(row, column)? },)*
                // A package has at least an empty object.
                wallpaper_config_overrides: json(row, column + 1)?,
                thumbnails: ThumbnailPaths::default(),
            })
        }
    };
}

columns! {
    name: get,
    path: path,
    media_type: word,
    format: word,
    width: get,
    height: get,
    duration: get,
    animated: get,
    audio_enabled: get,
    file_size: number,
    checksum: get,
    tags: tags,
    description: get,
    colors: colors,
    hue_group: get,
    folder_id: get,
    is_selected: get,
    imported_at: time,
    source_path: path,
    in_place: get,
    missing_since: get,
    position: optional_word,
    preview_path: optional_path,
    web_meta: json,
}

fn get<T: FromSql>(row: &Row<'_>, column: usize) -> Result<T, Error> {
    Ok(row.get(column)?)
}

fn number(row: &Row<'_>, column: usize) -> Result<u64, Error> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, Error> {
    Ok(Timestamp::from_micros(row.get(column)?))
}

fn path(row: &Row<'_>, column: usize) -> Result<PathBuf, Error> {
    Ok(text(row, column)?.into())
}

fn optional_path(row: &Row<'_>, column: usize) -> Result<Option<PathBuf>, Error> {
    Ok(optional_text(row, column)?.map(PathBuf::from))
}

/// Reads three bytes per colour.
fn colors(row: &Row<'_>, column: usize) -> Result<Vec<Rgb>, Error> {
    let value = row.get_ref(column)?;
    let bytes = value
        .as_blob()
        .map_err(|error| conversion(column, value, error))?;
    Ok(bytes.as_chunks().0.to_vec())
}

/// Reads a column that contains one of the values of `T`.
pub(super) fn word<T: FromStr>(row: &Row<'_>, column: usize) -> Result<T, Error> {
    let text = text(row, column)?;
    text.parse().map_err(|_| Error::Damaged {
        what: format!("unknown value {text:?}"),
    })
}

/// Like [`word`], but returns `None` for null and for unknown values, for example of another
/// version of murald: an image without its fit or position is better than none.
pub(super) fn optional_word<T: FromStr>(row: &Row<'_>, column: usize) -> Result<Option<T>, Error> {
    Ok(optional_text(row, column)?.and_then(|text| text.parse().ok()))
}

/// Reads a column that contains JSON or null.
pub(super) fn json<'r, T: Deserialize<'r>>(
    row: &'r Row<'_>,
    column: usize,
) -> Result<Option<T>, Error> {
    optional_text(row, column)?.map(parse).transpose()
}

fn parse<'r, T: Deserialize<'r>>(text: &'r str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Damaged {
        what: error.to_string(),
    })
}

fn tags(row: &Row<'_>, column: usize) -> Result<Vec<String>, Error> {
    match text(row, column)? {
        // Most images have no tags.
        "[]" => Ok(Vec::new()),
        list => parse(list),
    }
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, Error> {
    let value = row.get_ref(column)?;
    Ok(value
        .as_str()
        .map_err(|error| conversion(column, value, error))?)
}

fn optional_text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, Error> {
    let value = row.get_ref(column)?;
    Ok(value
        .as_str_or_null()
        .map_err(|error| conversion(column, value, error))?)
}

fn conversion(column: usize, value: ValueRef<'_>, error: FromSqlError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(error))
}
