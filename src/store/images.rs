//! Rows of the library: in, found, listed. How they go is in [`super::purge`].
//!
//! Functions over a connection, in whoever's transaction it is. What lies on the disk is the
//! caller's, and what it must not forget of it is noted in [`super::pending_files`].

use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Map, json};

use super::row::{self, Columns, IMAGE_COLUMNS, word};
use super::{Error, derived, watched};
use crate::color;
use crate::digest::Checksum;
use crate::wire::collate;
use crate::wire::{Format, Image, MediaType, Timestamp, WebMeta};

/// A picture about to be taken in.
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
    pub description: String,
    pub colors: Vec<[u8; 3]>,
    pub hue_group: u8,
    pub folder_id: Option<i64>,
    pub source_path: PathBuf,
    /// `path` is the owner's own file.
    pub in_place: bool,
    /// The package; `path` is its page.
    pub web: Option<NewPackage>,
}

/// Fields of packages only.
#[derive(Clone, Debug)]
pub struct NewPackage {
    pub meta: WebMeta,
    /// Its own preview, in it.
    pub preview: Option<PathBuf>,
    pub overrides: Map<String, serde_json::Value>,
}

impl NewImage {
    /// Its file, or its package.
    pub fn home(&self) -> &Path {
        self.web.as_ref().map_or(&self.path, |web| &web.meta.package_root)
    }

    /// Gives it its name and its place.
    pub fn settle(&mut self, name: &str, home: &Path) {
        self.name = name.to_owned();
        if let Some(web) = &mut self.web {
            web.meta = web.meta.moved(home);
        }
        self.path = self.web.as_ref().map_or(home, |web| &web.meta.entry_path).to_owned();
    }
}

/// The columns that follow from the content of the file.
pub(super) fn content(image: &NewImage) -> Columns {
    vec![
        ("media_type", image.format.media_type().as_str().to_owned().into()),
        ("format", image.format.as_str().to_owned().into()),
        ("width", image.width.into()),
        ("height", image.height.into()),
        ("duration", image.duration.into()),
        ("animated", image.animated.into()),
        ("file_size", image.file_size.cast_signed().into()),
        ("checksum", image.checksum.to_vec().into()),
        ("colors", image.colors.concat().into()),
        ("hue_group", image.hue_group.into()),
    ]
}

/// Adds a row and returns its id. A taken name, path or checksum is [`Error::is_taken`].
pub fn insert(connection: &Connection, image: &NewImage) -> Result<i64, Error> {
    let web = image.web.as_ref();
    let preview = web.and_then(|web| Some(web.meta.package_root.join(web.preview.as_ref()?)));
    let mut columns = content(image);
    columns.extend([
        ("name", image.name.clone().into()),
        ("path", text(&image.path)),
        ("audio_enabled", image.audio_enabled.into()),
        ("tags", "[]".to_owned().into()),
        ("description", image.description.clone().into()),
        ("folder_id", image.folder_id.into()),
        ("imported_at", Timestamp::now().as_micros().into()),
        ("source_path", text(&image.source_path)),
        ("web_meta", web.map(|web| json!(web.meta).to_string()).into()),
        ("preview_path", preview.as_deref().map_or(Value::Null, text)),
        ("overrides", web.map(|web| json!(web.overrides).to_string()).into()),
        ("in_place", image.in_place.into()),
    ]);
    let id = row::insert(connection, "image", columns)?;
    derived::renew(connection, id)?;
    watched::adopt(connection, id, &image.checksum)?;
    Ok(id)
}

/// Changes columns of a row, and those that follow from them.
pub(super) fn set(connection: &Connection, id: i64, columns: Columns) -> Result<(), Error> {
    if columns.is_empty() {
        return Ok(());
    }
    let is_source = columns.iter().any(|(name, _)| derived::SOURCES.contains(name));
    row::update(connection, "image", id, columns)?;
    match is_source {
        true => derived::renew(connection, id),
        false => Ok(()),
    }
}

pub(super) fn text(path: &Path) -> Value {
    path.to_string_lossy().into_owned().into()
}

/// The image of this id, if there is one.
pub(crate) fn get(connection: &Connection, id: i64) -> Result<Option<Image>, Error> {
    let sql = format!("SELECT {IMAGE_COLUMNS} FROM image WHERE id = ?1");
    one(connection, &sql, [id])
}

/// The image of an assignment: of the library, or a plain colour, without its file.
pub(crate) fn assigned(connection: &Connection, id: i64) -> Result<Option<Image>, Error> {
    match color::of_image(id) {
        Some(color) => Ok(Some(Image::of_color(color, Path::new("")))),
        None => get(connection, id),
    }
}

/// The images of assignments; those that are gone or cannot be read are omitted.
pub(crate) fn all_assigned(connection: &Connection, ids: &[i64]) -> Result<Vec<Image>, Error> {
    let colors = ids.iter().filter_map(|&id| color::of_image(id));
    let colors = colors.map(|color| Image::of_color(color, Path::new("")));
    Ok(by_ids(connection, ids)?.into_iter().chain(colors).collect())
}

/// Whether it has a row, be that one that cannot be read.
pub(crate) fn exists(connection: &Connection, id: i64) -> Result<bool, Error> {
    Ok(connection.prepare_cached("SELECT 1 FROM image WHERE id = ?1")?.exists([id])?)
}

/// The image with exactly this content.
pub(crate) fn by_checksum(
    connection: &Connection,
    checksum: &Checksum,
) -> Result<Option<Image>, Error> {
    let sql = format!("SELECT {IMAGE_COLUMNS} FROM image WHERE checksum = ?1");
    one(connection, &sql, [checksum])
}

/// The images of these ids, in this order; those that are gone or cannot be read are omitted.
pub fn by_ids(connection: &Connection, ids: &[i64]) -> Result<Vec<Image>, Error> {
    let mut images = Vec::with_capacity(ids.len());
    each(connection, ids, |id, row| match row {
        Err(error) if error.is_of_a_row() => {
            log::warn!("image {id} cannot be read and is left out: {error}");
            Ok(())
        }
        image => image.map(|image| images.push(image)),
    })?;
    Ok(images)
}

/// Hands over the rows of these ids, in this order, while they are read; of one that is gone nothing.
pub(super) fn each(
    connection: &Connection,
    ids: &[i64],
    mut hand: impl FnMut(i64, Result<Image, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let sql = format!("SELECT {IMAGE_COLUMNS} FROM image WHERE id = ?1");
    // One snapshot for all of them, and the locks of the file taken once: it stands as long as a
    // statement is amid its rows.
    let mut amid = connection.prepare_cached("SELECT 1 FROM sqlite_schema")?;
    let mut snapshot = amid.query([])?;
    if ids.len() > 1 {
        snapshot.next()?;
    }
    let mut statement = connection.prepare_cached(&sql)?;
    for &id in ids {
        if let Some(row) = statement.query([id])?.next()? {
            hand(id, row::image(row))?;
        }
    }
    Ok(())
}

/// The next images in the order of their ids.
pub fn after(connection: &Connection, id: i64, limit: usize) -> Result<Vec<Image>, Error> {
    let sql = format!("SELECT {IMAGE_COLUMNS} FROM image WHERE id > ?1 ORDER BY id LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    row::readable(statement.query((id, limit as i64))?, row::image)
}

/// Every image that cannot be read, and why.
pub(super) fn unreadable(connection: &Connection) -> Result<Vec<(i64, Error)>, Error> {
    let mut statement =
        connection.prepare(&format!("SELECT {IMAGE_COLUMNS} FROM image ORDER BY id"))?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match row::image(row) {
            Ok(_) => {}
            Err(error) if error.is_of_a_row() => found.push((row.get(0)?, error)),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Whether some image has exactly this many bytes.
pub(crate) fn has_size(connection: &Connection, bytes: u64) -> Result<bool, Error> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM image WHERE file_size = ?1")?;
    Ok(statement.exists([i64::try_from(bytes).unwrap_or(i64::MAX)])?)
}

/// The images of this name, composed or decomposed.
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

/// Whether a row owns this name.
pub(crate) fn has_name(connection: &Connection, name: &str) -> Result<bool, Error> {
    Ok(connection.prepare_cached("SELECT 1 FROM image WHERE name = ?1")?.exists([name])?)
}

/// The image whose file this is, or whose package's page.
pub(crate) fn by_path(connection: &Connection, path: &Path) -> Result<Option<Image>, Error> {
    let mut statement = connection.prepare_cached("SELECT id FROM image WHERE path = ?1")?;
    let id = statement.query_row([path.to_string_lossy()], |row| row.get(0)).optional()?;
    id.map_or(Ok(None), |id| get(connection, id))
}

/// Whether a row owns this file or package.
pub(crate) fn has_path(connection: &Connection, path: &Path) -> Result<bool, Error> {
    // A package whose metadata cannot be read owns all that its page could belong to.
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM image WHERE path = ?1 OR CASE WHEN json_valid(web_meta) \
         THEN web_meta ->> '$.package_root' = ?1 \
         ELSE web_meta NOT NULL AND substr(path, 1, length(?1) + 1) = ?1 || '/' END",
    )?;
    Ok(statement.exists([path.to_string_lossy()])?)
}

/// Whether a row has this content; hexadecimal digits that are no checksum are none's.
pub(crate) fn has_checksum(connection: &Connection, hex: &str) -> Result<bool, Error> {
    let mut statement =
        connection.prepare_cached("SELECT 1 FROM image WHERE checksum = unhex(?1)")?;
    Ok(statement.exists([hex])?)
}

/// How many images there are.
pub(crate) fn count(connection: &Connection) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached("SELECT count(*) FROM image")?;
    Ok(statement.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// The ids of all images of these kinds: (id, media type, animated).
pub fn ids(connection: &Connection) -> Result<Vec<(i64, MediaType, bool)>, Error> {
    // The index has these columns, and the table is five times as large.
    let sql = "SELECT id, media_type, animated FROM image INDEXED BY image_list";
    let mut statement = connection.prepare_cached(sql)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, word(row, 1)?, row.get(2)?));
    let mut ids = row::readable(statement.query([])?, read)?;
    ids.sort_unstable_by_key(|(id, ..)| *id);
    Ok(ids)
}

/// The file or package, and the content, of every image that has a copy of ours: (id, path,
/// checksum). Of one that cannot be read nothing is said, so that nobody takes its files for missing.
pub fn files(connection: &Connection) -> Result<Vec<(i64, PathBuf, Checksum)>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT id, ifnull(web_meta ->> '$.package_root', path), checksum FROM image \
         WHERE json_valid(ifnull(web_meta, '{}')) AND NOT in_place",
    )?;
    row::readable(statement.query([])?, |row| {
        Ok((row.get(0)?, PathBuf::from(row.get::<_, String>(1)?), row.get(2)?))
    })
}

/// Whether any copy or package lies in a directory.
pub(crate) fn has_below(connection: &Connection, directory: &Path) -> Result<bool, Error> {
    let (from, to) = watched::directory_range(directory);
    let mut statement = connection
        .prepare_cached("SELECT 1 FROM image WHERE path > ?1 AND path < ?2 AND NOT in_place")?;
    Ok(statement.exists([from, to])?)
}

/// The file of every picture that has a copy of ours, and how many bytes it had when it was seen last.
pub(crate) fn sizes(connection: &Connection) -> Result<Vec<(PathBuf, u64)>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT path, file_size FROM image WHERE web_meta IS NULL AND NOT in_place",
    )?;
    row::readable(statement.query([])?, |row| {
        Ok((row.get::<_, String>(0)?.into(), row.get::<_, i64>(1)?.unsigned_abs()))
    })
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
