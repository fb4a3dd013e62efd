//! Checks a database for damage, for `murald library check` and `murald doctor`.

use std::path::Path;

use super::connection::{open_reader, problems};
use super::{Error, backup, images, migrations};
use crate::error_chain::chain;
use crate::wire::DatabaseReport;

/// Returns the first problem of a database, even while a daemon has it open.
pub(crate) fn problem(database: &Path) -> Result<Option<String>, Error> {
    let reader = open_reader(database)?;
    migrations::see_known(&reader)?;
    Ok(problems(&reader)?.into_iter().next())
}

/// Checks a database, even while a daemon has it open, and counts its images.
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
    report.problems = problems(&reader)?;
    report.images = images::count(&reader)? as usize;
    // A database of an older version lacks columns that are read below; the next start adds them.
    if migrations::version(&reader)? == migrations::STEPS.len() as i64 {
        let files = images::files(&reader)?;
        report.missing = files.iter().filter(|(_, path, _)| !path.exists()).count();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::images::tests::picture;

    #[test]
    fn check_finds_damage() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a ?#% b/murald.sqlite3");
        let store = Store::open(&path).unwrap();
        for number in 0..200 {
            let name = format!("{number:032}");
            store
                .write(|c| images::insert(c, &picture(&name, number)))
                .unwrap();
        }
        assert_eq!(problem(&path).unwrap(), None);
        store.checkpoint().unwrap();
        drop(store);
        assert_eq!((problem(&path).unwrap(), check(&path).images), (None, 200));
        // Damage a page of data. With some pages, SQLite cannot even begin.
        let bytes = std::fs::read(&path).unwrap();
        let found = (1..bytes.len() / 4096).find_map(|page| {
            let mut bytes = bytes.clone();
            bytes[page * 4096..][..4096].fill(0xa5);
            std::fs::write(&path, &bytes).unwrap();
            problem(&path).ok().flatten()
        });
        assert!(found.is_some_and(|line| !line.contains(['\n', '*'])));
        std::fs::write(&path, "no database, but text of some length").unwrap();
        assert!(problem(&path).unwrap_err().is_damage());
    }
}
