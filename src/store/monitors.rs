//! The monitors that murald has seen while something was set: one that comes later is new.

use rusqlite::Connection;

use super::Error;

/// Their names.
pub(crate) fn seen(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare_cached("SELECT name FROM monitor ORDER BY name")?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

pub(crate) fn note_seen(connection: &Connection, names: &[String]) -> Result<(), Error> {
    let mut statement = connection
        .prepare_cached("INSERT INTO monitor (name) VALUES (?1) ON CONFLICT DO NOTHING")?;
    for name in names {
        statement.execute([name])?;
    }
    Ok(())
}
