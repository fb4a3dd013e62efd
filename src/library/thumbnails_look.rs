//! What a page of the library says of its thumbnails: a look at their directories, and at a file
//! only where the same was not seen there before. A directory that has not changed has lost none.
//!
//! Runs in the thread that writes the page; never writes to the disk.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime};

use super::thumbnails::{Thumbnails, bit, is_whole};
use crate::digest;
use crate::wire::ImageRow;

/// The clock of a file system stands still for up to two seconds: within them a directory can change
/// and keep its times.
const SETTLED: Duration = Duration::from_secs(3);
/// Pictures of which something is known; with more it begins anew.
const SEEN_MAX: usize = 50_000;

/// The directories of thumbnails, just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directories {
    /// Equal numbers mean that nothing has come or gone.
    generation: u64,
    /// The sizes of these directories, as bits.
    sizes: u8,
    /// When one of them changed last, to the second.
    changed: SystemTime,
}

/// Thumbnails that were there while the directories were as they are.
#[derive(Debug, Default)]
pub(super) struct Seen {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    generation: u64,
    /// The first eight bytes of a checksum to its sizes as bits.
    sizes: HashMap<u64, u8>,
}

/// For the rows of one page.
#[derive(Debug)]
pub(crate) struct Look<'t> {
    thumbnails: &'t Thumbnails,
    generation: u64,
    /// The sizes of which what is seen now may be known later, as bits.
    lasting: u8,
    answers: bool,
}

impl Thumbnails {
    pub(crate) fn look(&self) -> Look<'_> {
        self.look_at(SystemTime::now())
    }

    pub(super) fn look_at(&self, now: SystemTime) -> Look<'_> {
        let answers = self.answers().is_ok();
        let Directories { generation, sizes, changed } = self.directories(answers);
        let is_settled = now.duration_since(changed).is_ok_and(|age| age > SETTLED);
        let lasting = if is_settled { sizes } else { 0 };
        Look { thumbnails: self, generation, lasting, answers }
    }
}

impl Directories {
    /// Of these sizes, after so many changes by ourselves.
    pub(super) fn of((changes, sizes): (u64, u8), paths: impl Iterator<Item = PathBuf>) -> Self {
        let mut hasher = DefaultHasher::new();
        changes.hash(&mut hasher);
        let mut changed = 0;
        for path in paths {
            let found = fs::metadata(path).ok();
            // The one of its times that nobody can set.
            let time = |meta: &fs::Metadata| (meta.ctime(), meta.ctime_nsec());
            let is = found.map(|meta| (meta.dev(), meta.ino(), time(&meta)));
            is.hash(&mut hasher);
            changed = is.map_or(changed, |(.., (seconds, _))| changed.max(seconds));
        }
        let changed = Duration::from_secs(u64::try_from(changed).unwrap_or_default());
        Self { generation: hasher.finish(), sizes, changed: SystemTime::UNIX_EPOCH + changed }
    }
}

impl Look<'_> {
    /// Equal numbers mean that [`Self::complete`] would say the same: it differs after each
    /// thumbnail or preview that comes or goes, also by a stranger's hand.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Gives an image that is being written what is not in its row: what the cache has of it.
    pub(crate) fn complete(&self, row: &mut ImageRow<'_>) {
        let is_there = |preview: &&str| self.answers && Path::new(preview).exists();
        row.preview_path = row.preview_path.filter(is_there);
        let Some(&first) = row.checksum.first_chunk().filter(|_| self.answers) else { return };
        let (number, hex) = (u64::from_be_bytes(first), digest::hex(row.checksum));
        let seen = self.thumbnails.seen();
        let known = self.lasting & seen.of(number, self.generation);
        let mut fresh = 0;
        let path = |size| self.thumbnails.path(&hex, size);
        let there = self.thumbnails.there((row.width, row.height), number, |size| {
            let whole = known & bit(size) != 0 || is_whole(&path(size));
            fresh |= if whole { bit(size) & !known } else { 0 };
            whole
        });
        row.thumbnails = there.map(|(size, made)| (size.as_str(), path(made))).collect();
        if fresh & self.lasting != 0 {
            seen.add(number, fresh & self.lasting, self.generation);
        }
    }
}

impl Seen {
    /// The sizes that were seen, as bits.
    fn of(&self, number: u64, generation: u64) -> u8 {
        let known = self.read();
        let sizes = known.sizes.get(&number).filter(|_| known.generation == generation);
        sizes.copied().unwrap_or_default()
    }

    /// Keeps what was seen after the directories were looked at: whoever finds them the same later
    /// knows that it has stayed.
    fn add(&self, number: u64, sizes: u8, generation: u64) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.generation != generation || known.sizes.len() >= SEEN_MAX {
            *known = Known { generation, sizes: HashMap::new() };
        }
        *known.sizes.entry(number).or_default() |= sizes;
    }

    /// Pictures of which something is known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.read().sizes.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}
