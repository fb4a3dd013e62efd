//! The thumbnail cache's memory: sizes that were ever made, sizes that were seen while the directories
//! are unchanged, and thumbnails that are being made.
//!
//! Runs on the threads that make thumbnails or write pages. Removes its own scratch files, and writes
//! nothing else to the disk.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, RwLock, RwLockReadGuard};
use std::time::{Duration, SystemTime};

use super::Error;
use crate::sys::{lock, read, unpoisoned, write};

/// Pictures whose sizes are kept; with more, all are forgotten.
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
pub(super) struct SeenThumbnails {
    known: RwLock<KnownSizes>,
}

#[derive(Debug, Default)]
struct KnownSizes {
    generation: u64,
    /// The first eight bytes of a checksum to its sizes as bits.
    sizes: HashMap<u64, u8>,
}

/// Thumbnails beside `default` that were ever made: nobody need look for others on the disk.
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
    /// The sizes that may be there, as bits.
    pub(super) fn of(&self, number: u64) -> u8 {
        if self.complete {
            self.made.get(&number).copied().unwrap_or_default()
        } else {
            u8::MAX
        }
    }

    pub(super) fn add(&mut self, number: u64, size: u8) {
        *self.made.entry(number).or_default() |= size;
    }
}

impl Directories {
    /// The state of the directories of these sizes, after so many changes by ourselves.
    pub(super) fn of((changes, sizes): (u64, u8), paths: impl Iterator<Item = PathBuf>) -> Self {
        let mut hasher = DefaultHasher::new();
        changes.hash(&mut hasher);
        let mut changed = 0;
        for path in paths {
            let found = fs::metadata(path).ok();
            // The only one of its times that nobody can set.
            let time = |meta: &fs::Metadata| (meta.ctime(), meta.ctime_nsec());
            let is = found.map(|meta| (meta.dev(), meta.ino(), time(&meta)));
            is.hash(&mut hasher);
            changed = is.map_or(changed, |(.., (seconds, _))| changed.max(seconds));
        }
        let changed = Duration::from_secs(u64::try_from(changed).unwrap_or_default());
        Self {
            generation: hasher.finish(),
            sizes,
            changed: SystemTime::UNIX_EPOCH + changed,
        }
    }
}

impl SeenThumbnails {
    /// The sizes that were there, as bits, if anybody looked.
    pub(super) fn of(&self, number: u64, generation: u64) -> Option<u8> {
        let known = self.read();
        known
            .sizes
            .get(&number)
            .copied()
            .filter(|_| known.generation == generation)
    }

    /// Keeps the sizes that exist in this generation of the directories: they are true for as long as
    /// the directories do not change.
    pub(super) fn add(&self, number: u64, sizes: u8, generation: u64) {
        let mut known = write(&self.known);
        if known.generation != generation || known.sizes.len() >= SEEN_MAX {
            *known = KnownSizes {
                generation,
                sizes: HashMap::new(),
            };
        }
        known.sizes.insert(number, sizes);
    }

    /// Pictures of which something is known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.read().sizes.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, KnownSizes> {
        read(&self.known)
    }
}

type Outcome = Result<(), Arc<Error>>;

/// Values that are being made, by their keys.
#[derive(Debug)]
pub(super) struct SingleFlight<K: Eq + Hash> {
    running: Mutex<HashMap<K, Arc<Running>>>,
}

/// The outcome is there when it has ended.
#[derive(Debug, Default)]
struct Running {
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

impl<K: Clone + Eq + Hash> SingleFlight<K> {
    /// Makes it, or waits for who does.
    pub(super) fn run(&self, key: &K, make: impl FnOnce() -> Result<(), Error>) -> Outcome {
        let (running, first) = {
            let mut all = lock(&self.running);
            match all.get(key) {
                Some(running) => (Arc::clone(running), false),
                None => {
                    let running = Arc::<Running>::default();
                    all.insert(key.clone(), Arc::clone(&running));
                    (running, true)
                }
            }
        };
        if !first {
            return running.wait();
        }
        // Ended on every way out, a panic too: the others must not wait for ever.
        let ending = Ending {
            flight: self,
            key,
            running: &running,
        };
        let outcome = make().map_err(Arc::new);
        ending.with(outcome.clone());
        outcome
    }
}

impl<K: Eq + Hash> Default for SingleFlight<K> {
    fn default() -> Self {
        Self {
            running: Mutex::default(),
        }
    }
}

impl Running {
    fn wait(&self) -> Outcome {
        let outcome = lock(&self.outcome);
        let outcome = unpoisoned(self.ended.wait_while(outcome, |outcome| outcome.is_none()));
        outcome.clone().expect("waited until there is one")
    }
}

/// Tells those that wait.
struct Ending<'a, K: Eq + Hash> {
    flight: &'a SingleFlight<K>,
    key: &'a K,
    running: &'a Running,
}

impl<K: Eq + Hash> Ending<'_, K> {
    fn with(self, outcome: Outcome) {
        *lock(&self.running.outcome) = Some(outcome);
    }
}

impl<K: Eq + Hash> Drop for Ending<'_, K> {
    fn drop(&mut self) {
        // First off the list: who asks from now on looks for itself again.
        lock(&self.flight.running).remove(self.key);
        lock(&self.running.outcome).get_or_insert_with(|| Err(Arc::new(Error::Ended)));
        self.running.ended.notify_all();
    }
}

#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}
