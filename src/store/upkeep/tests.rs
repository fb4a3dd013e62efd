//! Tests the work of the thread `database`, without the thread.

use std::path::Path;

use super::*;
use crate::store::check;
use crate::store::images::tests::picture;
use crate::store::page::tests::names;
use crate::store::query::Query;
use crate::store::tests::scratch;

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
        store.check_after_unclean_shutdown(&ended).unwrap();
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
fn unreadable_row_is_skipped_with_a_warning() {
    let (_directory, store) = scratch();
    for (name, number) in [("a", 1), ("b", 2), ("c", 3)] {
        store
            .write(|c| images::insert(c, &picture(name, number)))
            .unwrap();
    }
    let names = || names(&store).concat();
    assert_eq!(names(), "cba");
    let spoil = |sql: &str| {
        store
            .write(|c| Ok::<_, Error>(c.execute(sql, [])?))
            .unwrap()
    };
    spoil("UPDATE image SET web_meta = '{' WHERE name = 'b'");
    assert_eq!(names(), "ca");
    spoil("UPDATE image SET tags = 'x' WHERE name = 'c'");
    assert_eq!(names(), "a");
    assert!(store.warnings()[0].starts_with("2 of the library's images cannot be read"));
    let report = check(&store.shared.path);
    assert_eq!(report.problems.len(), 2, "{report:?}");
    assert_eq!(
        store.read(images::files).unwrap().len(),
        2,
        "b has a place that nobody knows"
    );
    for owned in ["/library/b.png", "/library"] {
        assert!(
            store
                .read(|c| images::has_path(c, Path::new(owned)))
                .unwrap(),
            "{owned}"
        );
    }
    assert!(
        !store
            .read(|c| images::has_path(c, Path::new("/lib")))
            .unwrap()
    );
    // The next start finds the rows before a client lists them.
    let next = Store::open(&store.shared.path).unwrap();
    next.look_for_unreadable();
    assert!(next.warnings()[0].starts_with("2 of the library's images cannot be read"));
    assert_eq!(next.find_all(&Query::default()).unwrap(), [1]);
    // Repaired rows are in lists again.
    spoil("UPDATE image SET tags = '[]', web_meta = NULL");
    assert_eq!(names(), "cba");
    assert!(store.warnings().is_empty());
}
#[test]
fn work_is_aborted_at_shutdown_and_at_its_deadline() {
    let (_directory, store) = scratch();
    let many = "INSERT INTO pending_file (path) WITH RECURSIVE n(i) AS \
                (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n";
    store
        .write(|c| Ok::<_, Error>(c.execute(many, [])?))
        .unwrap();
    let (end, ended) = bounded(0);
    let look = |until| -> Result<i64, Error> {
        let long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 90000) \
                    SELECT max(i) FROM n";
        let reader = store.reader_until(&ended, until)?;
        Ok(reader.query_row(long, [], |row| row.get(0))?)
    };
    let later = Some(Instant::now() + Duration::from_secs(600));
    assert_eq!(
        (look(None).unwrap(), look(later).unwrap()),
        (90_000, 90_000)
    );
    assert!(is_given_up(&look(Some(Instant::now())).unwrap_err()));
    drop(end);
    for until in [None, later] {
        assert!(is_given_up(&look(until).unwrap_err()));
    }
    // Aborted work is not an error and leaves no files.
    store.back_up(&ended);
    store.check_after_unclean_shutdown(&ended).unwrap();
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
fn only_damage_is_reported_as_damage() {
    let look_at = |damaged: bool, look: &dyn Fn(&Store)| {
        let (_directory, store) = scratch();
        for number in 0..200 {
            let name = format!("{number:032}");
            store
                .write(|c| images::insert(c, &picture(&name, number)))
                .unwrap();
        }
        let path = store.shared.path.clone();
        if damaged {
            store.checkpoint().unwrap();
            drop(store);
            let mut bytes = std::fs::read(&path).unwrap();
            let page = bytes.len() * 3 / 4 / 4096 * 4096;
            bytes[page..page + 4096].fill(0xa5);
            std::fs::write(&path, bytes).unwrap();
            let store = Store::open(&path).unwrap();
            look(&store);
            return store.warnings();
        }
        let gone = "ALTER TABLE image RENAME TO was";
        store
            .write(|c| Ok::<_, Error>(c.execute(gone, [])?))
            .unwrap();
        look(&store);
        store.warnings()
    };
    let (_end, ended) = bounded(0);
    let warned = look_at(true, &|store| store.back_up(&ended));
    assert!(
        warned[0].starts_with("the database is damaged ("),
        "{warned:?}"
    );
    assert_eq!(
        look_at(false, &|store| store.look_for_unreadable()),
        [""; 0]
    );
}
