//! What monitors showed whose images were deleted: it stays on the screen until something else is
//! shown there. Runs in whoever's transaction it is.

use std::path::PathBuf;

use rusqlite::{Connection, Row};

use super::Error;
use super::assignments::Assignment;
use super::row::{self, optional_word, word};
use crate::wire::Timestamp;

/// A monitor's last wallpaper, of which there is no row any more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deleted {
    pub shown: Assignment,
    pub name: String,
    pub path: PathBuf,
}

/// Notes what monitors show that are about to lose their assignment with an image.
pub(super) fn note(connection: &Connection, image_id: i64) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO deleted \
             SELECT monitor, image_id, mode, backend, set_at, fit, name, path \
             FROM assignments JOIN image ON image.id = image_id \
             WHERE image_id = ?1 AND substr(monitor, 1, 1) NOT IN ('*', '@')",
        )?
        .execute([image_id])?;
    Ok(())
}

/// Of each monitor the last; that it is shown still, its backend must say.
pub(crate) fn all(connection: &Connection) -> Result<Vec<Deleted>, Error> {
    let mut statement = connection.prepare_cached("SELECT * FROM deleted")?;
    row::readable(statement.query([])?, from_row)
}

fn from_row(row: &Row<'_>) -> Result<Deleted, Error> {
    let shown = Assignment {
        monitor: row.get(0)?,
        image_id: row.get(1)?,
        mode: word(row, 2)?,
        together: Vec::new(),
        backend: row.get(3)?,
        set_at: Timestamp::from_micros(row.get(4)?),
        fit: optional_word(row, 5)?,
    };
    Ok(Deleted { shown, name: row.get(6)?, path: row.get::<_, String>(7)?.into() })
}
