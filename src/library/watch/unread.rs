//! The files of a watched directory that were found and whose content is not read yet. Those that may
//! have the content of a missing image come first, and are only hashed; the imports read the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::listing::stamp_of;
use super::super::task::{Directory, Facts};
use super::compare::Difference;
use super::walk::Scope;
use crate::decode::Decoder;
use crate::digest::Checksum;
use crate::store::watched::Stamp;

/// How many files are hashed between two looks.
const HASHED_AT_ONCE: usize = 16;
/// How many files are given to the imports at once, so that other imports are served in between.
const GIVEN_AT_ONCE: usize = 64;

#[derive(Default)]
pub(super) struct Unread {
    /// Files that may have the content of a missing image, and their checksums.
    candidates: BTreeMap<PathBuf, Stamp>,
    hashed: BTreeMap<PathBuf, (Stamp, Checksum)>,
    queue: BTreeMap<PathBuf, Stamp>,
    /// The files that the imports read now.
    in_hand: BTreeMap<PathBuf, Stamp>,
    /// Files that the imports were given with these stamps, and could not read. Missing images with
    /// their paths have no time limit until these files change.
    failed: BTreeMap<PathBuf, Stamp>,
}

impl Unread {
    /// Whether files are left that may have the content of a missing image.
    pub(super) fn is_searching(&self) -> bool {
        !(self.candidates.is_empty() && self.hashed.is_empty())
    }

    /// Whether files wait for the imports, which have no others of this directory.
    pub(super) fn may_give(&self) -> bool {
        !self.is_searching() && self.in_hand.is_empty() && !self.queue.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_searching() && self.queue.is_empty() && self.in_hand.is_empty()
    }

    /// Whether the imports could not read a file.
    pub(super) fn has_failed(&self, path: &Path) -> bool {
        self.failed.contains_key(path)
    }

    /// The files that the imports could not read.
    pub(super) fn failed(&self) -> impl Iterator<Item = &PathBuf> {
        self.failed.keys()
    }

    /// Has the files read again that the imports could not read.
    pub(super) fn try_again(&mut self) {
        self.failed.clear();
    }

    /// Notes which files are to be read. `unsettled` has those that are not read yet, and their sizes.
    pub(super) fn note(
        &mut self,
        scope: &Scope,
        difference: &Difference,
        unsettled: &mut BTreeMap<PathBuf, u64>,
    ) {
        let in_hand = &self.in_hand;
        let mut before = scope.take(unsettled);
        before.retain(|path, _| in_hand.contains_key(path));
        unsettled.extend(before);
        scope.take(&mut self.candidates);
        scope.take(&mut self.hashed);
        scope.take(&mut self.queue);
        let failed = scope.take(&mut self.failed);
        let lists = [
            (&difference.first, &mut self.candidates),
            (&difference.read, &mut self.queue),
        ];
        for (found, list) in lists {
            for (path, stamp) in found {
                let is_it = |known: &Stamp| known.same(stamp);
                if failed.get(path).is_some_and(is_it) {
                    self.failed.insert(path.clone(), *stamp);
                } else if !in_hand.get(path).is_some_and(is_it) {
                    list.insert(path.clone(), *stamp);
                    unsettled.insert(path.clone(), stamp.size);
                }
            }
        }
    }

    /// Hashes some of the files that may have the content of a missing image. The imports report those
    /// that cannot be read. Returns whether there were any.
    pub(super) fn hash_some(&mut self, decoder: &Decoder) -> bool {
        let next = std::iter::from_fn(|| self.candidates.pop_first());
        let some: Vec<_> = next.take(HASHED_AT_ONCE).collect();
        for (path, stamp) in &some {
            match decoder.checksum(path) {
                Ok(hashed) => {
                    let known = (hashed.meta, hashed.checksum);
                    self.hashed.insert(path.clone(), known);
                }
                Err(_) => drop(self.queue.insert(path.clone(), *stamp)),
            }
        }
        !some.is_empty()
    }

    /// Takes the files that were hashed.
    pub(super) fn take_hashed(&mut self, directory: &Arc<Directory>) -> Vec<Facts> {
        let hashed = std::mem::take(&mut self.hashed).into_iter();
        let facts = hashed.map(|(path, (stamp, checksum))| {
            Facts::new(path, Arc::clone(directory), stamp, Ok(checksum))
        });
        facts.collect()
    }

    /// Has files read whose content is that of no image.
    pub(super) fn queue(&mut self, files: Vec<Facts>) {
        let files = files.into_iter().map(|facts| (facts.path, facts.stamp));
        self.queue.extend(files);
    }

    /// The next files for the imports.
    pub(super) fn give(&mut self) -> BTreeMap<PathBuf, Stamp> {
        let next = std::iter::from_fn(|| self.queue.pop_first());
        self.in_hand = next.take(GIVEN_AT_ONCE).collect();
        self.in_hand.clone()
    }

    /// Notes that the imports have ended their files. Returns those that are to be looked at again, as
    /// they may have vanished while they were read. Files that have changed are left to the event of
    /// their last write, so that a long recording is not read again and again.
    pub(super) fn end(&mut self, unsettled: &BTreeMap<PathBuf, u64>) -> Vec<PathBuf> {
        let given = std::mem::take(&mut self.in_hand);
        let is_as_given =
            |(path, given): &(&PathBuf, &Stamp)| stamp_of(path).map_or(true, |now| now.same(given));
        let again = given.iter().filter(is_as_given);
        let again = again.map(|(path, _)| path.clone()).collect();
        let failed = given
            .into_iter()
            .filter(|(path, _)| unsettled.contains_key(path));
        self.failed.extend(failed);
        again
    }
}
