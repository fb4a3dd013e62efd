//! Stores the appearance mode: light, dark, or automatic.

use rusqlite::{Connection, OptionalExtension};

use super::Error;
use super::row::word;
use crate::wire::AppearanceMode;

/// Returns the mode set last; `Auto` if none was set.
pub(crate) fn mode(connection: &Connection) -> Result<AppearanceMode, Error> {
    let mut statement = connection.prepare_cached("SELECT mode FROM appearance")?;
    let found = statement
        .query_row([], |row| Ok(word(row, 0)))
        .optional()?
        .transpose()?;
    Ok(found.unwrap_or(AppearanceMode::Auto))
}

pub(crate) fn set(connection: &Connection, mode: AppearanceMode) -> Result<(), Error> {
    connection.execute("DELETE FROM appearance", [])?;
    connection.execute("INSERT INTO appearance (mode) VALUES (?1)", [mode.as_str()])?;
    Ok(())
}
