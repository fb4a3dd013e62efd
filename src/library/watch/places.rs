//! Under which names directories are known. The kernel's watches are of directories, not of names, so
//! that each is looked at under one name alone, for as long as that leads to it. Pure.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Device and inode.
pub(super) type Identity = (u64, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    by_name: BTreeMap<PathBuf, Identity>,
    names: HashMap<Identity, PathBuf>,
}

impl Places {
    pub(super) fn add(&mut self, directories: &BTreeMap<PathBuf, Identity>) {
        for (name, identity) in directories {
            self.by_name.insert(name.clone(), *identity);
            self.names.insert(*identity, name.clone());
        }
    }

    /// Whether another directory, or none, is where one was known.
    pub(super) fn is_other(&self, path: &Path, now: Option<Identity>) -> bool {
        self.by_name.get(path).is_some_and(|known| Some(*known) != now)
    }

    /// The name of a directory, where it is another one than this.
    pub(super) fn other_name(&self, identity: Identity, path: &Path) -> Option<&Path> {
        self.names.get(&identity).map(PathBuf::as_path).filter(|name| *name != path)
    }
}
