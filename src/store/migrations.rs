//! The tables, and the steps from each version of them to the next.

use std::collections::BTreeSet;

use rusqlite::{Connection, TransactionBehavior};

use super::Error;

/// Step `n` leads from version `n` to `n + 1`. Steps that were released never change.
pub(super) const STEPS: &[&str] = &[
    include_str!("schema.sql"),
    "ALTER TABLE loose_file RENAME TO pending_file",
    "ALTER TABLE scene RENAME TO assignments;
     DROP INDEX scene_image;
     CREATE INDEX assignments_image ON assignments (image_id);",
    "CREATE TABLE monitor (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;",
    // Filters, as JSON, of a playlist that lives.
    "ALTER TABLE playlist ADD COLUMN source TEXT",
    "ALTER TABLE image ADD COLUMN in_place INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE folder ADD COLUMN watched INTEGER NOT NULL DEFAULT 0;
     CREATE TABLE watched_file (
         path     TEXT PRIMARY KEY,
         image_id INTEGER REFERENCES image (id) ON DELETE SET NULL,
         checksum BLOB,
         size     INTEGER NOT NULL,
         modified INTEGER NOT NULL,
         inode    INTEGER NOT NULL,
         device   INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX watched_file_image ON watched_file (image_id);
     CREATE INDEX watched_file_checksum ON watched_file (checksum);",
    // The entry that a monitor has gone back to, while it goes back.
    "CREATE TABLE walk (monitor TEXT PRIMARY KEY, entry INTEGER NOT NULL) STRICT, WITHOUT ROWID;
     ALTER TABLE assignments ADD COLUMN fit TEXT;
     ALTER TABLE history ADD COLUMN fit TEXT;
     ALTER TABLE history ADD COLUMN images TEXT;",
    // A time of the day that may go by the sun, in place of minutes.
    "ALTER TABLE playlist_image ADD COLUMN at TEXT",
    "ALTER TABLE monitor ADD COLUMN seen INTEGER NOT NULL DEFAULT 1;
     ALTER TABLE monitor ADD COLUMN identity TEXT NOT NULL DEFAULT '';",
    // Light or dark, of a playlist that changes with the desktop; and what decides it, in one row.
    "ALTER TABLE playlist_image ADD COLUMN tone TEXT;
     CREATE TABLE appearance (mode TEXT NOT NULL) STRICT;",
    // Which file it is: another one may have its name by the next start. None: whichever it is.
    "ALTER TABLE pending_file ADD COLUMN size INTEGER;
     ALTER TABLE pending_file ADD COLUMN modified INTEGER;
     ALTER TABLE pending_file ADD COLUMN inode INTEGER;",
    // 0 is no file's: each is read once more, as another one may lie there by now.
    "ALTER TABLE watched_file ADD COLUMN changed INTEGER NOT NULL DEFAULT 0",
    // The deleted images that monitors last showed.
    "CREATE TABLE deleted (
         monitor  TEXT PRIMARY KEY,
         image_id INTEGER NOT NULL,
         mode     TEXT NOT NULL,
         backend  TEXT NOT NULL,
         set_at   INTEGER NOT NULL,
         fit      TEXT,
         name     TEXT NOT NULL,
         path     TEXT NOT NULL
     ) STRICT, WITHOUT ROWID",
    // Columns for searching and sorting, which `derived` writes, and the versions of the lists.
    include_str!("lists.sql"),
    // A plain colour in place of an image, by its id: below 0, as in the history.
    "CREATE TABLE shown (
         monitor  TEXT PRIMARY KEY,
         image_id INTEGER REFERENCES image (id) ON DELETE CASCADE,
         mode     TEXT NOT NULL,
         together TEXT NOT NULL,
         backend  TEXT NOT NULL,
         set_at   INTEGER NOT NULL,
         fit      TEXT,
         color_id INTEGER
     ) STRICT, WITHOUT ROWID;
     INSERT INTO shown SELECT monitor, image_id, mode, together, backend, set_at, fit, NULL FROM assignments
         WHERE image_id IN (SELECT id FROM image);
     DROP TABLE assignments;
     ALTER TABLE shown RENAME TO assignments;
     CREATE INDEX assignments_image ON assignments (image_id);",
    // The text for people who cannot see the image; empty if there is none.
    "ALTER TABLE image ADD COLUMN description TEXT NOT NULL DEFAULT ''",
    // The pictures that workspaces show on monitors in place of their assignments.
    "CREATE TABLE workspace_picture (
         monitor   TEXT PRIMARY KEY,
         workspace TEXT NOT NULL,
         image_id  INTEGER NOT NULL REFERENCES image (id) ON DELETE CASCADE,
         backend   TEXT NOT NULL,
         set_at    INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX workspace_picture_image ON workspace_picture (image_id);",
    // Tags that no image has any more go.
    "DELETE FROM tag WHERE id NOT IN (SELECT tag_id FROM image_tag);
     CREATE TRIGGER tag_unused AFTER DELETE ON image_tag
     WHEN NOT EXISTS (SELECT 1 FROM image_tag WHERE tag_id = OLD.tag_id) BEGIN
         DELETE FROM tag WHERE id = OLD.tag_id;
     END;",
    "ALTER TABLE assignments ADD COLUMN position TEXT;
     ALTER TABLE history ADD COLUMN position TEXT;
     ALTER TABLE deleted ADD COLUMN position TEXT;
     ALTER TABLE image ADD COLUMN position TEXT;",
    // As JSON; null until somebody sets it.
    "ALTER TABLE assignments ADD COLUMN sound TEXT",
    // The sound of the videos of workspaces, as JSON; kept while other workspaces are visible.
    "CREATE TABLE workspace_sound (
         workspace TEXT NOT NULL,
         image_id  INTEGER NOT NULL REFERENCES image (id) ON DELETE CASCADE,
         sound     TEXT NOT NULL,
         PRIMARY KEY (workspace, image_id)
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX workspace_sound_image ON workspace_sound (image_id);",
    // One row while the library guard is on.
    "CREATE TABLE library_guard (is_on INTEGER NOT NULL) STRICT;",
    // Whether a person wrote the description: then it stays when the file is rewritten.
    "ALTER TABLE image ADD COLUMN description_is_own INTEGER NOT NULL DEFAULT 0;
     UPDATE image SET description_is_own = 1 WHERE description <> '';",
];

/// Brings the tables up to date, each step in a transaction of its own.
pub(super) fn run(connection: &mut Connection, steps: &[&str]) -> Result<(), Error> {
    let known = steps.len() as i64;
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = version(&transaction)?;
        if found == known {
            return Ok(());
        }
        let step = usize::try_from(found).ok().and_then(|found| steps.get(found));
        let Some(step) = step else { return Err(Error::Newer { found, known }) };
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", found + 1)?;
        transaction.commit()?;
    }
}

/// Refuses tables that a later murald has written.
pub(super) fn see_known(connection: &Connection) -> Result<(), Error> {
    let (found, known) = (version(connection)?, STEPS.len() as i64);
    if found > known { Err(Error::Newer { found, known }) } else { Ok(()) }
}

/// The version of the tables; 0 where there are none.
pub(super) fn version(connection: &Connection) -> Result<i64, Error> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// The first thing in which tables and columns differ from those that the steps make: another database
/// may have the same version.
pub(super) fn difference(connection: &Connection) -> Result<Option<String>, Error> {
    let mut ours = Connection::open_in_memory()?;
    run(&mut ours, STEPS)?;
    let (ours, found) = (shape(&ours)?, shape(connection)?);
    Ok(ours.symmetric_difference(&found).next().cloned())
}

fn shape(connection: &Connection) -> Result<BTreeSet<String>, Error> {
    let mut statement = connection.prepare(
        "SELECT thing.type || ' ' || thing.name || coalesce('.' || part.name || ' ' || part.type, '')
         FROM sqlite_schema AS thing LEFT JOIN pragma_table_info(thing.name) AS part
         WHERE thing.name NOT LIKE 'sqlite_%'",
    )?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}
