//! Records the files seen in watched directories, so that a scan reads only changed files.
//!
//! A record with a checksum but no image is a dismissed file: its image was deleted in murald and
//! the file left on the disk. It is imported again only if its content changes or the user imports
//! it. A record without a checksum is a file that cannot be imported.
//!
//! The functions run in the caller's transaction and touch no file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Error;
use crate::digest::Checksum;

pub(crate) use crate::decode::Stamp;

/// An image in place whose files are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// In microseconds since 1970; 0 if the image is kept without a time limit, as its disk is away or
    /// its file cannot be decoded.
    pub(crate) since: i64,
    pub(crate) size: u64,
    pub(crate) path: PathBuf,
    /// Whether a record names the image as that of its file.
    pub(crate) has_files: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedFile {
    pub(crate) path: PathBuf,
    pub(crate) image_id: Option<i64>,
    pub(crate) checksum: Option<Checksum>,
    pub(crate) stamp: Stamp,
}

const COLUMNS: &str = "path, image_id, checksum, size, modified, inode, device, changed";

pub(crate) fn get(connection: &Connection, path: &Path) -> Result<Option<WatchedFile>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM watched_file WHERE path = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row([text(path)], from_row).optional()?)
}

/// Returns the records of a file with this path, and of all files below it.
pub(crate) fn below(connection: &Connection, path: &Path) -> Result<Vec<WatchedFile>, Error> {
    let (from, to) = directory_range(path);
    // SQLite reads one range faster than two. Other paths in the range, such as `a.b` beside `a`, are
    // few.
    let sql = format!(
        "SELECT {COLUMNS} FROM watched_file WHERE path >= ?1 AND path < ?3 AND (path = ?1 OR path > ?2) \
         ORDER BY path"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let files = statement.query_map(params![text(path), from, to], from_row)?;
    Ok(files.collect::<Result<_, _>>()?)
}

/// Whether a directory has a file with an image that is not missing, other than those that `is_known`
/// accepts.
pub(crate) fn has_another(
    connection: &Connection,
    directory: &Path,
    is_known: &dyn Fn(&Path) -> bool,
) -> Result<bool, Error> {
    let (from, to) = directory_range(directory);
    let mut statement = connection.prepare_cached(
        "SELECT file.path FROM watched_file AS file JOIN image ON image.id = file.image_id \
         WHERE file.path > ?1 AND file.path < ?2 AND image.missing_since IS NULL",
    )?;
    let mut rows = statement.query([from, to])?;
    while let Some(row) = rows.next()? {
        if !is_known(Path::new(&row.get::<_, String>(0)?)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the number of images with files in a directory or below it, and the number of these files.
pub(crate) fn count(connection: &Connection, directory: &Path) -> Result<(u64, u64), Error> {
    let (from, to) = directory_range(directory);
    let mut statement = connection.prepare_cached(
        "SELECT count(DISTINCT image_id), count(image_id) FROM watched_file \
         WHERE path > ?1 AND path < ?2",
    )?;
    let number = |row: &Row<'_>, at| row.get::<_, i64>(at).map(i64::unsigned_abs);
    Ok(statement.query_row([from, to], |row| Ok((number(row, 0)?, number(row, 1)?)))?)
}

/// Inserts or replaces the record of a file.
pub(crate) fn note(connection: &Connection, file: &WatchedFile) -> Result<(), Error> {
    let WatchedFile {
        path,
        image_id,
        checksum,
        stamp,
    } = file;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO watched_file \
             (path, image_id, checksum, size, modified, inode, device, changed) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            text(path),
            image_id,
            checksum,
            stamp.size as i64,
            stamp.modified,
            stamp.inode as i64,
            stamp.device as i64,
            stamp.changed
        ])?;
    Ok(())
}

/// Updates the device of a file after its number has changed.
pub(crate) fn set_device(connection: &Connection, path: &Path, device: u64) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE watched_file SET device = ?2 WHERE path = ?1")?
        .execute(params![text(path), device as i64])?;
    Ok(())
}

pub(crate) fn forget(connection: &Connection, path: &Path) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM watched_file WHERE path = ?1")?
        .execute([text(path)])?;
    Ok(())
}

/// Removes the record of a file and returns it, if it is about this inode.
pub(crate) fn take(
    connection: &Connection,
    path: &Path,
    inode: u64,
) -> Result<Option<WatchedFile>, Error> {
    let sql =
        format!("DELETE FROM watched_file WHERE path = ?1 AND inode = ?2 RETURNING {COLUMNS}");
    let mut statement = connection.prepare_cached(&sql)?;
    let taken = statement.query_row(params![text(path), inode as i64], from_row);
    Ok(taken.optional()?)
}

/// Removes the records of all files of an image.
pub(crate) fn forget_image(connection: &Connection, image_id: i64) -> Result<(), Error> {
    connection.execute("DELETE FROM watched_file WHERE image_id = ?1", [image_id])?;
    Ok(())
}

/// Whether a file with this content is dismissed: its image was deleted in murald.
pub(crate) fn is_dismissed(connection: &Connection, checksum: &Checksum) -> Result<bool, Error> {
    let mut statement = connection
        .prepare_cached("SELECT 1 FROM watched_file WHERE checksum = ?1 AND image_id IS NULL")?;
    Ok(statement.exists([checksum])?)
}

/// Returns a dismissed file and all other dismissed files with the same content.
pub(crate) fn kept(connection: &Connection, path: &Path) -> Result<Vec<WatchedFile>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM watched_file WHERE image_id IS NULL AND checksum = \
         (SELECT checksum FROM watched_file WHERE path = ?1 AND image_id IS NULL)"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let files = statement.query_map([text(path)], from_row)?;
    Ok(files.collect::<Result<_, _>>()?)
}

/// Returns the watched files of an image.
pub(crate) fn of_image(connection: &Connection, image_id: i64) -> Result<Vec<PathBuf>, Error> {
    let mut statement = connection
        .prepare_cached("SELECT path FROM watched_file WHERE image_id = ?1 ORDER BY path")?;
    let paths = statement.query_map([image_id], |row| row.get::<_, String>(0))?;
    Ok(paths
        .map(|path| path.map(PathBuf::from))
        .collect::<Result<_, _>>()?)
}

/// Assigns all files with this content to a new image, so that they are no longer dismissed.
pub(super) fn adopt(connection: &Connection, id: i64, checksum: &Checksum) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE watched_file SET image_id = ?1 WHERE checksum = ?2")?
        .execute(params![id, checksum])?;
    Ok(())
}

/// Returns the images that use files in place below a directory.
pub(crate) fn images_below(
    connection: &Connection,
    directory: &Path,
) -> Result<Vec<(i64, PathBuf)>, Error> {
    let (from, to) = directory_range(directory);
    let mut statement = connection
        .prepare_cached("SELECT id, path FROM image WHERE path > ?1 AND path < ?2 AND in_place")?;
    let rows = statement.query_map([from, to], |row| {
        Ok((row.get(0)?, PathBuf::from(row.get::<_, String>(1)?)))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the files of images in place, including other watched files with their content, and files
/// that cannot be decoded now.
pub(crate) fn files_in_place(connection: &Connection) -> Result<Vec<PathBuf>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT path FROM image WHERE in_place UNION SELECT file.path FROM watched_file AS file \
         LEFT JOIN image ON image.id = file.image_id \
         WHERE image.in_place OR file.image_id IS NULL AND file.checksum IS NULL",
    )?;
    let paths = statement.query_map([], |row| row.get::<_, String>(0).map(PathBuf::from))?;
    Ok(paths.collect::<Result<_, _>>()?)
}

/// Returns the images in place whose files are missing.
pub(crate) fn missing(connection: &Connection) -> Result<HashMap<i64, Missing>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT id, missing_since, file_size, path, \
         EXISTS (SELECT 1 FROM watched_file WHERE image_id = image.id) \
         FROM image WHERE missing_since IS NOT NULL AND in_place",
    )?;
    let missing = statement.query_map([], |row| {
        let missing = Missing {
            since: row.get(1)?,
            size: row.get::<_, i64>(2)?.unsigned_abs(),
            path: row.get::<_, String>(3)?.into(),
            has_files: row.get(4)?,
        };
        Ok((row.get(0)?, missing))
    })?;
    Ok(missing.collect::<Result<_, _>>()?)
}

/// Returns the records of the files of images that wait for a missing file, also of those that could
/// not be decoded.
pub(crate) fn waiting(connection: &Connection) -> Result<Vec<WatchedFile>, Error> {
    let missing = "FROM image WHERE missing_since IS NOT NULL AND missing_since > 0 AND in_place";
    let sql = format!(
        "SELECT {COLUMNS} FROM watched_file WHERE image_id IN (SELECT id {missing}) \
         OR path IN (SELECT path {missing}) AND image_id IS NULL AND checksum IS NULL"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let files = statement.query_map([], from_row)?;
    Ok(files.collect::<Result<_, _>>()?)
}

/// Marks the image in place that has this path as missing, unless it is the image `by`. Returns the id
/// of that image.
pub(crate) fn displace(
    connection: &Connection,
    path: &Path,
    by: i64,
    now: i64,
) -> Result<Option<i64>, Error> {
    let sql = "UPDATE image SET missing_since = ?3 \
         WHERE path = ?1 AND missing_since IS NULL AND in_place AND id <> ?2 RETURNING id";
    let mut statement = connection.prepare_cached(sql)?;
    let displaced = statement.query_row(params![text(path), by, now], |row| row.get(0));
    Ok(displaced.optional()?)
}

/// Returns the image in place that had its file at this path and is missing, if one is: the latest.
pub(crate) fn missing_at(connection: &Connection, path: &Path) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached(
        // Otherwise SQLite reads the whole table in the order of the ids.
        "SELECT id FROM image INDEXED BY image_missing \
         WHERE missing_since IS NOT NULL AND path = ?1 AND in_place ORDER BY id DESC LIMIT 1",
    )?;
    let id = statement.query_row([text(path)], |row| row.get(0));
    Ok(id.optional()?)
}

/// Starts the clock of the images that were kept because the file at this path could not be decoded.
/// Returns whether there are any.
pub(crate) fn start_clock(connection: &Connection, path: &Path, now: i64) -> Result<bool, Error> {
    let sql = "UPDATE image SET missing_since = ?2 \
         WHERE missing_since IS NOT NULL AND missing_since = 0 AND path = ?1 AND in_place";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.execute(params![text(path), now])? > 0)
}

/// Returns the empty folders that were created for watched directories.
pub(crate) fn empty_folders(connection: &Connection) -> Result<Vec<i64>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT id FROM folder WHERE watched \
         AND NOT EXISTS (SELECT 1 FROM image WHERE folder_id = folder.id) \
         AND NOT EXISTS (SELECT 1 FROM folder AS child WHERE child.parent_id = folder.id)",
    )?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<Result<_, _>>()?)
}

/// Marks a folder as created for a watched directory.
pub(crate) fn own_folder(connection: &Connection, id: i64) -> Result<(), Error> {
    connection.execute("UPDATE folder SET watched = 1 WHERE id = ?1", [id])?;
    Ok(())
}

/// Returns the folder of this name in `parent`, or in the root.
pub(crate) fn folder(
    connection: &Connection,
    name: &str,
    parent: Option<i64>,
) -> Result<Option<i64>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM folder WHERE name = ?1 AND parent_id IS ?2")?;
    Ok(statement
        .query_row(params![name, parent], |row| row.get(0))
        .optional()?)
}

/// Returns the range of paths below a directory, both ends excluded: `0` is the character after
/// `/`.
pub(super) fn directory_range(directory: &Path) -> (String, String) {
    let path = text(directory);
    let path = path.trim_end_matches('/');
    (format!("{path}/"), format!("{path}0"))
}

fn text(path: &Path) -> std::borrow::Cow<'_, str> {
    path.to_string_lossy()
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<WatchedFile> {
    Ok(WatchedFile {
        path: row.get::<_, String>(0)?.into(),
        image_id: row.get(1)?,
        checksum: row.get(2)?,
        stamp: Stamp {
            size: row.get::<_, i64>(3)?.unsigned_abs(),
            modified: row.get(4)?,
            inode: row.get::<_, i64>(5)? as u64,
            device: row.get::<_, i64>(6)? as u64,
            changed: row.get(7)?,
        },
    })
}

#[cfg(test)]
mod tests;
