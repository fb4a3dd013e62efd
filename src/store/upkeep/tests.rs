//! Tests the work of the thread `database`, without the thread.

use std::time::{Duration, Instant};

use super::*;
use crate::store::images::tests::picture;
use crate::store::tests::scratch;
use crate::store::{check, images};

#[test]
fn first_write_of_a_day_is_backed_up() {
    let (_directory, store) = scratch();
    let (spawner, deaths) = Spawner::new();
    let upkeep = start_upkeep(&store, &spawner).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    assert!(backup::list(&store.shared.path).is_empty());
    store
        .write(|c| images::insert(c, &picture("a", 1)))
        .unwrap();
    while backup::list(&store.shared.path).is_empty() {
        assert!(Instant::now() < deadline, "never backed up");
        std::thread::yield_now();
    }
    assert!(upkeep.end(deadline));
    assert!(deaths.is_empty());
}

#[test]
fn pipe_at_the_path_is_reported_without_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("library.sqlite3");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let problems = check(&path).problems;
    assert!(
        problems
            .iter()
            .any(|problem| problem.contains("not a regular file")),
        "{problems:?}"
    );
    assert!(Store::open(&path).is_err());
}

#[test]
fn damage_is_found_after_an_unclean_shutdown() {
    let (_directory, store) = scratch();
    let path = store.shared.path.clone();
    for number in 0..200 {
        let name = format!("{number:032}");
        store
            .write(|c| images::insert(c, &picture(&name, number)))
            .unwrap();
    }
    store.checkpoint().unwrap();
    drop(store);
    assert_eq!(check(&path).problems, [""; 0]);
    let (_end, ended) = bounded(0);
    let found = || {
        let store = Store::open(&path).unwrap();
        store.check_file(&ended);
        store.back_up(&ended);
        store.warnings()
    };
    assert_eq!(found(), [""; 0]);
    assert_eq!(backup::list(&path).len(), 1);
    // Damage a page of data, behind the pages that list the tables.
    let mut bytes = std::fs::read(&path).unwrap();
    let page = bytes.len() * 3 / 4 / 4096 * 4096;
    bytes[page..page + 4096].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let warnings = found();
    assert!(
        warnings[0].starts_with("the database is damaged ("),
        "{warnings:?}"
    );
    assert!(warnings[0].ends_with("`murald library restore`"));
    let problems = check(&path).problems;
    assert!(!problems.is_empty());
    assert!(
        problems.iter().all(|line| !line.contains(['\n', '*'])),
        "{problems:?}"
    );
    backup::restore(&path, None).unwrap();
    let report = check(&path);
    assert_eq!(
        (report.problems.len(), report.images, report.missing),
        (0, 200, 200)
    );
}

#[test]
fn log_without_checkpoint_means_unclean_shutdown() {
    let (_directory, store) = scratch();
    assert!(!store.shared.had_unclean_shutdown);
    store
        .write(|c| images::insert(c, &picture("a", 1)))
        .unwrap();
    let path = store.shared.path.clone();
    // While this store is open, its log exists, as after a kill.
    assert!(Store::open(&path).unwrap().shared.had_unclean_shutdown);
    store.checkpoint().unwrap();
    drop(store);
    assert!(!Store::open(&path).unwrap().shared.had_unclean_shutdown);
}

#[test]
fn work_is_aborted_at_shutdown() {
    let (_directory, store) = scratch();
    let (end, ended) = bounded(0);
    let look = || -> Result<i64, Error> {
        let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 90000) \
                    SELECT max(i) FROM n";
        let reader = store.reader_until(&ended)?;
        Ok(reader.query_row(long, [], |row| row.get(0))?)
    };
    assert_eq!(look().unwrap(), 90_000);
    drop(end);
    assert!(is_given_up(&look().unwrap_err()));
    // Aborted work is not an error and leaves no files.
    let many = "INSERT INTO pending_file (path) WITH RECURSIVE n(i) AS \
                (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n";
    store
        .write(|c| Ok::<_, Error>(c.execute(many, [])?))
        .unwrap();
    store.back_up(&ended);
    store.check_file(&ended);
    assert_eq!(store.warnings(), [""; 0]);
    assert!(backup::list(&store.shared.path).is_empty());
}

#[test]
fn failed_backup_is_reported_and_damage_is_not_backed_up() {
    let (_directory, store) = scratch();
    let (_end, ended) = bounded(0);
    let directory = store.shared.path.with_file_name("backup");
    std::fs::write(&directory, "in the way").unwrap();
    store.back_up(&ended);
    assert!(store.warnings()[0].starts_with("cannot back up the database"));
    std::fs::remove_file(&directory).unwrap();
    store.back_up(&ended);
    assert_eq!(
        (store.warnings(), backup::list(&store.shared.path).len()),
        (Vec::new(), 1)
    );
    std::fs::remove_dir_all(&directory).unwrap();
    store.note_damage("on purpose");
    assert!(store.warnings()[0].ends_with("there is no backup of it yet"));
    store.back_up(&ended);
    assert!(
        backup::list(&store.shared.path).is_empty(),
        "three old ones of what was sound"
    );
}

#[test]
fn row_that_cannot_be_read_is_damage() {
    let (_directory, store) = scratch();
    for (name, number) in [("a", 1), ("b", 2)] {
        store
            .write(|c| images::insert(c, &picture(name, number)))
            .unwrap();
    }
    let spoil = "UPDATE image SET web_meta = '{' WHERE name = 'b'";
    store
        .write(|c| Ok::<_, Error>(c.execute(spoil, [])?))
        .unwrap();
    assert!(store.read(|c| images::get(c, 1)).unwrap().is_some());
    let mut out = Vec::new();
    let write = |row: crate::wire::Image, out: &mut Vec<u8>| serde_json::to_writer(out, &row.name);
    let list = store.write_page(&crate::store::query::Query::default(), &mut out, write);
    for error in [
        store.read(|c| images::get(c, 2)).unwrap_err(),
        store.read(|c| images::by_ids(c, &[1, 2])).unwrap_err(),
        list.unwrap_err(),
    ] {
        assert!(error.is_damage(), "{error:?}");
    }
}
