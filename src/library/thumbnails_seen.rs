//! What is known of thumbnails without a look: the sizes that were ever made, and what a page of the
//! library saw, as long as their directories are as they were: one that has not changed has lost none,
//! and has no new one.
//!
//! Runs in the threads that write pages; never writes to the disk.

use crate::sys::{read, write};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime};

/// Pictures of which something is known; with more it begins anew.
const SEEN_MAX: usize = 50_000;

/// The directories of thumbnails, just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directories {
    /// Equal numbers mean that nothing has come or gone.
    pub(super) generation: u64,
    /// The sizes of these directories, as bits.
    pub(super) sizes: u8,
    /// When one of them changed last, to the second.
    pub(super) changed: SystemTime,
}

/// The thumbnails of pictures while the directories were as they are.
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

/// Those beside `default` that were ever made: nobody need look for the others on the disk.
#[derive(Debug, Default)]
pub(super) struct Extra {
    /// The first eight bytes of a checksum to its sizes as bits. Two pictures that shared them would
    /// cost a look at the disk, no more.
    pub(super) made: HashMap<u64, u8>,
    /// The directories have been read; until then any might be there.
    pub(super) complete: bool,
    /// Put since the start, until then: those of images whose rows are still to come are no rubbish.
    pub(super) fresh: HashSet<String>,
}

impl Extra {
    /// Those that may be there, as bits.
    pub(super) fn of(&self, number: u64) -> u8 {
        if self.complete { self.made.get(&number).copied().unwrap_or_default() } else { u8::MAX }
    }

    pub(super) fn add(&mut self, number: u64, size: u8) {
        *self.made.entry(number).or_default() |= size;
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

impl Seen {
    /// The sizes that were there, as bits, if anybody looked.
    pub(super) fn of(&self, number: u64, generation: u64) -> Option<u8> {
        let known = self.read();
        known.sizes.get(&number).copied().filter(|_| known.generation == generation)
    }

    /// Keeps what was seen after the directories were looked at: whoever finds them the same later
    /// knows that it has stayed.
    pub(super) fn add(&self, number: u64, sizes: u8, generation: u64) {
        let mut known = write(&self.known);
        if known.generation != generation || known.sizes.len() >= SEEN_MAX {
            *known = Known { generation, sizes: HashMap::new() };
        }
        known.sizes.insert(number, sizes);
    }

    /// Pictures of which something is known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.read().sizes.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        read(&self.known)
    }
}
