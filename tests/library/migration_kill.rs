//! Kills (`kill -9`) the daemon's store at random instants of a migration. Afterwards all rows must be
//! there, and the next start completes the migration.
//!
//! The victim is this same test program, started again with `MURALD_VICTIM` set.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use murald::internals::store::migrations::{self, STEPS};
use murald::internals::store::{Connection, Store};
use rusqlite::types::Value;

use crate::desktop::wait_until;
use crate::support::kills::{self, kills, victim as victim_of};

/// The first version from which rows are migrated; all later steps are killed.
const OLD: usize = 13;

const ROWS: &str = "
    INSERT INTO folder (id, name, created_at, updated_at) VALUES (1, 'walls', 1, 1);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
    INSERT INTO image (id, name, path, media_type, format, width, height, duration, animated, audio_enabled,
        file_size, checksum, tags, colors, hue_group, folder_id, imported_at, source_path, in_place)
    SELECT i, 'image ' || i, '/w/' || i, 'image', 'png', 4, 3, 0, 0, 0, i, CAST(printf('%032d', i) AS BLOB),
        '[\"lake\"]', x'ff0080', 11, nullif(i % 2, 0), i, '/s', i % 3 = 0 FROM n;
    INSERT INTO watched_file SELECT path, id, checksum, 1, 1, 1, 1, 1 FROM image WHERE in_place;
    INSERT INTO history (image_id, image_name, monitors, mode, set_at, source, backend)
        SELECT id, name, '[]', 'clone', id, 'manual', 'feh' FROM image;
    INSERT INTO playlist (id, name, type, interval, play_order, start_first, created_at, updated_at)
        VALUES (1, 'evening', 'timer', 60, 'ordered', 0, 1, 1);
    INSERT INTO playlist_image (playlist_id, row, position, image_id) SELECT 1, id, id, id FROM image;
    INSERT INTO assignments (monitor, image_id, mode, together, backend, set_at)
        VALUES ('DP-1', 7, 'clone', '[]', 'feh', 1);";

/// Opens the database, which migrates it, until it is killed; not a test by itself.
#[test]
fn victim() {
    if let Some(directory) = std::env::var_os("MURALD_VICTIM") {
        fs::write(Path::new(&directory).join("begun"), "").unwrap();
        Store::open(&database(Path::new(&directory))).unwrap();
    }
}

#[test]
fn kill_during_a_migration_loses_no_row() {
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.sqlite3");
    let mut connection = Connection::open(&old).unwrap();
    migrations::run(&mut connection, &STEPS[..OLD]).unwrap();
    connection.execute_batch(ROWS).unwrap();
    drop(connection);
    let reset = || {
        fs::remove_dir_all(directory.path().join("db")).ok();
        fs::create_dir(directory.path().join("db")).unwrap();
        fs::copy(&old, database(directory.path())).unwrap();
    };
    reset();
    let began = Instant::now();
    let mut child = start(directory.path());
    assert!(child.wait().unwrap().success());
    let whole = began.elapsed();
    let expected = rows(directory.path());
    for table in ["image", "image_tag", "history", "playlist_image"] {
        assert_eq!(expected[table].len(), 500, "{table}");
    }
    kills(|round| {
        reset();
        let mut child = start(directory.path());
        // A random instant, so nothing can be waited for.
        std::thread::sleep(kills::instant(round, whole));
        child.kill().unwrap();
        child.wait().unwrap();
        let version = version(directory.path());
        for start in 1..=2 {
            drop(Store::open(&database(directory.path())).unwrap());
            assert_eq!(
                rows(directory.path()),
                expected,
                "round {round}, start {start}"
            );
        }
        (OLD..STEPS.len()).contains(&version)
    });
}

fn database(directory: &Path) -> PathBuf {
    directory.join("db/murald.sqlite3")
}

/// Starts the victim, and returns when it begins to migrate.
fn start(directory: &Path) -> std::process::Child {
    let begun = directory.join("begun");
    fs::remove_file(&begun).ok();
    let mut victim = victim_of("migration_kill::victim", directory);
    let child = victim.spawn().unwrap();
    wait_until("the victim's start", || begun.exists());
    child
}

fn version(directory: &Path) -> usize {
    let connection = Connection::open(database(directory)).unwrap();
    let version = connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    usize::try_from(version.unwrap()).unwrap()
}

/// All rows of all tables.
fn rows(directory: &Path) -> BTreeMap<String, Vec<String>> {
    let connection = Connection::open(database(directory)).unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    let mut names = connection.prepare(names).unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let table = |name: rusqlite::Result<String>| {
        let name = name.unwrap();
        let mut all = connection
            .prepare(&format!("SELECT * FROM {name}"))
            .unwrap();
        let columns = all.column_count();
        let row = |row: &rusqlite::Row<'_>| {
            let row: rusqlite::Result<Vec<Value>> = (0..columns).map(|at| row.get(at)).collect();
            row.map(|row| format!("{row:?}"))
        };
        let mut all: Vec<String> = all
            .query_map([], row)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        all.sort();
        (name, all)
    };
    names.map(table).collect()
}
