//! The history entry that each monitor has gone back to. Any other change removes it.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::scratch;

    #[test]
    fn monitor_has_a_place_until_it_ends() {
        let (_directory, store) = scratch();
        let places = || ["A", "B"].map(|monitor| store.read(|c| place(c, monitor)).unwrap());
        assert_eq!(places(), [None, None]);
        for (monitor, entry) in [("A", 7), ("B", 9), ("A", 5)] {
            store.write(|c| put(c, monitor, entry)).unwrap();
        }
        assert_eq!(places(), [Some(5), Some(9)]);
        store.write(|c| end(c, "A")).unwrap();
        assert_eq!(places(), [None, Some(9)]);
        store.write(|c| end_all(c)).unwrap();
        assert_eq!(places(), [None, None]);
    }
}
