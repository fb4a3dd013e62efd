//! Where monitors stand that go back through what they showed: at an entry of the history. Any other
//! change ends it.

use rusqlite::{Connection, OptionalExtension};

use super::Error;

/// The entry that a monitor has gone back to.
pub(crate) fn place(connection: &Connection, monitor: &str) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached("SELECT entry FROM walk WHERE monitor = ?1")?;
    Ok(statement.query_row([monitor], |row| row.get(0)).optional()?)
}

pub(crate) fn put(connection: &Connection, monitor: &str, entry: i64) -> Result<(), Error> {
    let sql = "INSERT INTO walk (monitor, entry) VALUES (?1, ?2) \
               ON CONFLICT (monitor) DO UPDATE SET entry = excluded.entry";
    connection.prepare_cached(sql)?.execute((monitor, entry))?;
    Ok(())
}

pub(crate) fn end(connection: &Connection, monitor: &str) -> Result<(), Error> {
    connection.prepare_cached("DELETE FROM walk WHERE monitor = ?1")?.execute([monitor])?;
    Ok(())
}

pub(super) fn end_all(connection: &Connection) -> Result<(), Error> {
    connection.execute("DELETE FROM walk", [])?;
    Ok(())
}
