//! Files and packages in the library's directories that no row owns: not yet, or not any more.
//!
//! A note is written before a file gets its name, and in the transaction that takes away its row, so
//! that the next start can remove what a kill left. Runs in whoever's transaction it is; never
//! touches a file.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::Error;

/// Notes a file or package that no row owns (yet, or any more).
pub(crate) fn mark(connection: &Connection, path: &Path) -> Result<(), Error> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO pending_file (path) VALUES (?1)")?
        .execute([path.to_string_lossy()])?;
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
pub fn list(connection: &Connection) -> Result<Vec<PathBuf>, Error> {
    let mut statement = connection.prepare_cached("SELECT path FROM pending_file ORDER BY path")?;
    let paths = statement.query_map([], |row| row.get::<_, String>(0))?;
    Ok(paths.map(|path| path.map(PathBuf::from)).collect::<Result<_, _>>()?)
}
