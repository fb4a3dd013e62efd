//! Checks whether the database's path still leads to the file that SQLite has open, and saves a
//! copy if not: SQLite continues to use a deleted file, whose content is lost when the daemon
//! stops.
//!
//! The check runs after each commit and before a reader is opened. The thread `database` makes the
//! copy, and the shutdown makes another if necessary. The file that is now at the path is never
//! overwritten.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rusqlite::Connection;

use super::{Error, backup};
use crate::error_chain::chain;
use crate::paths::make_directories;
use crate::sys::lock;
use crate::wire::{DatabaseHealth, DatabaseState};

const WHAT: &str = "the database was deleted or replaced while murald was running";

/// Device and inode of the file at a path; `None` if there is no file.
type Identity = Option<(u64, u64)>;

/// The database and its log as they were when opened.
pub(super) struct OpenFile {
    path: PathBuf,
    opened: [(PathBuf, Identity); 2],
    replaced: Mutex<Option<Replaced>>,
}

/// The state of a database that is no longer at its path.
#[derive(Default)]
struct Replaced {
    /// There were commits since the last copy.
    has_unsaved: bool,
    saved: Option<PathBuf>,
    /// The reason why the last copy failed.
    failed: Option<String>,
}

impl OpenFile {
    pub(super) fn of(database: &Path) -> Self {
        let opened = [database.to_owned(), backup::log_of(database)].map(|path| {
            let file = identity(&path).unwrap_or_default();
            (path, file)
        });
        Self {
            path: database.to_owned(),
            opened,
            replaced: Mutex::default(),
        }
    }

    /// Whether the paths still lead to the open files. If not, and there are commits since the last
    /// copy, calls `save`, which must not block.
    pub(super) fn is_in_place(&self, has_committed: bool, save: impl FnOnce()) -> bool {
        // If the path cannot be checked, assume that the file is in place.
        let mut files = self.opened.iter();
        let is_there = files.all(|(path, opened)| identity(path).is_none_or(|now| now == *opened));
        let mut replaced = lock(&self.replaced);
        if is_there {
            if replaced.take().is_some() {
                log::info!("the database file is back");
            }
            return true;
        }
        let known = replaced.get_or_insert_with(|| {
            log::error!("{WHAT}: {}", self.path.display());
            Replaced {
                has_unsaved: true,
                ..Replaced::default()
            }
        });
        known.has_unsaved |= has_committed;
        if known.has_unsaved {
            save();
        }
        false
    }

    /// Saves a copy beside the database's path, unless the last copy has everything.
    pub(super) fn save(&self, writer: &Mutex<Connection>) {
        // Locked before `has_unsaved` is reset: later commits go into the next copy.
        let writer = lock(writer);
        let to = match &mut *lock(&self.replaced) {
            Some(known) if known.has_unsaved => {
                known.has_unsaved = false;
                known.saved.clone()
            }
            _ => return,
        };
        let to = to.unwrap_or_else(|| backup::free_name_beside(&self.path, "saved"));
        let made = to.parent().map_or(Ok(()), make_directories);
        let made = made.map_err(|source| Error::Copy {
            path: to.clone(),
            source,
        });
        let done = made.and_then(|()| backup::save(&writer, &backup::beside(&to, ".new"), &to));
        drop(writer);
        if let Some(known) = &mut *lock(&self.replaced) {
            known.failed = done.as_ref().err().map(|error| chain(error));
            match &known.failed {
                None if known.saved.is_none() => {
                    log::error!("the content of the database is saved in {}", to.display())
                }
                None => {}
                Some(failed) => log::error!("cannot save the content of the database: {failed}"),
            }
            known.saved = done.is_ok().then_some(to).or(known.saved.take());
        }
    }

    pub(super) fn health(&self) -> DatabaseHealth {
        let replaced = lock(&self.replaced);
        let Some(known) = &*replaced else {
            return DatabaseHealth::default();
        };
        let what = format!("{WHAT} ({})", self.path.display());
        let message = match (&known.saved, &known.failed) {
            (_, Some(failed)) => format!("{what} and cannot be saved: {failed}"),
            (None, None) => format!("{what}; saving a copy of its content"),
            (Some(saved), None) => {
                let saved = saved.display();
                format!(
                    "{what}; its content is saved: `murald stop; murald library restore {saved}`"
                )
            }
        };
        DatabaseHealth {
            state: DatabaseState::Replaced,
            saved: known.saved.clone(),
            message: Some(message),
        }
    }
}

/// Returns `None` if the path cannot be checked.
fn identity(path: &Path) -> Option<Identity> {
    match fs::metadata(path) {
        Ok(found) => Some(Some((found.dev(), found.ino()))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Some(None)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::images;
    use crate::store::images::tests::picture;

    fn count(database: &Path) -> u64 {
        Store::open(database).unwrap().read(images::count).unwrap()
    }

    #[test]
    fn deleted_database_or_log_is_noticed_and_saved() {
        for with_log_alone in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let database = directory.path().join("db/murald.sqlite3");
            let store = Store::open(&database).unwrap();
            let add = |name, number| store.write(|c| images::insert(c, &picture(name, number)));
            add("a", 1).unwrap();
            assert_eq!(store.health(), DatabaseHealth::default());
            if with_log_alone {
                fs::remove_file(backup::log_of(&database)).unwrap();
            } else {
                fs::remove_dir_all(directory.path().join("db")).unwrap();
            }
            add("b", 2).unwrap();
            assert_eq!(store.health().state, DatabaseState::Replaced);
            store.save_replaced();
            let saved = store.health().saved.unwrap();
            assert_eq!((saved.parent(), count(&saved)), (database.parent(), 2));
            // A check without a commit makes no second copy.
            let made = fs::metadata(&saved).unwrap().ino();
            assert!(!store.is_in_place());
            store.save_replaced();
            assert_eq!(fs::metadata(&saved).unwrap().ino(), made);
            // The pool is empty and no reader can be opened at this path, so the writer reads.
            store.close_idle_readers();
            assert_eq!(store.read(images::count).unwrap(), 2);
            add("c", 3).unwrap();
            store.checkpoint().unwrap();
            assert_eq!(store.health().saved, Some(saved.clone()));
            drop(store);
            assert_eq!(count(&saved), 3);
        }
    }

    #[test]
    fn other_database_at_the_path_is_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let [database, other, away] =
            ["murald", "other", "away"].map(|name| directory.path().join(name));
        drop(Store::open(&other).unwrap());
        let store = Store::open(&database).unwrap();
        store
            .write(|c| images::insert(c, &picture("a", 1)))
            .unwrap();
        fs::rename(&database, &away).unwrap();
        fs::rename(&other, &database).unwrap();
        store
            .write(|c| images::insert(c, &picture("b", 2)))
            .unwrap();
        store.close_idle_readers();
        assert_eq!(store.read(images::count).unwrap(), 2);
        store.save_replaced();
        let saved = store.health().saved.unwrap();
        // When the file is back, the database is healthy again.
        fs::rename(&database, &other).unwrap();
        fs::rename(&away, &database).unwrap();
        store
            .write(|c| images::insert(c, &picture("c", 3)))
            .unwrap();
        assert_eq!(store.health(), DatabaseHealth::default());
        drop(store);
        assert_eq!([&saved, &other, &database].map(|one| count(one)), [2, 0, 3]);
    }
}
