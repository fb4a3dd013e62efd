//! Checks a database: quickly and without leaving files, for `murald doctor`, or every row, for
//! `murald library check`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};

use super::connection::{give_up_when, is_given_up, open_reader, problems};
use super::{Error, backup, images, migrations};
use crate::error_chain::chain;
use crate::wire::DatabaseReport;

/// The bytes that are escaped in the path of a URI.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/');

/// The result of the check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuickCheck {
    /// There is no database yet.
    None,
    /// There is a log beside it: a process has it open, or ended without closing it.
    Open,
    Intact,
    /// The first problem.
    Damaged(String),
    /// The check did not finish before the deadline.
    TooLarge,
}

/// Checks a database that no process has open; gives up at the deadline.
pub(crate) fn quick_check(database: &Path, until: Instant) -> Result<QuickCheck, Error> {
    if !database.exists() {
        return Ok(QuickCheck::None);
    }
    // An empty log means that the database file is complete.
    if fs::metadata(backup::log_of(database)).is_ok_and(|log| log.len() > 0) {
        return Ok(QuickCheck::Open);
    }
    let failed = |source| Error::Open {
        path: database.to_owned(),
        source,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    // SQLite creates no files beside a database that is opened as `immutable`.
    let path = percent_encode(database.as_os_str().as_bytes(), ESCAPED);
    let uri = format!("file:{path}?immutable=1");
    let mut reader = Connection::open_with_flags(uri, flags).map_err(failed)?;
    migrations::see_known(&reader)?;
    give_up_when(&mut reader, move || Instant::now() > until)?;
    match problems(&reader, "quick_check") {
        Ok(problems) => Ok(problems
            .into_iter()
            .next()
            .map_or(QuickCheck::Intact, QuickCheck::Damaged)),
        Err(error) if is_given_up(&error) => Ok(QuickCheck::TooLarge),
        Err(error) => Err(error),
    }
}

/// Checks every row of a database, even while a daemon has it open.
pub(crate) fn check(database: &Path) -> DatabaseReport {
    let mut report = DatabaseReport {
        database: database.to_owned(),
        images: 0,
        missing: 0,
        problems: Vec::new(),
        backups: backup::list(database),
    };
    if let Err(error) = look(database, &mut report) {
        report.problems.push(chain(&error));
    }
    report
}

fn look(database: &Path, report: &mut DatabaseReport) -> Result<(), Error> {
    if !database.exists() {
        report
            .problems
            .push(format!("no database at {}", database.display()));
        return Ok(());
    }
    let reader = open_reader(database)?;
    migrations::see_known(&reader)?;
    report.problems = problems(&reader, "integrity_check")?;
    report.images = images::count(&reader)? as usize;
    // A database of an older version lacks columns that are read below; the next start adds them.
    if migrations::version(&reader)? < migrations::STEPS.len() as i64 {
        return Ok(());
    }
    let unreadable = images::unreadable(&reader)?.into_iter();
    let named = unreadable.map(|(id, error)| format!("image {id} cannot be read: {error}"));
    report.problems.extend(named);
    let files = images::files(&reader)?;
    report.missing = files.iter().filter(|(_, path, _)| !path.exists()).count();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::Store;
    use crate::store::images;
    use crate::store::images::tests::picture;

    #[test]
    fn quick_check_finds_damage_and_leaves_no_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a ?#% b/murald.sqlite3");
        let look = || quick_check(&path, Instant::now() + Duration::from_secs(60));
        let files = || std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(look().unwrap(), QuickCheck::None);
        let store = Store::open(&path).unwrap();
        for number in 0..200 {
            let name = format!("{number:032}");
            store
                .write(|c| images::insert(c, &picture(&name, number)))
                .unwrap();
        }
        assert_eq!(look().unwrap(), QuickCheck::Open);
        drop(store);
        assert_eq!(files(), 1, "the last one that has it open clears up");
        assert_eq!((look().unwrap(), files()), (QuickCheck::Intact, 1));
        // Damage a page of data, behind the pages that list the tables.
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
    fn quick_check_stops_at_the_deadline_and_ignores_an_empty_log() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("murald.sqlite3");
        let store = Store::open(&path).unwrap();
        let many = "INSERT INTO pending_file (path) WITH RECURSIVE n(i) AS \
                    (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n";
        store
            .write(|c| Ok::<_, Error>(c.execute(many, [])?))
            .unwrap();
        drop(store);
        std::fs::write(backup::log_of(&path), "").unwrap();
        assert_eq!(
            quick_check(&path, Instant::now()).unwrap(),
            QuickCheck::TooLarge
        );
        let later = Instant::now() + Duration::from_secs(600);
        assert_eq!(quick_check(&path, later).unwrap(), QuickCheck::Intact);
    }
}
