//! The last verdict of the library guard (`missing` finds it), kept for whoever asks. Looks again
//! only where rows or directories have changed since the last time: nobody polls for files that may
//! return. No look at a disk holds the verdict up, and one that does not answer changes nothing of
//! it.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::missing::{Row, Verdict, purge};
use super::{Error, Library, disk};
use crate::paths::{Presence, answers_in, presence};
use crate::store::{Store, images, watched};
use crate::sys::lock;
use crate::wire::LibraryHealth;

/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    health: LibraryHealth,
    total: usize,
    /// What the verdict was on.
    seen: Option<Arc<Signature>>,
}

/// Equal where no row and no file has come or gone.
#[derive(Debug, PartialEq, Eq)]
struct Signature {
    generation: u64,
    /// Each directory; none where it is not there.
    homes: Vec<(PathBuf, Option<Stamp>)>,
}

/// Device, inode and time of change of a directory.
type Stamp = (u64, u64, i64, i64);

impl Guard {
    /// Takes note of what was found missing; from here on rows are purged again, or not.
    pub(super) fn note(&self, store: &Store, generation: u64, rows: &[Row], verdict: &Verdict) {
        let guarded = !verdict.keep.is_empty();
        let homes = || homes(rows).into_iter().map(PathBuf::from).collect();
        let seen = guarded.then(|| Arc::new(Signature::of(generation, homes())));
        let mut state = self.lock();
        if guarded && !state.health.guarded {
            log::error!(
                "{} of {} pictures are missing: their rows are kept. Is the disk there? \
                 `murald library purge-missing` forgets them",
                verdict.keep.len(),
                verdict.total
            );
        } else if state.health.guarded && !guarded {
            log::info!("no pictures are missing any more");
        }
        state.health = LibraryHealth { missing: verdict.keep.len(), guarded };
        state.total = verdict.total;
        state.seen = seen;
        drop(state);
        store.keep_rows(guarded);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every holder leaves it whole between two statements that could panic.
        lock(&self.0)
    }
}

/// The directories of rows.
fn homes(rows: &[Row]) -> BTreeSet<&Path> {
    rows.iter().filter_map(|(_, path, _)| path.parent()).collect()
}

impl Signature {
    fn of(generation: u64, homes: Vec<PathBuf>) -> Self {
        let look = |home: PathBuf| {
            let found = home.metadata().ok();
            let found = found.map(|m| (m.dev(), m.ino(), m.mtime(), m.mtime_nsec()));
            (home, found)
        };
        Self { generation, homes: homes.into_iter().map(look).collect() }
    }

    /// Also where a disk does not answer: nothing else is known of it.
    fn is_still_so(&self, generation: u64) -> bool {
        let homes = self.homes.iter().map(|(home, _)| home);
        !homes.clone().all(|home| answers_in(home))
            || *self == Self::of(generation, homes.cloned().collect())
    }
}

impl Library {
    /// Whether rows are kept though their files are missing, and how many. While they are, it is
    /// found out anew after each change.
    pub fn health(&self) -> LibraryHealth {
        let generation = self.store.generation();
        let seen = self.guard.lock().seen.clone();
        let is_stale = seen.is_some_and(|seen| !seen.is_still_so(generation));
        if is_stale && let Err(error) = self.look_for_missing() {
            log::warn!("the missing pictures cannot be counted: {}", error.reason());
        }
        self.guard.lock().health
    }

    /// The same for people; nothing where all is well.
    pub fn warning(&self) -> Option<String> {
        let LibraryHealth { missing, guarded } = self.health();
        let total = self.guard.lock().total;
        guarded.then(|| {
            format!(
                "{missing} of {total} pictures are missing and their rows are kept: bring the \
                 files back, or forget them with `murald library purge-missing`"
            )
        })
    }

    /// Removes the rows of all images whose files are missing, whatever the guard says; returns how
    /// many went.
    pub fn purge_missing(&self) -> Result<usize, Error> {
        disk::answers_in(&self.context.directory)?;
        let mut missing = Vec::new();
        for (id, path) in self.store.read(watched::images_in_place)? {
            match presence(&path) {
                Presence::There => {}
                Presence::Missing => missing.push(id),
                Presence::NoAnswer => return Err(Error::NoAnswer { path }),
            }
        }
        missing.extend(self.look_for_missing()?.missing());
        let purged = purge(&self.context, &missing)?;
        if purged > 0 {
            self.scan();
        }
        self.look_for_missing()?;
        Ok(purged)
    }

    /// An error where a file lies on a disk that does not answer.
    pub(crate) fn answers(&self, path: &Path) -> Result<(), Error> {
        disk::answers(path)
    }

    fn look_for_missing(&self) -> Result<Verdict, Error> {
        // Before the look: what changes meanwhile makes it stale, not wrong.
        let generation = self.store.generation();
        let rows = self.store.read(images::files)?;
        disk::answers_in(&self.context.directory)?;
        homes(&rows).into_iter().try_for_each(disk::answers_in)?;
        let files = disk::list(&self.context.directory, self.context.run)?;
        let verdict = Verdict::on(&rows, &files);
        self.guard.note(&self.store, generation, &rows, &verdict);
        Ok(verdict)
    }
}
