//! Inserts and finds images of the library; [`super::purge`] deletes them.
//!
//! The functions run in the caller's transaction. The caller moves and removes the files, and
//! records unfinished work in [`super::pending_files`].

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, json};

use super::row::{self, Columns, IMAGE_COLUMNS, word};
use super::{Error, derived, watched};
use crate::color;
use crate::digest::Checksum;
use crate::wire::collate;
use crate::wire::{Format, Image, MediaType, Timestamp, WebMeta};

/// An image to be imported.
#[derive(Clone, Debug)]
pub struct NewImage {
    pub name: String,
    pub path: PathBuf,
    pub format: Format,
    pub width: u32,
    pub height: u32,
    pub duration: f64,
    pub animated: bool,
    pub audio_enabled: bool,
    pub file_size: u64,
    pub checksum: Checksum,
    pub colors: Vec<[u8; 3]>,
    pub hue_group: u8,
    pub folder_id: Option<i64>,
    pub source_path: PathBuf,
    /// `path` is the user's own file, not a copy in the library.
    pub in_place: bool,
    /// For an HTML package; `path` is its HTML page.
    pub web: Option<NewPackage>,
}

/// Fields of packages only.
#[derive(Clone, Debug)]
pub struct NewPackage {
    pub meta: WebMeta,
    /// The preview image in the package.
    pub preview: Option<PathBuf>,
    pub overrides: Map<String, serde_json::Value>,
}

impl NewImage {
    /// The path of the file or package.
    pub fn home(&self) -> &Path {
        self.web
            .as_ref()
            .map_or(&self.path, |web| &web.meta.package_root)
    }

    /// Sets the name, and the path of the file or package.
    pub fn settle(&mut self, name: &str, home: &Path) {
        self.name = name.to_owned();
        if let Some(web) = &mut self.web {
            web.meta = web.meta.moved(home);
        }
        self.path = self
            .web
            .as_ref()
            .map_or(home, |web| &web.meta.entry_path)
            .to_owned();
    }
}

impl NewPackage {
    /// Keeps the settings that the user has chosen for the package as it was before.
    pub(crate) fn keep_settings(&mut self, before: &Image) {
        let chosen = before.wallpaper_config_overrides.iter();
        let chosen = chosen.flat_map(|chosen| chosen.fields());
        let declared = self.meta.wallpaper_config.fields();
        self.overrides
            .extend(chosen.filter(|(key, _)| declared.contains_key(key)));
    }
}

/// The columns that are read from the file.
pub(super) fn content(image: &NewImage) -> Columns {
    let web = image.web.as_ref();
    let preview = web.and_then(|web| Some(web.meta.package_root.join(web.preview.as_ref()?)));
    vec![
        (
            "media_type",
            image.format.media_type().as_str().to_owned().into(),
        ),
        ("format", image.format.as_str().to_owned().into()),
        ("width", image.width.into()),
        ("height", image.height.into()),
        ("duration", image.duration.into()),
        ("animated", image.animated.into()),
        ("file_size", image.file_size.cast_signed().into()),
        ("checksum", image.checksum.to_vec().into()),
        ("colors", image.colors.concat().into()),
        ("hue_group", image.hue_group.into()),
        (
            "web_meta",
            web.map(|web| json!(web.meta).to_string()).into(),
        ),
        ("preview_path", preview.as_deref().map_or(Value::Null, text)),
        (
            "overrides",
            web.map(|web| json!(web.overrides).to_string()).into(),
        ),
    ]
}

/// Inserts a row and returns its id. If the name, path or checksum is taken, the error
/// [`Error::is_taken`].
pub fn insert(connection: &Connection, image: &NewImage) -> Result<i64, Error> {
    let mut columns = content(image);
    columns.extend([
        ("name", image.name.clone().into()),
        ("path", text(&image.path)),
        ("audio_enabled", image.audio_enabled.into()),
        ("tags", "[]".to_owned().into()),
        ("folder_id", image.folder_id.into()),
        ("imported_at", Timestamp::now().as_micros().into()),
        ("source_path", text(&image.source_path)),
        ("in_place", image.in_place.into()),
    ]);
    let id = row::insert(connection, "image", columns)?;
    derived::renew(connection, id)?;
    watched::adopt(connection, id, &image.checksum)?;
    Ok(id)
}

/// Changes columns of a row, and the columns derived from them.
pub(super) fn set(connection: &Connection, id: i64, columns: Columns) -> Result<(), Error> {
    if columns.is_empty() {
        return Ok(());
    }
    let is_source = columns
        .iter()
        .any(|(name, _)| derived::SOURCES.contains(name));
    row::update(connection, "image", id, columns)?;
    if is_source {
        derived::renew(connection, id)
    } else {
        Ok(())
    }
}

pub(super) fn text(path: &Path) -> Value {
    path.to_string_lossy().into_owned().into()
}

/// Returns the image with this id, if it exists.
pub(crate) fn get(connection: &Connection, id: i64) -> Result<Option<Image>, Error> {
    let sql = format!("SELECT {IMAGE_COLUMNS} FROM image WHERE id = ?1");
    one(connection, &sql, [id])
}

/// Returns the image of an assignment: from the library, or a plain colour, whose path is empty.
pub(crate) fn assigned(connection: &Connection, id: i64) -> Result<Option<Image>, Error> {
    match color::from_image_id(id) {
        Some(color) => Ok(Some(Image::from_color(color, Path::new("")))),
        None => get(connection, id),
    }
}

/// Returns the images of assignments, skipping missing ones.
pub(crate) fn all_assigned(connection: &Connection, ids: &[i64]) -> Result<Vec<Image>, Error> {
    let colors = ids.iter().filter_map(|&id| color::from_image_id(id));
    let colors = colors.map(|color| Image::from_color(color, Path::new("")));
    Ok(by_ids(connection, ids)?.into_iter().chain(colors).collect())
}

/// Whether the image has a row.
pub(crate) fn exists(connection: &Connection, id: i64) -> Result<bool, Error> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM image WHERE id = ?1")?
        .exists([id])?)
}

/// Returns the image with exactly this content.
pub(crate) fn by_checksum(
    connection: &Connection,
    checksum: &Checksum,
) -> Result<Option<Image>, Error> {
    let sql = format!("SELECT {IMAGE_COLUMNS} FROM image WHERE checksum = ?1");
    one(connection, &sql, [checksum])
}

/// Returns images in the order of `ids`, skipping missing ones.
pub fn by_ids(connection: &Connection, ids: &[i64]) -> Result<Vec<Image>, Error> {
    let mut images = Vec::with_capacity(ids.len());
    each(connection, ids, |image| {
        images.push(image);
        Ok(())
    })?;
    Ok(images)
}

/// Calls `hand` with the image of each id while it reads, in the order of `ids`; skips missing ones.
pub(super) fn each(
    connection: &Connection,
    ids: &[i64],
    mut hand: impl FnMut(Image) -> Result<(), Error>,
) -> Result<(), Error> {
    let sql = format!("SELECT {IMAGE_COLUMNS} FROM image WHERE id = ?1");
    // An unfinished statement keeps one snapshot, so all rows are of the same moment and the file
    // is locked only once.
    let mut amid = connection.prepare_cached("SELECT 1 FROM sqlite_schema")?;
    let mut snapshot = amid.query([])?;
    if ids.len() > 1 {
        snapshot.next()?;
    }
    let mut statement = connection.prepare_cached(&sql)?;
    for &id in ids {
        if let Some(row) = statement.query([id])?.next()? {
            hand(row::image(row)?)?;
        }
    }
    Ok(())
}

/// Returns up to `limit` images with ids above `id`, sorted by id.
pub fn after(connection: &Connection, id: i64, limit: usize) -> Result<Vec<Image>, Error> {
    let sql = format!("SELECT {IMAGE_COLUMNS} FROM image WHERE id > ?1 ORDER BY id LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    row::all(statement.query((id, limit as i64))?, row::image)
}

/// Whether an image has exactly this file size.
pub(crate) fn has_size(connection: &Connection, bytes: u64) -> Result<bool, Error> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM image WHERE file_size = ?1")?;
    Ok(statement.exists([i64::try_from(bytes).unwrap_or(i64::MAX)])?)
}

/// Returns the images of this name, however its letters are composed (NFC or NFD).
pub(crate) fn named(connection: &Connection, name: &str) -> Result<Vec<i64>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT id, name FROM image WHERE name_key = ?1")?;
    let mut rows = statement.query([collate::sort_key(name)])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        if collate::is_same(&row.get::<_, String>(1)?, name) {
            ids.push(row.get(0)?);
        }
    }
    Ok(ids)
}

/// Whether an image has exactly this name.
pub(crate) fn has_name(connection: &Connection, name: &str) -> Result<bool, Error> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM image WHERE name = ?1")?
        .exists([name])?)
}

/// Returns the image with this file, or the package with this HTML page. A copy may be missing; an image
/// in place that is missing has this path no more.
pub(crate) fn by_path(connection: &Connection, path: &Path) -> Result<Option<Image>, Error> {
    // Each half has an index.
    let mut statement = connection.prepare_cached(
        "SELECT id FROM image WHERE path = ?1 AND missing_since IS NULL UNION ALL \
         SELECT id FROM image WHERE path = ?1 AND missing_since IS NOT NULL AND NOT in_place LIMIT 1",
    )?;
    let id = statement
        .query_row([path.to_string_lossy()], |row| row.get(0))
        .optional()?;
    id.map_or(Ok(None), |id| get(connection, id))
}

/// Whether a row has this file or package.
pub(crate) fn has_path(connection: &Connection, path: &Path) -> Result<bool, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM image WHERE path = ?1 OR web_meta ->> '$.package_root' = ?1",
    )?;
    Ok(statement.exists([path.to_string_lossy()])?)
}

/// Whether an image has this checksum; `false` if `hex` is not a valid checksum.
pub(crate) fn has_checksum(connection: &Connection, hex: &str) -> Result<bool, Error> {
    let mut statement =
        connection.prepare_cached("SELECT 1 FROM image WHERE checksum = unhex(?1)")?;
    Ok(statement.exists([hex])?)
}

/// Returns the number of images.
pub(crate) fn count(connection: &Connection) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached("SELECT count(*) FROM image")?;
    Ok(statement
        .query_row([], |row| row.get::<_, i64>(0))?
        .unsigned_abs())
}

/// Returns id, media type and whether animated of all images, sorted by id.
pub fn ids(connection: &Connection) -> Result<Vec<(i64, MediaType, bool)>, Error> {
    // The index has all these columns, and the table is five times as large.
    let sql = "SELECT id, media_type, animated FROM image INDEXED BY image_list";
    let mut statement = connection.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, word(row, 1)?, row.get(2)?));
    let mut ids = row::all(statement.query([])?, read)?;
    ids.sort_unstable_by_key(|(id, ..)| *id);
    Ok(ids)
}

/// Returns id, path of the file or package, and checksum of all imported images.
pub fn files(connection: &Connection) -> Result<Vec<(i64, PathBuf, Checksum)>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT id, ifnull(web_meta ->> '$.package_root', path), checksum FROM image \
         WHERE NOT in_place",
    )?;
    row::all(statement.query([])?, |row| {
        Ok((
            row.get(0)?,
            PathBuf::from(row.get::<_, String>(1)?),
            row.get(2)?,
        ))
    })
}

/// Returns the images whose files are missing.
pub(crate) fn missing(connection: &Connection) -> Result<HashSet<i64>, Error> {
    let sql = "SELECT id FROM image WHERE missing_since IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Marks the files of these images as missing, or as there.
pub(crate) fn set_missing<'i>(
    connection: &Connection,
    ids: impl IntoIterator<Item = &'i i64>,
    is_missing: bool,
) -> Result<(), Error> {
    let since = is_missing.then(|| Timestamp::now().as_micros());
    // Another image may have the file of one that was missing.
    let sql = "UPDATE OR IGNORE image SET missing_since = ?2 WHERE id = ?1 \
               AND (missing_since IS NULL) = (?2 IS NOT NULL)";
    let mut statement = connection.prepare_cached(sql)?;
    for id in ids {
        statement.execute(params![id, since])?;
    }
    Ok(())
}

/// Marks an image as missing since this time, in microseconds since 1970; 0 keeps the image without a
/// time limit.
pub(crate) fn miss(connection: &Connection, id: i64, since: i64) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE image SET missing_since = ?2 WHERE id = ?1")?
        .execute([id, since])?;
    Ok(())
}

/// Returns how many copies have missing files, and how many there are.
pub(crate) fn count_missing(connection: &Connection) -> Result<(usize, usize), Error> {
    let sql = "SELECT count(missing_since), count(*) FROM image WHERE NOT in_place";
    let mut statement = connection.prepare_cached(sql)?;
    let counts =
        statement.query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    Ok((counts.0 as usize, counts.1 as usize))
}

/// Whether several imported files or packages are in a directory or below it.
pub(crate) fn has_several_below(connection: &Connection, directory: &Path) -> Result<bool, Error> {
    let (from, to) = watched::directory_range(directory);
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM image WHERE path > ?1 AND path < ?2 AND NOT in_place LIMIT 1 OFFSET 1",
    )?;
    Ok(statement.exists([from, to])?)
}

fn one<P: rusqlite::Params>(
    connection: &Connection,
    sql: &str,
    parameters: P,
) -> Result<Option<Image>, Error> {
    connection
        .prepare_cached(sql)?
        .query_row(parameters, |row| Ok(row::image(row)))
        .optional()?
        .transpose()
}

#[cfg(test)]
pub(super) mod tests;
