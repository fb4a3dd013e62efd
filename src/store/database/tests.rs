//! Tests opening the database, its readers and its writer.

use super::*;
use crate::store::images::{self, tests::picture};
use crate::store::page::tests::names;
use crate::store::query::Query;
use crate::store::{pending_files, watched};
use crate::wire::SortBy;

/// Creates a new database, which is deleted with the directory.
pub(crate) fn scratch() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("db/murald.sqlite3")).unwrap();
    (directory, store)
}

#[test]
fn failed_transaction_changes_nothing() {
    let (_directory, store) = scratch();
    let before = store.generation();
    let failed: Result<(), Error> = store.write(|transaction| {
        transaction.execute("INSERT INTO pending_file (path) VALUES ('/x')", [])?;
        Err(Error::Damaged {
            what: "on purpose".into(),
        })
    });
    assert!(failed.is_err());
    let count: i64 = store
        .read(|c| {
            Ok::<_, Error>(c.query_row("SELECT count(*) FROM pending_file", [], |r| r.get(0))?)
        })
        .unwrap();
    assert_eq!((count, store.generation()), (0, before));
}

#[test]
fn writer_reads_if_no_reader_can_be_opened() {
    let (directory, store) = scratch();
    std::fs::remove_file(directory.path().join("db/murald.sqlite3")).unwrap();
    let count = |connection: &Connection| {
        let one = "SELECT count(*) FROM pending_file";
        connection
            .query_row(one, [], |row| row.get::<_, i64>(0))
            .map_err(Error::from)
    };
    assert_eq!(store.read(count).unwrap(), 0);
}

#[test]
fn pool_keeps_a_limited_number_of_readers() {
    let (_directory, store) = scratch();
    let kept = || lock(&store.shared.readers).len();
    // Nested reads need a reader each.
    fn nested(store: &Store, depth: usize) {
        let within = |_: &Connection| {
            if depth > 1 {
                nested(store, depth - 1);
            }
            Ok::<_, Error>(())
        };
        store.read(within).unwrap();
    }
    for (depth, expected) in [(1, 1), (3, 3), (2, 3), (READERS_KEPT + 2, READERS_KEPT)] {
        nested(&store, depth);
        assert_eq!(kept(), expected, "after {depth} at once");
    }
    store.close_idle_readers();
    assert_eq!(kept(), 0);
    nested(&store, 1);
    store.checkpoint().unwrap();
    assert_eq!(kept(), 0);
}

#[test]
fn checkpoint_empties_the_log() {
    let (_directory, store) = scratch();
    store
        .write(|c| pending_files::mark(c, Path::new("/x"), None))
        .unwrap();
    let length = || backup::log_of(&store.shared.path).metadata().unwrap().len();
    assert!(length() > 0);
    store.checkpoint().unwrap();
    assert_eq!(length(), 0);
}

#[test]
fn commits_wait_for_the_disk_except_those_of_notes() {
    let (_directory, store) = scratch();
    let mode = |c: &Connection| {
        let mode = c.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0));
        mode.map_err(Error::from)
    };
    let (full, normal) = (2, 1);
    assert_eq!(store.write(|c| mode(c)).unwrap(), full);
    assert_eq!(store.note(|c| mode(c)).unwrap(), normal);
    assert_eq!(store.write(|c| mode(c)).unwrap(), full);
    let failed: Result<(), Error> = store.note(|_| Err(Error::Damaged { what: "x".into() }));
    assert!(failed.is_err());
    assert_eq!(store.write(|c| mode(c)).unwrap(), full);
    // As if `note` had failed to restore the setting.
    store
        .flush_commits(&lock(&store.shared.writer), false)
        .unwrap();
    assert_eq!(store.write(|c| mode(c)).unwrap(), full);
}

#[test]
fn lost_database_is_reported_if_it_has_a_backup() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("murald.sqlite3");
    let warnings = || Store::open(&path).unwrap().warnings();
    assert_eq!(warnings(), [""; 0], "the first start");
    let copy = backup::make(&open_reader(&path).unwrap(), &path).unwrap();
    assert_eq!(warnings(), [""; 0]);
    for left in [None, Some(0), Some(SMALLEST as usize - 1)] {
        std::fs::remove_file(&path).unwrap();
        if let Some(length) = left {
            std::fs::write(&path, vec![0; length]).unwrap();
        }
        match Store::open(&path) {
            Ok(store) => assert!(
                store.warnings()[0].contains("a new one was created"),
                "{left:?}"
            ),
            Err(error) => assert!(error.is_damage() && left > Some(0), "{left:?}: {error:?}"),
        }
    }
    std::fs::remove_file(copy).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(warnings(), [""; 0], "there is no backup to go back to");
}

#[test]
fn failed_migration_leaves_no_backup() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("murald.sqlite3");
    drop(Store::open(&path).unwrap());
    let kept = backup::make(&open_reader(&path).unwrap(), &path).unwrap();
    // Rename it, as the next backup may be made within the same second.
    let old = kept.with_file_name("murald-20200101T000000Z.sqlite3");
    std::fs::rename(kept, &old).unwrap();
    let steps = [migrations::STEPS, &["no step"]].concat();
    for _ in 0..2 {
        assert!(Store::open_with(&path, &steps).is_err());
        assert_eq!(backup::list(&path), [old.as_path()]);
    }
}

#[test]
fn rows_of_an_older_version_are_found_in_lists() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("murald.sqlite3");
    let mut connection = Connection::open(&path).unwrap();
    // The last version without the derived columns.
    migrations::run(&mut connection, &migrations::STEPS[..13]).unwrap();
    let add = "INSERT INTO image (name, path, media_type, format, width, height, duration, animated, \
               audio_enabled, file_size, checksum, tags, colors, hue_group, imported_at, source_path) \
               VALUES ('É ' || ?1, '/l/' || ?1, 'image', 'png', 4, 3, 0, 0, 0, ?1, ?2, ?3, x'ff0080', \
               11, ?1, '/s')";
    for number in 1..=3_u8 {
        let tags = if number == 2 { r#"["Blau"]"# } else { "[]" };
        connection
            .execute(add, rusqlite::params![number, [number; 32], tags])
            .unwrap();
    }
    drop(connection);
    let check = |store: Store| {
        let find = |query: Query| store.find_all(&query).unwrap();
        let by_name = Query {
            sort_by: SortBy::Name,
            descending: false,
            ..Query::default()
        };
        assert_eq!(
            find(Query {
                search: "e\u{301}".into(),
                ..by_name
            }),
            [1, 2, 3]
        );
        assert_eq!(
            find(Query {
                tags: vec!["blau".into()],
                ..Query::default()
            }),
            [2]
        );
        assert_eq!(
            find(Query {
                colors: vec![[255, 0, 128]],
                ..Query::default()
            }),
            [3, 2, 1]
        );
        assert_eq!(store.tags().unwrap(), ["Blau"]);
    };
    for done in 13..=migrations::STEPS.len() {
        // Even after a kill between two migrations, or before the rows are filled, the next start
        // completes the work.
        let copy = directory.path().join(format!("{done}.sqlite3"));
        std::fs::copy(&path, &copy).unwrap();
        let mut killed = Connection::open(&copy).unwrap();
        migrations::run(&mut killed, &migrations::STEPS[..done]).unwrap();
        drop(killed);
        check(Store::open(&copy).unwrap());
        check(Store::open(&copy).unwrap());
    }
}

#[test]
fn index_of_texts_of_an_older_version_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("murald.sqlite3");
    let mut connection = Connection::open(&path).unwrap();
    migrations::run(&mut connection, &migrations::STEPS[..24]).unwrap();
    let index = "CREATE VIRTUAL TABLE image_search USING fts5 (words, content = 'image', \
                 content_rowid = 'id', detail = none, columnsize = 0, tokenize = 'trigram');
                 CREATE TRIGGER image_search_added AFTER INSERT ON image BEGIN
                     INSERT INTO image_search (rowid, words) VALUES (NEW.id, NEW.words);
                 END;";
    connection.execute_batch(index).unwrap();
    drop(connection);
    let store = Store::open(&path).unwrap();
    store
        .write(|c| images::insert(c, &picture("a", 1)))
        .unwrap();
    let left = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'image_search%'";
    let left = store.read(|c| Ok::<i64, Error>(c.query_row(left, [], |row| row.get(0))?));
    assert_eq!(left.unwrap(), 0);
    assert_eq!(names(&store), ["a"]);
}

#[test]
fn paths_of_missing_images_are_not_unique_after_a_migration() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("murald.sqlite3");
    let mut connection = Connection::open(&path).unwrap();
    // The last version in which such an image had a path that no file has.
    migrations::run(&mut connection, &migrations::STEPS[..31]).unwrap();
    let rows = "INSERT INTO image (id, name, path, media_type, format, width, height, duration, animated, \
                audio_enabled, file_size, checksum, tags, colors, hue_group, imported_at, source_path, \
                in_place, name_key) VALUES \
                (1, 'a', '/w/a.murald-displaced-1', 'image', 'png', 4, 3, 0, 0, 0, 1, zeroblob(32), '[]', \
                 x'', 99, 1, '/s', 1, x'61'), \
                (7, 'b', '/w/a', 'image', 'png', 4, 3, 0, 0, 0, 1, randomblob(32), '[]', x'', 99, 2, \
                 '/s', 1, x'62'), \
                (9, 'c', '/l/c', 'image', 'png', 4, 3, 0, 0, 0, 1, randomblob(32), '[]', x'', 99, 3, \
                 '/s', 0, x'63');
                DELETE FROM image WHERE id = 9;
                INSERT INTO tag VALUES (1, 'x', 'x');
                INSERT INTO image_tag VALUES (1, 1);
                INSERT INTO history (image_id, image_name, monitors, mode, set_at, source, backend) \
                VALUES (7, 'b', '[]', 'clone', 1, 'manual', 'feh');
                INSERT INTO watched_file SELECT '/w/a', 7, checksum, 1, 1, 1, 1, 1 FROM image WHERE id = 7;
                INSERT INTO watched_file SELECT '/w/z', 7, checksum, 1, 1, 1, 1, 1 FROM image WHERE id = 1;";
    connection.execute_batch(rows).unwrap();
    drop(connection);
    let store = Store::open(&path).unwrap();
    let missing = store.read(watched::missing).unwrap();
    assert_eq!(missing.keys().collect::<Vec<_>>(), [&1]);
    assert!(missing[&1].since > 0 && missing[&1].path == Path::new("/w/a"));
    let count = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        store
            .read(|c| Ok::<_, Error>(c.query_row(&sql, [], |row| row.get(0))?))
            .unwrap()
    };
    let kept = ["image", "image_tag", "tag", "history"].map(count);
    assert_eq!(kept, [2, 1, 1, 1]);
    assert_eq!(
        count("watched_file"),
        1,
        "the other file has the content of another image"
    );
    let id = store
        .write(|c| images::insert(c, &picture("d", 1)))
        .unwrap();
    assert_eq!(id, 10, "no id is used again");
}
