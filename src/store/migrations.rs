//! The database schema, as the migrations from each version to the next.

use rusqlite::{Connection, TransactionBehavior};

use super::Error;

/// Step `n` migrates version `n` to `n + 1`. Released steps never change.
pub const STEPS: &[&str] = &[
    include_str!("schema.sql"),
    "ALTER TABLE loose_file RENAME TO pending_file",
    "ALTER TABLE scene RENAME TO assignments;
     DROP INDEX scene_image;
     CREATE INDEX assignments_image ON assignments (image_id);",
    "CREATE TABLE monitor (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;",
    // The source of a dynamic playlist: its filters, as JSON.
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
    // The history entry that a monitor has gone back to, until its wallpaper changes otherwise.
    "CREATE TABLE walk (monitor TEXT PRIMARY KEY, entry INTEGER NOT NULL) STRICT, WITHOUT ROWID;
     ALTER TABLE assignments ADD COLUMN fit TEXT;
     ALTER TABLE history ADD COLUMN fit TEXT;
     ALTER TABLE history ADD COLUMN images TEXT;",
    // A time of day, fixed or relative to the sun; replaces a number of minutes.
    "ALTER TABLE playlist_image ADD COLUMN at TEXT",
    "ALTER TABLE monitor ADD COLUMN seen INTEGER NOT NULL DEFAULT 1;
     ALTER TABLE monitor ADD COLUMN identity TEXT NOT NULL DEFAULT '';",
    // Light or dark, for playlists that follow the appearance; and the appearance mode, one row.
    "ALTER TABLE playlist_image ADD COLUMN tone TEXT;
     CREATE TABLE appearance (mode TEXT NOT NULL) STRICT;",
    // Identify the file, as another one may have its path at the next start. Null means any file.
    "ALTER TABLE pending_file ADD COLUMN size INTEGER;
     ALTER TABLE pending_file ADD COLUMN modified INTEGER;
     ALTER TABLE pending_file ADD COLUMN inode INTEGER;",
    // The time of the inode's last change. 0 matches no file, so that each file is read once more.
    "ALTER TABLE watched_file ADD COLUMN changed INTEGER NOT NULL DEFAULT 0",
    // The deleted images that monitors showed last.
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
    // Columns for searching and sorting, filled by `derived`, and the versions of lists.
    include_str!("lists.sql"),
    // Allow plain colours in place of images, with ids below 0, as in the history.
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
    // The description of an image for people who cannot see it; may be empty.
    "ALTER TABLE image ADD COLUMN description TEXT NOT NULL DEFAULT ''",
    // The images that workspaces show on monitors instead of the monitors' assignments.
    "CREATE TABLE workspace_picture (
         monitor   TEXT PRIMARY KEY,
         workspace TEXT NOT NULL,
         image_id  INTEGER NOT NULL REFERENCES image (id) ON DELETE CASCADE,
         backend   TEXT NOT NULL,
         set_at    INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX workspace_picture_image ON workspace_picture (image_id);",
    // Remove tags when no image has them.
    "DELETE FROM tag WHERE id NOT IN (SELECT tag_id FROM image_tag);
     CREATE TRIGGER tag_unused AFTER DELETE ON image_tag
     WHEN NOT EXISTS (SELECT 1 FROM image_tag WHERE tag_id = OLD.tag_id) BEGIN
         DELETE FROM tag WHERE id = OLD.tag_id;
     END;",
    "ALTER TABLE assignments ADD COLUMN position TEXT;
     ALTER TABLE history ADD COLUMN position TEXT;
     ALTER TABLE deleted ADD COLUMN position TEXT;
     ALTER TABLE image ADD COLUMN position TEXT;",
    // JSON; null until the user sets it.
    "ALTER TABLE assignments ADD COLUMN sound TEXT",
    // The sound settings of videos on workspaces, as JSON; kept while other workspaces are visible.
    "CREATE TABLE workspace_sound (
         workspace TEXT NOT NULL,
         image_id  INTEGER NOT NULL REFERENCES image (id) ON DELETE CASCADE,
         sound     TEXT NOT NULL,
         PRIMARY KEY (workspace, image_id)
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX workspace_sound_image ON workspace_sound (image_id);",
    // Has one row while the library guard is on.
    "CREATE TABLE library_guard (is_on INTEGER NOT NULL) STRICT;",
    // Whether the user wrote the description: then it stays when the file changes.
    "ALTER TABLE image ADD COLUMN description_is_own INTEGER NOT NULL DEFAULT 0;
     UPDATE image SET description_is_own = 1 WHERE description <> '';",
    // This step made an index of the texts, which the next one removes.
    "",
    "DROP TRIGGER IF EXISTS image_search_added;
     DROP TRIGGER IF EXISTS image_search_removed;
     DROP TRIGGER IF EXISTS image_search_changed;
     DROP TABLE IF EXISTS image_search;
     ALTER TABLE library ADD COLUMN texts INTEGER NOT NULL DEFAULT 1;
     CREATE TRIGGER image_text_changed AFTER UPDATE OF words ON image WHEN NEW.words <> OLD.words BEGIN
         UPDATE library SET texts = texts + 1;
     END;",
    // Whether a file of a deleted image goes to the trash.
    "ALTER TABLE pending_file ADD COLUMN trash INTEGER NOT NULL DEFAULT 0;",
    // Lists keep no texts and no palettes in memory, so these need no versions.
    "DROP TRIGGER image_added;
     DROP TRIGGER image_removed;
     DROP TRIGGER image_changed;
     DROP TRIGGER image_recolored;
     DROP TRIGGER image_text_changed;
     ALTER TABLE library DROP COLUMN palettes;
     ALTER TABLE library DROP COLUMN texts;
     CREATE TRIGGER image_added AFTER INSERT ON image BEGIN
         UPDATE library SET lists = lists + 1;
     END;
     CREATE TRIGGER image_removed AFTER DELETE ON image BEGIN
         UPDATE library SET lists = lists + 1;
     END;
     CREATE TRIGGER image_changed AFTER UPDATE OF name, media_type, animated, width, height, file_size, checksum,
         tags, colors, hue_group, folder_id, imported_at, words, name_key, hue ON image BEGIN
         UPDATE library SET lists = lists + 1;
     END;",
    // Allow plain colours in playlists and on workspaces, as in assignments.
    "CREATE TABLE item (
         playlist_id INTEGER NOT NULL REFERENCES playlist (id) ON DELETE CASCADE,
         row         INTEGER NOT NULL,
         position    INTEGER NOT NULL,
         image_id    INTEGER REFERENCES image (id) ON DELETE CASCADE,
         color_id    INTEGER,
         time        INTEGER,
         at          TEXT,
         tone        TEXT,
         PRIMARY KEY (playlist_id, row)
     ) STRICT, WITHOUT ROWID;
     INSERT INTO item SELECT playlist_id, row, position, image_id, NULL, time, at, tone FROM playlist_image
         WHERE image_id IN (SELECT id FROM image);
     DROP TABLE playlist_image;
     ALTER TABLE item RENAME TO playlist_image;
     CREATE INDEX playlist_image_image ON playlist_image (image_id);
     CREATE TABLE shown (
         monitor   TEXT PRIMARY KEY,
         workspace TEXT NOT NULL,
         image_id  INTEGER REFERENCES image (id) ON DELETE CASCADE,
         color_id  INTEGER,
         backend   TEXT NOT NULL,
         set_at    INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;
     INSERT INTO shown SELECT monitor, workspace, image_id, NULL, backend, set_at FROM workspace_picture
         WHERE image_id IN (SELECT id FROM image);
     DROP TABLE workspace_picture;
     ALTER TABLE shown RENAME TO workspace_picture;
     CREATE INDEX workspace_picture_image ON workspace_picture (image_id);",
    // Since when the file is missing, in microseconds since 1970. Files of another directory's library
    // are no longer marked by their paths.
    "ALTER TABLE image ADD COLUMN missing_since INTEGER;
     CREATE INDEX image_missing ON image (missing_since) WHERE missing_since IS NOT NULL;
     UPDATE OR IGNORE image SET path = replace(path, '.murald-displaced-' || id, ''),
         web_meta = replace(web_meta, '.murald-displaced-' || id, '')
         WHERE NOT in_place AND path LIKE '%.murald-displaced-%';
     DROP TABLE library_guard;",
    // A monitor shows another image when its own is deleted.
    "DROP TABLE deleted",
    // Searches find folders by their names, and count what is below each.
    "CREATE INDEX folder_parent ON folder (parent_id);
     DROP TRIGGER folder_moved;
     CREATE TRIGGER folder_moved AFTER UPDATE OF name, parent_id ON folder BEGIN
         UPDATE library SET lists = lists + 1;
     END;",
    // Images whose files are missing keep their paths.
    include_str!("paths.sql"),
];

/// Applies all missing migrations, each in its own transaction.
pub fn run(connection: &mut Connection, steps: &[&str]) -> Result<(), Error> {
    // Otherwise a table that is rebuilt would take the rows with it that refer to its own.
    connection.pragma_update(None, "foreign_keys", false)?;
    let migrated = run_unchecked(connection, steps);
    connection.pragma_update(None, "foreign_keys", true)?;
    migrated
}

fn run_unchecked(connection: &mut Connection, steps: &[&str]) -> Result<(), Error> {
    let known = steps.len() as i64;
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = version(&transaction)?;
        if found == known {
            return Ok(());
        }
        let step = usize::try_from(found)
            .ok()
            .and_then(|found| steps.get(found));
        let Some(step) = step else {
            return Err(Error::Newer { found, known });
        };
        transaction.execute_batch(step)?;
        if transaction
            .prepare("PRAGMA foreign_key_check")?
            .exists([])?
        {
            let what = format!("step {found} of the migration leaves rows without those they name");
            return Err(Error::Damaged { what });
        }
        transaction.pragma_update(None, "user_version", found + 1)?;
        transaction.commit()?;
    }
}

/// Fails if a newer murald has written the database.
pub(super) fn see_known(connection: &Connection) -> Result<(), Error> {
    let (found, known) = (version(connection)?, STEPS.len() as i64);
    if found > known {
        Err(Error::Newer { found, known })
    } else {
        Ok(())
    }
}

/// Returns the version of the schema; 0 if there are no tables.
pub(super) fn version(connection: &Connection) -> Result<i64, Error> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}
