//! The files of a watched directory that are not there, and since when. Pure but for the clock that
//! it is handed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::findings::{Difference, Scope};
use super::settings::GRACE;

/// A file that is not there.
#[derive(Clone, Copy, Debug)]
struct Gone {
    since: Instant,
    /// It was looked for once more when its time was up.
    confirmed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Missing {
    gone: BTreeMap<PathBuf, Gone>,
    /// On a disk that is not there.
    away: BTreeSet<PathBuf>,
    /// All of them went at once: they stay until they are back, or until somebody forgets them.
    vanished: BTreeSet<PathBuf>,
}

impl Missing {
    /// Takes note of what a look has found, and leaves of it what has changed.
    pub(super) fn absorb(&mut self, difference: &mut Difference, scope: &Scope, now: Instant) {
        // Those that were renamed are other files now: nobody is to wait for their old names.
        let still: BTreeSet<&PathBuf> = difference.gone.iter().map(|file| &file.path).collect();
        self.gone.retain(|path, _| still.contains(path) || !scope.has(path));
        for path in std::mem::take(&mut difference.found) {
            self.gone.remove(&path);
            self.away.remove(&path);
            self.vanished.remove(&path);
        }
        for file in std::mem::take(&mut difference.gone) {
            self.away.remove(&file.path);
            if self.vanished.contains(&file.path) {
                continue;
            }
            let gone = self.gone.entry(file.path).or_insert(Gone { since: now, confirmed: false });
            gone.confirmed |= now >= gone.since + GRACE;
        }
        for file in std::mem::take(&mut difference.away) {
            self.gone.remove(&file.path);
            if file.image_id.is_some() {
                self.away.insert(file.path);
            }
        }
    }

    /// Those that are to be looked for once more.
    pub(super) fn to_confirm(&self, now: Instant) -> BTreeSet<PathBuf> {
        let due = |gone: &Gone| !gone.confirmed && gone.since + GRACE <= now;
        self.gone.iter().filter(|(_, gone)| due(gone)).map(|(path, _)| path.clone()).collect()
    }

    /// When the next of them is.
    pub(super) fn due(&self) -> Option<Instant> {
        let waiting = self.gone.values().filter(|gone| !gone.confirmed);
        waiting.map(|gone| gone.since + GRACE).min()
    }

    /// Nobody could look: their time begins anew.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.gone.values_mut().for_each(|gone| gone.since = now);
    }

    /// The files that are gone for good.
    pub(super) fn leaving(&self) -> Vec<PathBuf> {
        self.gone.iter().filter(|(_, gone)| gone.confirmed).map(|(path, _)| path.clone()).collect()
    }

    /// What is gone stays.
    pub(super) fn vanish(&mut self) {
        self.vanished.extend(std::mem::take(&mut self.gone).into_keys());
    }

    /// What was kept is looked for like the others.
    pub(super) fn look_for_kept(&mut self) {
        self.away.clear();
        self.vanished.clear();
    }

    /// Whether some have time left.
    pub(super) fn are_waited_for(&self) -> bool {
        !self.gone.is_empty()
    }

    pub(super) fn left(&mut self, path: &Path) {
        self.gone.remove(path);
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.gone.contains_key(path) || self.away.contains(path) || self.vanished.contains(path)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.gone.keys().chain(&self.away).chain(&self.vanished)
    }

    /// How many stay however long they are missing.
    pub(super) fn kept(&self) -> usize {
        self.away.len() + self.vanished.len()
    }
}
