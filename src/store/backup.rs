//! Makes backups of the database in the directory `backup/` beside it, and restores them.
//!
//! Three backups are kept; the newest is from the last day on which something was written. SQLite
//! itself writes a backup (`VACUUM INTO`) from one snapshot, so it is consistent even if others
//! write at the same time. It gets its name only once it is on the disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::connection::{open_reader, problems};
use super::{Error, migrations};
use crate::paths::{Replacement, TEMPORARY, flush_directory, make_directories, remove_unused};

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
    let path = directory.join(format!("{BEGINNING}{}{END}", now()));
    let failed = |source| Error::Copy {
        path: path.clone(),
        source,
    };
    make_directories(&directory).map_err(failed)?;
    // A daemon that was killed during a backup leaves half of one.
    remove_unused(&directory, |entry| !name(entry).starts_with(TEMPORARY));
    let new = Replacement::create(&path).map_err(failed)?;
    connection.execute("VACUUM INTO ?1", [new.path().to_string_lossy()])?;
    land(new, &directory).map_err(failed)?;
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
        .filter(|path| name(path).starts_with(BEGINNING) && name(path).ends_with(END))
        .collect();
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
/// renamed. The caller holds the lock of the daemon, so no other process has the database open.
pub(crate) fn restore(database: &Path, from: Option<&Path>) -> Result<Restored, Error> {
    let from = match from {
        Some(path) => expect_intact(path).map(|()| path.to_owned())?,
        None => list(database)
            .into_iter()
            .find(|path| expect_intact(path).is_ok())
            .ok_or_else(|| Error::NoBackup {
                path: directory(database),
            })?,
    };
    let failed = |source| Error::Copy {
        path: database.to_owned(),
        source,
    };
    let new = Replacement::create(database).map_err(failed)?;
    fs::copy(&from, new.path()).map_err(failed)?;
    forget_pending(new.path())?;
    let aside = set_aside(database).map_err(failed)?;
    let home = database.parent().unwrap_or(Path::new("/"));
    land(new, home).map_err(failed)?;
    Ok(Restored { from, aside })
}

/// Fails if a file is not a database of murald that SQLite can read.
fn expect_intact(path: &Path) -> Result<(), Error> {
    let look = || -> Result<Option<String>, Error> {
        let reader = open_reader(path)?;
        migrations::see_known(&reader)?;
        match migrations::version(&reader)? {
            ..1 => Ok(Some("it has no tables".to_owned())),
            _ => Ok(problems(&reader)?.into_iter().next()),
        }
    };
    let what = match look() {
        Ok(None) => return Ok(()),
        Ok(Some(what)) => what,
        Err(Error::Query(source)) => source.to_string(),
        Err(error) => return Err(error),
    };
    Err(Error::NotIntact {
        path: path.to_owned(),
        what,
    })
}

/// Removes the notes about unfinished work: their files may be those of images by now.
fn forget_pending(new: &Path) -> Result<(), Error> {
    fs::set_permissions(new, fs::Permissions::from_mode(0o600)).map_err(|source| Error::Copy {
        path: new.to_owned(),
        source,
    })?;
    let connection = Connection::open(new)?;
    connection.execute("DELETE FROM pending_file", [])?;
    Ok(())
}

/// Gives a finished file its name once its content is on the disk.
fn land(new: Replacement, directory: &Path) -> io::Result<()> {
    File::open(new.path())?.sync_all()?;
    new.land()?;
    flush_directory(directory)
}

/// The write-ahead log of a database.
pub(super) fn log_of(database: &Path) -> PathBuf {
    beside(database, "-wal")
}

/// Renames a database and its log: SQLite would apply the old log to the new database.
fn set_aside(database: &Path) -> io::Result<Option<PathBuf>> {
    let aside = free_name(database);
    let kept = fs::rename(database, &aside);
    fs::rename(log_of(database), log_of(&aside)).or_else(missing_is_fine)?;
    fs::remove_file(beside(database, "-shm")).or_else(missing_is_fine)?;
    match kept {
        Ok(()) => Ok(Some(aside)),
        Err(error) => missing_is_fine(error).map(|()| None),
    }
}

/// Returns an unused name beside the database, made of the time, and a number if necessary.
fn free_name(database: &Path) -> PathBuf {
    let wanted = beside(database, &format!(".before-{}", now()));
    let is_taken = |path: &Path| path.symlink_metadata().is_ok();
    let numbered = (1u32..).map(|number| beside(&wanted, &format!(".{number}")));
    let mut names = std::iter::once(wanted.clone()).chain(numbered);
    names
        .find(|name| !is_taken(name) && !is_taken(&log_of(name)))
        .unwrap_or(wanted)
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

fn beside(path: &Path, end: &str) -> PathBuf {
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
