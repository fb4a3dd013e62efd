//! Checks a database that no process has open, within a time limit and without leaving a trace. For
//! `murald doctor`.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, OpenFlags};

use super::upkeep::{STEPS, is_given_up};
use super::{Error, backup, migrations};

/// The result of the check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuickCheck {
    /// There is no database yet.
    None,
    /// There is a log next to it: a process has it open, or did not shut down cleanly.
    Open,
    Sound,
    /// The first problem.
    Damaged(String),
    /// The check exceeded its limit.
    TooLarge,
}

/// Checks the database, until the deadline at most.
pub(crate) fn quick_check(database: &Path, until: Instant) -> Result<QuickCheck, Error> {
    if !database.exists() {
        return Ok(QuickCheck::None);
    }
    // An empty log means that the database is complete.
    if fs::metadata(backup::log_of(database)).is_ok_and(|log| log.len() > 0) {
        return Ok(QuickCheck::Open);
    }
    let failed = |source| Error::Open { path: database.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let mut reader = Connection::open_with_flags(unchanging(database), flags).map_err(failed)?;
    migrations::see_known(&reader)?;
    reader.progress_handler(STEPS, Some(move || Instant::now() > until))?;
    match backup::problems(&reader, "quick_check") {
        Ok(problems) => {
            Ok(problems.into_iter().next().map_or(QuickCheck::Sound, QuickCheck::Damaged))
        }
        Err(error) if is_given_up(&error) => Ok(QuickCheck::TooLarge),
        Err(error) => Err(error),
    }
}

/// As SQLite is told that a file does not change meanwhile: it makes no files beside it then.
fn unchanging(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(byte));
            }
            byte => write!(uri, "%{byte:02X}").expect("a String takes all"),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::Store;
    use crate::store::images;
    use crate::store::images::tests::picture;

    #[test]
    fn a_look_leaves_no_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a ?#% b/murald.sqlite3");
        let look = || quick_check(&path, Instant::now() + Duration::from_secs(60));
        let files = || std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(look().unwrap(), QuickCheck::None);
        let store = Store::open(&path).unwrap();
        for number in 0..200 {
            let name = format!("{number:032}");
            store.write(|c| images::insert(c, &picture(&name, number))).unwrap();
        }
        assert_eq!(look().unwrap(), QuickCheck::Open);
        drop(store);
        assert_eq!(files(), 1, "the last one that has it open clears up");
        assert_eq!((look().unwrap(), files()), (QuickCheck::Sound, 1));
        // A page of a tree, behind those that say what tables there are.
        let mut bytes = std::fs::read(&path).unwrap();
        let page = bytes.len() * 3 / 4 / 4096 * 4096;
        bytes[page..page + 4096].fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(look().unwrap(), QuickCheck::Damaged(_)));
        std::fs::write(&path, "no database, but text of some length").unwrap();
        assert!(look().unwrap_err().is_damage());
        assert_eq!(files(), 1);
    }
    #[test]
    fn a_look_has_an_end_and_passes_over_an_empty_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("murald.sqlite3");
        let store = Store::open(&path).unwrap();
        let many = "INSERT INTO pending_file (path) WITH RECURSIVE n(i) AS \
                    (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n";
        store.write(|c| Ok::<_, Error>(c.execute(many, [])?)).unwrap();
        drop(store);
        std::fs::write(backup::log_of(&path), "").unwrap();
        assert_eq!(quick_check(&path, Instant::now()).unwrap(), QuickCheck::TooLarge);
        let later = Instant::now() + Duration::from_secs(600);
        assert_eq!(quick_check(&path, later).unwrap(), QuickCheck::Sound);
    }
}
