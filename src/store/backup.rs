//! Copies of the database in `backup/` beside it, the newest of them of the last day on which
//! something was written; and the way back to one.
//!
//! A copy is written by SQLite itself (`VACUUM INTO`) from one snapshot, so it is whole whatever is
//! written meanwhile; it has its name only when it is on the disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use super::connection::{open_reader, problems};
use super::{Error, images, migrations};
use crate::paths::make_directories;

const KEPT: usize = 3;
/// The start and end of a copy's name; between is the time, so that names sort by age.
const BEGINNING: &str = "murald-";
const END: &str = ".sqlite3";

/// The backup that was restored, and the database that it replaced.
#[derive(Debug)]
pub(crate) struct Restored {
    pub from: PathBuf,
    /// The new path of the old database, if there was one.
    pub aside: Option<PathBuf>,
}

/// Copies the database that `connection` reads, and removes all copies but the newest.
pub(super) fn make(connection: &Connection, database: &Path) -> Result<PathBuf, Error> {
    let path = add(connection, database)?;
    remove_old(database, &path);
    Ok(path)
}

/// The first half of it, for whoever has to see first whether the copy is worth anything.
pub(super) fn add(connection: &Connection, database: &Path) -> Result<PathBuf, Error> {
    let directory = directory(database);
    let failed = |source| Error::Copy { path: directory.clone(), source };
    make_directories(&directory).map_err(failed)?;
    let path = directory.join(format!("{BEGINNING}{}{END}", now()));
    save(connection, &directory.join(".new"), &path)?;
    Ok(path)
}

/// The other half: `newest` is the last one.
pub(super) fn remove_old(database: &Path, newest: &Path) {
    // Clocks that were wrong once have left names that sort after all others.
    let others = list(database).into_iter().filter(|other| other != newest);
    for old in others.skip(KEPT - 1) {
        fs::remove_file(old).ok();
    }
}

/// All copies, the newest first.
pub(crate) fn list(database: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory(database)).into_iter().flatten().flatten();
    let mut copies: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| name(path).ends_with(END)).collect();
    copies.retain(|path| name(path).starts_with(BEGINNING));
    copies.sort_unstable_by(|a, b| b.cmp(a));
    copies
}

/// Whether there is a copy of today (UTC).
pub(super) fn is_of_today(database: &Path) -> bool {
    let today = format!("{BEGINNING}{}T", &now()[..8]);
    list(database).iter().any(|copy| name(copy).starts_with(&today))
}

/// Puts a copy, or the newest that is sound, in the place of the database, which is set aside.
/// Nobody may have it open: the caller holds its lock.
pub(crate) fn restore(database: &Path, from: Option<&Path>) -> Result<Restored, Error> {
    let new = beside(database, ".new");
    let restored = put_in_place(database, from, &new);
    if restored.is_err() {
        fs::remove_file(&new).ok();
    }
    restored
}

fn put_in_place(database: &Path, from: Option<&Path>, new: &Path) -> Result<Restored, Error> {
    let failed = |source| Error::Copy { path: database.to_owned(), source };
    let from = match from {
        Some(path) => match prepare(path, new)? {
            None => path.to_owned(),
            Some(what) => return Err(Error::Unsound { path: path.to_owned(), what }),
        },
        None => {
            let copies = list(database);
            let whole = copies.iter().find(|path| matches!(prepare(path, new), Ok(None)));
            // If each has lost rows, the newest is better than none.
            let found = whole.or_else(|| copies.iter().find(|path| prepare(path, new).is_ok()));
            found.ok_or_else(|| Error::NoBackup { path: directory(database) })?.to_owned()
        }
    };
    let aside = set_aside(database).map_err(failed)?;
    let home = database.parent().unwrap_or(Path::new("/"));
    fs::rename(new, database).and_then(|()| sync(home)).map_err(failed)?;
    Ok(Restored { from, aside })
}

/// Makes what can take the database's place, from a copy that is intact and whose tables are murald's.
/// Returns what is wrong with the first row that is lost.
fn prepare(from: &Path, new: &Path) -> Result<Option<String>, Error> {
    copy(&open_sound(from)?, new)?;
    let mut restored = Connection::open(new)?;
    let unsound = |what: String| Error::Unsound { path: from.to_owned(), what };
    migrations::run(&mut restored, migrations::STEPS).map_err(|error| match error {
        Error::Query(source) => unsound(source.to_string()),
        other => other,
    })?;
    if let Some(what) = migrations::difference(&restored)? {
        return Err(unsound(format!("its tables are not murald's ({what})")));
    }
    // By now they may be pictures: what no row owns is adopted, never removed.
    restored.execute("DELETE FROM pending_file", [])?;
    unreadable(&restored)
}

/// The first row that cannot be read, or refers to one that is not there.
fn unreadable(connection: &Connection) -> Result<Option<String>, Error> {
    if let Some((id, error)) = images::unreadable(connection)?.first() {
        return Ok(Some(format!("image {id} cannot be read: {error}")));
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let table = statement.query_row([], |row| row.get::<_, String>(0)).optional()?;
    Ok(table.map(|table| format!("a row of {table} refers to one that is missing")))
}

/// The write-ahead log of a database.
pub(super) fn log_of(database: &Path) -> PathBuf {
    beside(database, "-wal")
}

/// All that `connection` reads, on the disk; in the place of what an earlier try has left.
fn copy(connection: &Connection, to: &Path) -> Result<(), Error> {
    let failed = |source| Error::Copy { path: to.to_owned(), source };
    fs::remove_file(to).or_else(missing_is_fine).map_err(failed)?;
    let written = connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]);
    let written = written.map_err(Error::from).and_then(|_| settle(to).map_err(failed));
    if written.is_err() {
        fs::remove_file(to).ok();
    }
    written
}

/// Copies a database by way of `new`, so that there is never half a copy at `to`.
pub(super) fn save(connection: &Connection, new: &Path, to: &Path) -> Result<(), Error> {
    copy(connection, new)?;
    let home = to.parent().unwrap_or(Path::new("/"));
    let landed = fs::rename(new, to).and_then(|()| sync(home));
    landed.map_err(|source| Error::Copy { path: to.to_owned(), source })
}

fn settle(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.sync_all()
}

/// Gives the database another name as well, and moves its log along: that log is of the old one, and
/// would be read into the new.
fn set_aside(database: &Path) -> io::Result<Option<PathBuf>> {
    let aside = free_name_beside(database, "before");
    // A copy where the filesystem has no links.
    let kept = fs::hard_link(database, &aside).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => Err(error),
        // A directory, for example.
        _ if !database.is_file() => fs::rename(database, &aside),
        _ => fs::copy(database, &aside).map(drop),
    });
    fs::rename(log_of(database), log_of(&aside)).or_else(missing_is_fine)?;
    fs::remove_file(beside(database, "-shm")).or_else(missing_is_fine)?;
    match kept {
        Ok(()) => Ok(Some(aside)),
        Err(error) => missing_is_fine(error).map(|()| None),
    }
}

/// A name beside the database that says what and when; with a number if one of this second has it.
pub(super) fn free_name_beside(database: &Path, what: &str) -> PathBuf {
    let wanted = beside(database, &format!(".{what}-{}", now()));
    let is_taken = |path: &Path| path.symlink_metadata().is_ok();
    let numbered = (1u32..).map(|number| beside(&wanted, &format!(".{number}")));
    let mut names = std::iter::once(wanted.clone()).chain(numbered);
    names.find(|name| !is_taken(name) && !is_taken(&log_of(name))).unwrap_or(wanted)
}

/// Refuses what is no sound database of ours.
fn open_sound(path: &Path) -> Result<Connection, Error> {
    let unsound = |what: String| Error::Unsound { path: path.to_owned(), what };
    let look = |reader: &Connection| -> Result<Option<String>, Error> {
        let (found, known) = (migrations::version(reader)?, migrations::STEPS.len() as i64);
        match found {
            0 => Ok(Some("it has none of the tables".to_owned())),
            _ if found > known => Err(Error::Newer { found, known }),
            _ => Ok(problems(reader, "quick_check")?.into_iter().next()),
        }
    };
    let reader = open_reader(path)?;
    match look(&reader) {
        Ok(None) => Ok(reader),
        Ok(Some(what)) => Err(unsound(what)),
        Err(Error::Query(source)) => Err(unsound(source.to_string())),
        Err(error) => Err(error),
    }
}

fn directory(database: &Path) -> PathBuf {
    database.with_file_name("backup")
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Time of day in the zone of nobody: names that sort, whatever the summer does.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn missing_is_fine(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::images::tests::picture;
    use crate::store::{images, pending_files};

    fn count(database: &Path) -> u64 {
        let store = Store::open(database).unwrap();
        store.read(images::count).unwrap()
    }

    #[test]
    fn backup_is_whole_and_three_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("db/murald.sqlite3");
        let store = Store::open(&database).unwrap();
        store.write(|c| images::insert(c, &picture("a", 1))).unwrap();
        store.write(|c| pending_files::mark(c, Path::new("/library/later.png"), None)).unwrap();
        fs::create_dir_all(database.with_file_name("backup")).unwrap();
        for old in ["murald-20200101T000000Z.sqlite3", "murald-20200102T000000Z.sqlite3"] {
            fs::write(database.with_file_name("backup").join(old), "no database").unwrap();
        }
        fs::write(database.with_file_name("backup").join("murald-2019.sqlite3"), "").unwrap();
        // A kill in the middle leaves this.
        fs::write(database.with_file_name("backup/.new"), "half").unwrap();
        assert!(!is_of_today(&database));
        let path = store.read(|c| make(c, &database)).unwrap();
        assert!(is_of_today(&database));
        let copies = list(&database);
        assert_eq!((copies.len(), &copies[0]), (3, &path));
        assert!(copies[2].ends_with("murald-20200101T000000Z.sqlite3"));
        assert_eq!(fs::read_dir(directory.path().join("db/backup")).unwrap().count(), 3);
        // An unsound copy is skipped, or refused if it is named.
        store.write(|c| images::insert(c, &picture("b", 2))).unwrap();
        drop(store);
        fs::write(database.with_file_name("backup/murald-99990101T000000Z.sqlite3"), "x").unwrap();
        assert!(restore(&database, Some(&copies[1])).is_err());
        assert_eq!(count(&database), 2);
        let Restored { from, aside } = restore(&database, None).unwrap();
        assert_eq!((from, count(&database)), (path, 1));
        assert_eq!(count(&aside.unwrap()), 2);
        assert!(Store::open(&database).unwrap().read(pending_files::list).unwrap().is_empty());
    }

    #[test]
    fn damage_is_reported_line_by_line() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("murald.sqlite3");
        let store = Store::open(&database).unwrap();
        for number in 0..200 {
            store.write(|c| images::insert(c, &picture(&format!("p{number}"), number))).unwrap();
        }
        store.checkpoint().unwrap();
        drop(store);
        let look = || problems(&open_reader(&database).unwrap(), "integrity_check").unwrap();
        assert_eq!(look(), [""; 0]);
        // Rows and their indexes no longer agree.
        let connection = Connection::open(&database).unwrap();
        connection.pragma_update(None, "writable_schema", true).unwrap();
        let hide = "DELETE FROM sqlite_schema WHERE name = 'image_folder'";
        connection.execute(hide, []).unwrap();
        drop(connection);
        let told = look();
        assert!(!told.is_empty() && told.len() <= 10, "{told:?}");
        assert!(told.iter().all(|line| !line.starts_with("***") && line != "ok"), "{told:?}");
    }

    #[test]
    fn file_in_the_databases_place_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("murald.sqlite3");
        let store = Store::open(&database).unwrap();
        store.write(|c| images::insert(c, &picture("a", 1))).unwrap();
        let copy = store.read(|c| make(c, &database)).unwrap();
        store.checkpoint().unwrap();
        drop(store);
        fs::remove_file(&database).unwrap();
        assert!(restore(&database, None).unwrap().aside.is_none(), "there is none");
        // A log of the one that was there is not read into the new one.
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
        store.write(|c| images::insert(c, &picture("a", 1))).unwrap();
        drop(store);
        let aside: Vec<_> =
            (0..4).map(|_| restore(&database, Some(&copy)).unwrap().aside.unwrap()).collect();
        assert_eq!(aside.iter().map(|kept| count(kept)).collect::<Vec<_>>(), [1, 0, 0, 0]);
    }

    #[test]
    fn backup_that_is_none_of_ours_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("murald.sqlite3");
        drop(Store::open(&database).unwrap());
        let other = directory.path().join("other.sqlite3");
        let known = migrations::STEPS.len() as i64;
        let put = |version: i64| {
            let connection = Connection::open(&other).unwrap();
            connection.pragma_update(None, "user_version", version).unwrap();
            restore(&database, Some(&other)).unwrap_err()
        };
        assert!(matches!(put(0), Error::Unsound { .. }));
        assert!(matches!(put(known + 1), Error::Newer { .. }));
        assert!(matches!(put(-1), Error::Newer { .. }));
        fs::write(&other, "text, and no database at all").unwrap();
        let refused = restore(&database, Some(&other)).unwrap_err();
        assert!(refused.is_damage(), "{refused:?}");
        let none = restore(&database, None).unwrap_err();
        assert!(matches!(none, Error::NoBackup { .. }), "{none:?}");
        assert_eq!(count(&database), 0, "it is as it was");
    }

    #[test]
    fn look_alike_is_refused_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("db/murald.sqlite3");
        drop(Store::open(&database).unwrap());
        let other = directory.path().join("other.sqlite3");
        let check = |steps: usize, spoil: &str, says: &str| {
            fs::remove_file(&other).or_else(missing_is_fine).unwrap();
            let mut connection = Connection::open(&other).unwrap();
            migrations::run(&mut connection, &migrations::STEPS[..steps]).unwrap();
            connection.pragma_update(None, "foreign_keys", false).unwrap();
            connection.execute_batch(spoil).unwrap();
            drop(connection);
            let refused = restore(&database, Some(&other)).unwrap_err();
            assert!(refused.to_string().contains(says), "{spoil}: {refused}");
            assert_eq!(fs::read_dir(directory.path().join("db")).unwrap().count(), 1, "{spoil}");
        };
        let known = migrations::STEPS.len();
        check(0, &format!("CREATE TABLE t (a); PRAGMA user_version = {known}"), "its tables");
        check(0, "CREATE TABLE t (a); PRAGMA user_version = 3", "no such table");
        check(known, "DROP TABLE walk", "table walk");
        check(known, "ALTER TABLE image ADD COLUMN more TEXT", "image.more");
        check(known, "CREATE TRIGGER t AFTER INSERT ON image BEGIN DELETE FROM image; END", "t");
        let lost = "INSERT INTO playlist_image (playlist_id, row, position, image_id) \
                    VALUES (1, 0, 0, 1)";
        check(known, lost, "a row of playlist_image refers to");
    }

    #[test]
    fn backup_with_lost_rows_is_better_than_none() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("murald.sqlite3");
        let store = Store::open(&database).unwrap();
        store.write(|c| images::insert(c, &picture("a", 1))).unwrap();
        store.write(|c| images::insert(c, &picture("b", 2))).unwrap();
        let spoil = |c: &Connection| c.execute("UPDATE image SET web_meta = '{' WHERE id = 1", []);
        store.write(|c| spoil(c).map_err(Error::from)).unwrap();
        let copy = store.read(|c| make(c, &database)).unwrap();
        drop(store);
        let refused = restore(&database, Some(&copy)).unwrap_err();
        assert!(refused.to_string().contains("image 1 cannot be read"), "{refused}");
        assert_eq!(restore(&database, None).unwrap().from, copy);
    }
    #[test]
    fn backup_of_an_older_version_is_brought_up_to_date() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("murald.sqlite3");
        let old = directory.path().join("old.sqlite3");
        drop(Store::open(&database).unwrap());
        let mut connection = Connection::open(&old).unwrap();
        migrations::run(&mut connection, &migrations::STEPS[..14]).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        // A later step makes these tables again, and would fail on an image that is missing.
        let lost = "INSERT INTO assignments VALUES ('A', 7, 'clone', '[]', 'feh', 1, NULL)";
        connection.execute(lost, []).unwrap();
        drop(connection);
        assert_eq!(crate::store::check::check(&old).problems, [""; 0]);
        restore(&database, Some(&old)).unwrap();
        assert_eq!(count(&database), 0);
        let version = migrations::version(&open_reader(&database).unwrap()).unwrap();
        assert_eq!(version, migrations::STEPS.len() as i64);
    }

    #[test]
    fn obstacle_to_a_backup_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("murald.sqlite3");
        let store = Store::open(&database).unwrap();
        fs::create_dir_all(database.with_file_name("backup").join(".new")).unwrap();
        let error = store.read(|c| make(c, &database)).unwrap_err();
        assert!(matches!(error, Error::Copy { .. }), "{error:?}");
    }
}
