//! Files and packages in the library's directories that no row owns: not yet, or not any more.
//!
//! A note is written before a file gets its name, and in the transaction that takes away its row, so
//! that the next start can remove what a kill left. It says which file it was, where that can be told:
//! by then somebody may have given the name to another. Runs in whoever's transaction it is; never
//! touches a file.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use super::Error;
use super::watched::Stamp;

/// A file that was noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub path: PathBuf,
    /// None: whichever file has that name.
    pub(crate) stamp: Option<Stamp>,
}

/// Notes a file or package that no row owns (yet, or any more), or of one that is noted which it is.
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

/// Takes it off the list: a row owns it now, or it is gone from the disk.
pub(crate) fn unmark(connection: &Connection, path: &Path) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM pending_file WHERE path = ?1")?
        .execute([path.to_string_lossy()])?;
    Ok(())
}

/// Whether it is on the list.
pub(crate) fn has(connection: &Connection, path: &Path) -> Result<bool, Error> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM pending_file WHERE path = ?1")?;
    Ok(statement.exists([path.to_string_lossy()])?)
}

/// All of them, in the order of their paths.
pub fn list(connection: &Connection) -> Result<Vec<Pending>, Error> {
    let mut statement = connection
        .prepare_cached("SELECT path, size, modified, inode FROM pending_file ORDER BY path")?;
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
        Ok(Pending { path: row.get::<_, String>(0)?.into(), stamp })
    })?;
    Ok(notes.collect::<Result<_, _>>()?)
}
