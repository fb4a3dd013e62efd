//! Makes backups of the database in the directory `backup/` beside it, and restores them.
//!
//! Three backups are kept; the newest is from the last day on which something was written. SQLite
//! itself writes a backup (`VACUUM INTO`) from one snapshot, so it is consistent even if others
//! write at the same time. It gets its name only once it is on the disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use super::connection::{open_reader, problems};
use super::{Error, images, migrations};
use crate::paths::make_directories;

const KEPT: usize = 3;
/// Prefix and suffix of a backup's name. The time between them makes names sort by age.
const BEGINNING: &str = "murald-";
const END: &str = ".sqlite3";

/// The backup that was restored, and the database that it replaced.
#[derive(Debug)]
pub(crate) struct Restored {
    pub from: PathBuf,
    /// The new path of the old database, if there was one.
    pub aside: Option<PathBuf>,
}

/// Backs up the database that `connection` reads, and removes all but the three newest backups.
pub(super) fn make(connection: &Connection, database: &Path) -> Result<PathBuf, Error> {
    let path = add(connection, database)?;
    remove_old(database, &path);
    Ok(path)
}

/// Adds a backup without removing old ones, for callers that must first see if it is worth keeping.
pub(super) fn add(connection: &Connection, database: &Path) -> Result<PathBuf, Error> {
    let directory = directory(database);
    let failed = |source| Error::Copy {
        path: directory.clone(),
        source,
    };
    make_directories(&directory).map_err(failed)?;
    let path = directory.join(format!("{BEGINNING}{}{END}", now()));
    save(connection, &directory.join(".new"), &path)?;
    Ok(path)
}

/// Removes old backups; `newest` is kept whatever its name.
pub(super) fn remove_old(database: &Path, newest: &Path) {
    // If the clock was wrong once, the name of an old backup may sort after all others.
    let others = list(database).into_iter().filter(|other| other != newest);
    for old in others.skip(KEPT - 1) {
        fs::remove_file(old).ok();
    }
}

/// Returns all backups, the newest first.
pub(crate) fn list(database: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory(database))
        .into_iter()
        .flatten()
        .flatten();
    let mut copies: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| name(path).ends_with(END))
        .collect();
    copies.retain(|path| name(path).starts_with(BEGINNING));
    copies.sort_unstable_by(|a, b| b.cmp(a));
    copies
}

/// Whether there is a backup from today (UTC).
pub(super) fn is_of_today(database: &Path) -> bool {
    let today = format!("{BEGINNING}{}T", &now()[..8]);
    list(database)
        .iter()
        .any(|copy| name(copy).starts_with(&today))
}

/// Replaces the database with the backup `from`, or with the newest intact one; the old database is
/// renamed. The caller holds the lock of the daemon, so nobody else has the database open.
pub(crate) fn restore(database: &Path, from: Option<&Path>) -> Result<Restored, Error> {
    let new = beside(database, ".new");
    let restored = put_in_place(database, from, &new);
    if restored.is_err() {
        fs::remove_file(&new).ok();
    }
    restored
}

fn put_in_place(database: &Path, from: Option<&Path>, new: &Path) -> Result<Restored, Error> {
    let failed = |source| Error::Copy {
        path: database.to_owned(),
        source,
    };
    let from = match from {
        Some(path) => match prepare(path, new)? {
            None => path.to_owned(),
            Some(what) => {
                return Err(Error::NotIntact {
                    path: path.to_owned(),
                    what,
                });
            }
        },
        None => {
            let copies = list(database);
            let whole = copies
                .iter()
                .find(|path| matches!(prepare(path, new), Ok(None)));
            // If all backups have lost rows, the newest is better than none.
            let found = whole.or_else(|| copies.iter().find(|path| prepare(path, new).is_ok()));
            found
                .ok_or_else(|| Error::NoBackup {
                    path: directory(database),
                })?
                .to_owned()
        }
    };
    let aside = set_aside(database).map_err(failed)?;
    let home = database.parent().unwrap_or(Path::new("/"));
    fs::rename(new, database)
        .and_then(|()| sync(home))
        .map_err(failed)?;
    Ok(Restored { from, aside })
}

/// Writes a database to `new` from a backup that is intact and has murald's tables. Returns a
/// description of the first lost row, if any.
fn prepare(from: &Path, new: &Path) -> Result<Option<String>, Error> {
    copy(&open_intact(from)?, new)?;
    let mut restored = Connection::open(new)?;
    let not_intact = |what: String| Error::NotIntact {
        path: from.to_owned(),
        what,
    };
    migrations::run(&mut restored, migrations::STEPS).map_err(|error| match error {
        Error::Query(source) => not_intact(source.to_string()),
        other => other,
    })?;
    if let Some(what) = migrations::difference(&restored)? {
        return Err(not_intact(format!(
            "its tables differ from murald's ({what})"
        )));
    }
    // These files may be images by now: files without a row are adopted, never removed.
    restored.execute("DELETE FROM pending_file", [])?;
    unreadable(&restored)
}

/// Describes the first row that cannot be read or refers to a missing row.
fn unreadable(connection: &Connection) -> Result<Option<String>, Error> {
    if let Some((id, error)) = images::unreadable(connection)?.first() {
        return Ok(Some(format!("image {id} cannot be read: {error}")));
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let table = statement
        .query_row([], |row| row.get::<_, String>(0))
        .optional()?;
    Ok(table.map(|table| format!("a row of {table} refers to a missing row")))
}

/// The write-ahead log of a database.
pub(super) fn log_of(database: &Path) -> PathBuf {
    beside(database, "-wal")
}

/// Writes all that `connection` reads to `to` and syncs it; a file left there by an earlier attempt
/// is replaced.
fn copy(connection: &Connection, to: &Path) -> Result<(), Error> {
    let failed = |source| Error::Copy {
        path: to.to_owned(),
        source,
    };
    fs::remove_file(to)
        .or_else(missing_is_fine)
        .map_err(failed)?;
    let written = connection.execute("VACUUM INTO ?1", [to.to_string_lossy()]);
    let written = written
        .map_err(Error::from)
        .and_then(|_| settle(to).map_err(failed));
    if written.is_err() {
        fs::remove_file(to).ok();
    }
    written
}

/// Copies a database to `new` and renames it to `to`, so that `to` is never half a copy.
pub(super) fn save(connection: &Connection, new: &Path, to: &Path) -> Result<(), Error> {
    copy(connection, new)?;
    let home = to.parent().unwrap_or(Path::new("/"));
    let landed = fs::rename(new, to).and_then(|()| sync(home));
    landed.map_err(|source| Error::Copy {
        path: to.to_owned(),
        source,
    })
}

fn settle(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.sync_all()
}

/// Gives the database another name as well, and renames its log: otherwise SQLite would apply the
/// old log to the new database.
fn set_aside(database: &Path) -> io::Result<Option<PathBuf>> {
    let aside = free_name_beside(database, "before");
    // Copies the file if the filesystem has no hard links.
    let kept = fs::hard_link(database, &aside).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => Err(error),
        // It is a directory, for example.
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

/// Returns an unused name beside the database, made of `what`, the time, and a number if necessary.
pub(super) fn free_name_beside(database: &Path, what: &str) -> PathBuf {
    let wanted = beside(database, &format!(".{what}-{}", now()));
    let is_taken = |path: &Path| path.symlink_metadata().is_ok();
    let numbered = (1u32..).map(|number| beside(&wanted, &format!(".{number}")));
    let mut names = std::iter::once(wanted.clone()).chain(numbered);
    names
        .find(|name| !is_taken(name) && !is_taken(&log_of(name)))
        .unwrap_or(wanted)
}

/// Opens a database for reading; fails if it is damaged or not murald's.
fn open_intact(path: &Path) -> Result<Connection, Error> {
    let not_intact = |what: String| Error::NotIntact {
        path: path.to_owned(),
        what,
    };
    let look = |reader: &Connection| -> Result<Option<String>, Error> {
        let (found, known) = (migrations::version(reader)?, migrations::STEPS.len() as i64);
        match found {
            0 => Ok(Some("it has no tables".to_owned())),
            _ if found > known => Err(Error::Newer { found, known }),
            _ => Ok(problems(reader, "quick_check")?.into_iter().next()),
        }
    };
    let reader = open_reader(path)?;
    match look(&reader) {
        Ok(None) => Ok(reader),
        Ok(Some(what)) => Err(not_intact(what)),
        Err(Error::Query(source)) => Err(not_intact(source.to_string())),
        Err(error) => Err(error),
    }
}

fn directory(database: &Path) -> PathBuf {
    database.with_file_name("backup")
}

fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// The time in UTC, so that names sort by age whatever the time zone.
fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y%m%dT%H%M%SZ")
        .to_string()
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
mod tests;
