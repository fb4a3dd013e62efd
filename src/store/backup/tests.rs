//! Tests backups of a real database, and restoring them.

use super::*;
use crate::store::Store;
use crate::store::images::tests::picture;
use crate::store::{images, pending_files};

fn count(database: &Path) -> u64 {
    let store = Store::open(database).unwrap();
    store.read(images::count).unwrap()
}

#[test]
fn backup_is_complete_and_three_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("db/murald.sqlite3");
    let store = Store::open(&database).unwrap();
    store
        .write(|c| images::insert(c, &picture("a", 1)))
        .unwrap();
    store
        .write(|c| pending_files::mark(c, Path::new("/library/later.png"), None))
        .unwrap();
    fs::create_dir_all(database.with_file_name("backup")).unwrap();
    for old in [
        "murald-20200101T000000Z.sqlite3",
        "murald-20200102T000000Z.sqlite3",
    ] {
        fs::write(database.with_file_name("backup").join(old), "no database").unwrap();
    }
    fs::write(
        database
            .with_file_name("backup")
            .join("murald-2019.sqlite3"),
        "",
    )
    .unwrap();
    // A daemon that was killed during a backup leaves this file.
    let half = "backup/.new-murald-20200101T000000Z.sqlite3";
    fs::write(database.with_file_name(half), "half").unwrap();
    assert!(!is_of_today(&database));
    let path = store.read(|c| make(c, &database)).unwrap();
    assert!(is_of_today(&database));
    let copies = list(&database);
    assert_eq!((copies.len(), &copies[0]), (3, &path));
    assert!(copies[2].ends_with("murald-20200101T000000Z.sqlite3"));
    assert_eq!(
        fs::read_dir(directory.path().join("db/backup"))
            .unwrap()
            .count(),
        3
    );
    // A damaged backup is skipped, or refused if it is named.
    store
        .write(|c| images::insert(c, &picture("b", 2)))
        .unwrap();
    drop(store);
    fs::write(
        database.with_file_name("backup/murald-99990101T000000Z.sqlite3"),
        "x",
    )
    .unwrap();
    assert!(restore(&database, Some(&copies[1])).is_err());
    assert_eq!(count(&database), 2);
    let Restored { from, aside } = restore(&database, None).unwrap();
    assert_eq!((from, count(&database)), (path, 1));
    assert_eq!(count(&aside.unwrap()), 2);
    assert!(
        Store::open(&database)
            .unwrap()
            .read(pending_files::list)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn restore_sets_aside_the_old_database_its_log_or_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("murald.sqlite3");
    let store = Store::open(&database).unwrap();
    store
        .write(|c| images::insert(c, &picture("a", 1)))
        .unwrap();
    let copy = store.read(|c| make(c, &database)).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    fs::remove_file(&database).unwrap();
    assert!(
        restore(&database, None).unwrap().aside.is_none(),
        "there is none"
    );
    // The log of the earlier database is not applied to the new one.
    fs::write(log_of(&database), "its log").unwrap();
    let aside = restore(&database, Some(&copy)).unwrap().aside.unwrap();
    assert_eq!(fs::read(log_of(&aside)).unwrap(), b"its log");
    assert!(!log_of(&database).exists());
    assert_eq!(count(&database), 1);
    fs::remove_file(&database).unwrap();
    fs::remove_file(&aside).unwrap();
    fs::remove_file(log_of(&aside)).unwrap();
    fs::create_dir(&database).unwrap();
    fs::write(database.join("in it"), "").unwrap();
    let aside = restore(&database, Some(&copy)).unwrap().aside.unwrap();
    assert!(aside.join("in it").exists(), "a directory is moved whole");
    assert_eq!(count(&database), 1);
    let mode = fs::metadata(&database).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
}

#[test]
fn file_set_aside_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("murald.sqlite3");
    let store = Store::open(&database).unwrap();
    let copy = store.read(|c| make(c, &database)).unwrap();
    store
        .write(|c| images::insert(c, &picture("a", 1)))
        .unwrap();
    drop(store);
    let aside: Vec<_> = (0..4)
        .map(|_| restore(&database, Some(&copy)).unwrap().aside.unwrap())
        .collect();
    assert_eq!(
        aside.iter().map(|kept| count(kept)).collect::<Vec<_>>(),
        [1, 0, 0, 0]
    );
}

#[test]
fn restore_refuses_files_that_are_not_murald_databases() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("murald.sqlite3");
    drop(Store::open(&database).unwrap());
    let other = directory.path().join("other.sqlite3");
    let known = migrations::STEPS.len() as i64;
    let put = |version: i64| {
        let connection = Connection::open(&other).unwrap();
        connection
            .pragma_update(None, "user_version", version)
            .unwrap();
        restore(&database, Some(&other)).unwrap_err()
    };
    assert!(matches!(put(0), Error::NotIntact { .. }));
    assert!(matches!(put(known + 1), Error::Newer { .. }));
    assert!(matches!(put(-1), Error::NotIntact { .. }));
    fs::write(&other, "text, and no database at all").unwrap();
    let refused = restore(&database, Some(&other)).unwrap_err();
    assert!(refused.is_damage(), "{refused:?}");
    let none = restore(&database, None).unwrap_err();
    assert!(matches!(none, Error::NoBackup { .. }), "{none:?}");
    assert_eq!(count(&database), 0, "it is as it was");
}

#[test]
fn restored_backup_of_an_older_version_is_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("murald.sqlite3");
    let old = directory.path().join("old.sqlite3");
    drop(Store::open(&database).unwrap());
    let mut connection = Connection::open(&old).unwrap();
    migrations::run(&mut connection, &migrations::STEPS[..14]).unwrap();
    drop(connection);
    assert_eq!(crate::store::check::check(&old).problems, [""; 0]);
    restore(&database, Some(&old)).unwrap();
    assert_eq!(count(&database), 0);
    let version = migrations::version(&open_reader(&database).unwrap()).unwrap();
    assert_eq!(version, migrations::STEPS.len() as i64);
}

#[test]
fn backup_reports_a_path_that_it_cannot_write() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("murald.sqlite3");
    let store = Store::open(&database).unwrap();
    fs::write(database.with_file_name("backup"), "").unwrap();
    let error = store.read(|c| make(c, &database)).unwrap_err();
    assert!(matches!(error, Error::Copy { .. }), "{error:?}");
}
