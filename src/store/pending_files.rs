//! Records files and packages in the library's directories that have no row yet, or no longer.
//!
//! A file is recorded before it gets its final name, or in the transaction that removes its row, so
//! that the next start can remove what a killed daemon left. The record includes the file's stamp
//! if known, as another file may have its name by then.
//!
//! The functions run in the caller's transaction and touch no file.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use super::Error;
use super::watched::Stamp;

/// A recorded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub path: PathBuf,
    /// `None`: any file of this name.
    pub(crate) stamp: Option<Stamp>,
    /// Whether it goes to the trash.
    pub(crate) trash: bool,
}

/// Records a file or package without a row, or updates the stamp of a recorded one.
pub(crate) fn mark(
    connection: &Connection,
    path: &Path,
    stamp: Option<&Stamp>,
) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO pending_file (path, size, modified, inode) \
             VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            path.to_string_lossy(),
            stamp.map(|stamp| stamp.size as i64),
            stamp.map(|stamp| stamp.modified),
            stamp.map(|stamp| stamp.inode as i64),
        ])?;
    Ok(())
}

/// Records a file of a deleted image, which is to be removed or moved to the trash.
pub(crate) fn mark_removed(
    connection: &Connection,
    path: &Path,
    stamp: &Stamp,
    trash: bool,
) -> Result<(), Error> {
    mark(connection, path, Some(stamp))?;
    connection
        .prepare_cached("UPDATE pending_file SET trash = ?2 WHERE path = ?1")?
        .execute(params![path.to_string_lossy(), trash])?;
    Ok(())
}

/// Removes the record, because the file has a row now or no longer exists.
pub(crate) fn unmark(connection: &Connection, path: &Path) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM pending_file WHERE path = ?1")?
        .execute([path.to_string_lossy()])?;
    Ok(())
}

/// Whether the path is recorded.
pub(crate) fn has(connection: &Connection, path: &Path) -> Result<bool, Error> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM pending_file WHERE path = ?1")?;
    Ok(statement.exists([path.to_string_lossy()])?)
}

/// Returns all records, sorted by path.
pub fn list(connection: &Connection) -> Result<Vec<Pending>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT path, size, modified, inode, trash FROM pending_file ORDER BY path",
    )?;
    let notes = statement.query_map([], |row| {
        let stamp = match (row.get::<_, Option<i64>>(1)?, row.get(2)?, row.get(3)?) {
            (Some(size), Some(modified), Some(inode)) => Some(Stamp {
                size: size as u64,
                modified,
                inode: i64::cast_unsigned(inode),
                ..Stamp::default()
            }),
            _ => None,
        };
        Ok(Pending {
            path: row.get::<_, String>(0)?.into(),
            stamp,
            trash: row.get(4)?,
        })
    })?;
    Ok(notes.collect::<Result<_, _>>()?)
}
