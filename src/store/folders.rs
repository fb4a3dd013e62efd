//! Rows of the folder tree.

use rusqlite::Connection;

use super::Error;

/// Whether there is a folder of this id.
pub fn exists(connection: &Connection, id: i64) -> Result<bool, Error> {
    Ok(connection.prepare_cached("SELECT 1 FROM folder WHERE id = ?1")?.exists([id])?)
}
