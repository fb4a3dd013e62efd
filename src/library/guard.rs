//! Judges rows and files that do not agree: which rows are purged, which are kept though their files are
//! missing, and which files are adopted. Keeps the last verdict.
//!
//! The row of a single missing picture is purged. Many missing at once mean an unmounted disk, a moved
//! directory or a failed synchronisation: their rows are kept, also over restarts, until the last file
//! is back or the owner purges them. Judging is pure; looking runs on the calling thread and waits for
//! the library's disk. While rows are kept, a client that asks for the library's health gets a new
//! verdict if rows or the directory have changed.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::Error;
use super::disk::{self, Run, is_gone};
use crate::digest::Checksum;
use crate::store::{Store, images, purge};
use crate::sys::lock;
use crate::wire::{LibraryHealth, own_path};

/// Guards the rows whose files are missing from the library's directory.
#[derive(Debug)]
pub(super) struct Guard {
    store: Store,
    directory: PathBuf,
    run: Run,
    state: Mutex<GuardState>,
}

#[derive(Debug, Default)]
pub(super) struct GuardState {
    pub(super) health: LibraryHealth,
    pub(super) total: usize,
    /// The state of rows and directories that the verdict is about.
    seen: Option<Signature>,
}

/// Equal as long as no row and no file was added or removed: a number of the store, and device, inode
/// and time of change of the library's directory; none if the directory is missing.
type Signature = (u64, Option<(u64, u64, i64, i64)>);

impl Guard {
    pub(super) fn new(store: &Store, directory: &Path, run: Run) -> Self {
        let (store, directory) = (store.clone(), directory.to_owned());
        Self {
            store,
            directory,
            run,
            state: Mutex::default(),
        }
    }

    /// Looks at all copies and decides whether rows may be purged; `follow` gives rows the files that
    /// their owner has renamed.
    pub(super) fn look(
        &self,
        follow: impl FnOnce(&mut [Row], &[PathBuf]) -> Result<(), Error>,
    ) -> Result<Verdict, Error> {
        // Read before the look: a change during the look makes it stale, not wrong.
        let signature = self.signature();
        let mut rows = self.store.read(images::files)?;
        let listed = disk::list(&self.directory, self.run)?;
        follow(&mut rows, &listed)?;
        let was_held = self.store.read(purge::is_guarded)?;
        let verdict = judge(
            &rows,
            &Files::seen(&self.directory, &rows, &listed),
            was_held,
        );
        let (kept, total) = (verdict.keep.len(), rows.len());
        let (guarded, mut state) = (kept > 0, self.lock());
        if guarded && !state.health.guarded {
            log::error!(
                "{kept} of {total} pictures are missing; keeping their entries. Is the disk mounted? \
                 `murald library purge-missing` removes them"
            );
        } else if state.health.guarded && !guarded {
            log::info!("no picture is missing any more");
        }
        state.health = LibraryHealth {
            missing: kept,
            guarded,
        };
        (state.total, state.seen) = (total, guarded.then_some(signature));
        drop(state);
        self.store.keep_rows(guarded);
        if verdict.is_held != was_held {
            self.store
                .write(|c| purge::set_guarded(c, verdict.is_held))?;
        }
        Ok(verdict)
    }

    /// Whether rows are kept, and rows or files have changed since the look that found them.
    pub(super) fn is_stale(&self) -> bool {
        let seen = self.lock().seen;
        seen.is_some_and(|seen| seen != self.signature())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, GuardState> {
        // A poisoned lock is harmless: no holder can panic between two changes that belong together.
        lock(&self.state)
    }

    fn signature(&self) -> Signature {
        let found = self.directory.metadata().ok();
        let found = found.map(|m| (m.dev(), m.ino(), m.mtime(), m.mtime_nsec()));
        (self.store.generation(), found)
    }
}

/// An image's id, its file or package, and the checksum of the content.
pub(super) type Row = (i64, PathBuf, Checksum);

/// Rows are purged if at most this many files are missing, even from a small library.
const FEW: usize = 20;
/// Rows are purged if at most one of this many files is missing, even from a large library.
const SHARE: usize = 5;

/// The library's directory as it was seen beside some rows.
#[derive(Debug, Default)]
pub(super) struct Files<'a> {
    listed: &'a [PathBuf],
    /// Files of rows that are missing.
    missing: HashSet<&'a Path>,
    is_there: bool,
}

impl<'a> Files<'a> {
    pub(super) fn seen(directory: &Path, rows: &'a [Row], listed: &'a [PathBuf]) -> Self {
        let known: HashSet<&Path> = listed.iter().map(PathBuf::as_path).collect();
        let paths = rows.iter().map(|(_, path, _)| path.as_path());
        let missing = paths
            .filter(|path| !known.contains(path) && is_gone(path))
            .collect();
        Self {
            listed,
            missing,
            is_there: directory.is_dir(),
        }
    }
}

/// The verdict on rows and files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Rows that go with their missing files.
    pub(super) purge: Vec<i64>,
    /// Rows that stay without their files.
    pub(super) keep: Vec<i64>,
    /// Whether missing files are more likely on an unmounted disk than deleted. It stays true until no
    /// file is missing.
    is_held: bool,
    /// Files without a row.
    pub(super) adopt: Vec<PathBuf>,
}

impl Verdict {
    /// All rows whose files are missing.
    pub(super) fn missing(&self) -> Vec<i64> {
        [&self.purge[..], &self.keep].concat()
    }
}

/// Whether a directory is more likely unmounted than emptied, however few files were in it.
pub(super) fn is_unmounted(missing: usize, total: usize, is_there: bool) -> bool {
    !is_there || (missing == total && total > 1)
}

/// Judges the rows of all copies, whose files should be in the library's directory. If rows `were_held`,
/// none is purged as long as any file is missing.
pub(super) fn judge(rows: &[Row], files: &Files<'_>, were_held: bool) -> Verdict {
    let mut verdict = Verdict::default();
    for (id, path, _) in rows {
        if own_path(path) != path {
            // Marked as displaced: its file is outside the library's directory and is not checked.
            verdict.keep.push(*id);
        } else if files.missing.contains(path.as_path()) {
            verdict.purge.push(*id);
        }
    }
    let (missing, total) = (verdict.purge.len(), rows.len() - verdict.keep.len());
    let many = missing > FEW && missing * SHARE > rows.len();
    let is_away = many || is_unmounted(missing, total, files.is_there);
    verdict.is_held = missing > 0 && (were_held || is_away);
    if verdict.is_held {
        verdict.keep.append(&mut verdict.purge);
    }
    let owned: HashSet<&Path> = rows.iter().map(|(_, path, _)| path.as_path()).collect();
    let strangers = files
        .listed
        .iter()
        .filter(|path| !owned.contains(path.as_path()));
    verdict.adopt = strangers.cloned().collect();
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(missing: usize, total: usize, is_there: bool, (purged, kept): (usize, usize)) {
        let path = |file: usize| PathBuf::from(format!("/{file}"));
        let rows: Vec<Row> = (0..total)
            .map(|at| (0, path(at), Checksum::default()))
            .collect();
        let gone: Vec<PathBuf> = (0..missing).map(path).collect();
        let listed: Vec<PathBuf> = (missing..total + 1).map(path).collect();
        let missing = gone.iter().map(PathBuf::as_path).collect();
        let files = Files {
            listed: &listed,
            missing,
            is_there,
        };
        let verdict = judge(&rows, &files, false);
        assert_eq!(
            (verdict.purge.len(), verdict.keep.len()),
            (purged, kept),
            "{verdict:?}"
        );
        assert_eq!(verdict.adopt, [path(total)]);
        let held = judge(&rows, &files, true);
        assert_eq!(
            (held.purge.len(), held.keep.len()),
            (0, purged + kept),
            "until all are back"
        );
        assert_eq!(
            (verdict.is_held, held.is_held),
            (kept > 0, purged + kept > 0)
        );
    }

    #[test]
    fn rows_are_kept_if_over_twenty_and_over_a_fifth_are_missing() {
        check(0, 0, false, (0, 0));
        check(1, 1, true, (1, 0));
        check(20, 21, true, (20, 0));
        check(21, 105, true, (21, 0));
        check(21, 104, true, (0, 21));
        check(1200, 10_000, true, (1200, 0));
        check(9998, 10_000, true, (0, 9998));
    }

    #[test]
    fn rows_of_a_missing_or_emptied_directory_are_kept() {
        check(3, 3, true, (0, 3));
        check(1, 1, false, (0, 1));
        check(2, 11, false, (0, 2));
    }

    #[test]
    fn row_of_a_copy_outside_the_directory_is_kept() {
        let rows = [(
            7,
            PathBuf::from("/a/b.png.murald-displaced-7"),
            Checksum::default(),
        )];
        let verdict = judge(
            &rows,
            &Files {
                is_there: true,
                ..Files::default()
            },
            false,
        );
        assert_eq!((verdict.purge, verdict.keep), (vec![], vec![7]));
        assert!(!verdict.is_held, "it holds no other row");
    }
}
