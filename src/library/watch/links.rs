//! The links of a watched directory: when one is removed, the files behind it are gone, although their
//! disk is there. No row knows which part of a path was a link.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::disk::is_missing;
use super::compare::Found;
use super::walk::Scope;
use crate::store::watched::WatchedFile;

#[derive(Default)]
pub(super) struct Links {
    /// The links of the last look at everything, removed ones with rows behind them, and the devices of
    /// the directories that they were in.
    known: BTreeMap<PathBuf, u64>,
}

impl Links {
    /// Has files behind removed links count as gone: their disks are not away.
    pub(super) fn follow(&mut self, scope: &Scope, rows: &[WatchedFile], found: &mut Found) {
        self.known.append(&mut found.links);
        let removed: BTreeSet<PathBuf> = match scope {
            Scope::All => self.removed(self.known.keys().map(PathBuf::as_path)),
            Scope::Paths(paths) => self.removed(paths.iter().flat_map(|path| path.ancestors())),
        };
        let mut in_use = BTreeSet::new();
        for row in rows {
            if let Some(link) = row.path.ancestors().find_map(|at| removed.get(at)) {
                in_use.insert(link);
                found.directories.insert(row.path.clone(), row.stamp.device);
            }
        }
        if *scope == Scope::All {
            let is_used = |link: &PathBuf| !removed.contains(link) || in_use.contains(link);
            self.known.retain(|link, _| is_used(link));
        }
    }

    /// Those of these paths that are removed links. A link whose directory is on another disk now may
    /// return with the disk.
    fn removed<'p>(&self, paths: impl Iterator<Item = &'p Path>) -> BTreeSet<PathBuf> {
        let removed = |link: &&Path| {
            let device = self.known.get(*link);
            let above = || link.parent().and_then(|above| fs::metadata(above).ok());
            device.is_some()
                && fs::symlink_metadata(link).is_err_and(|error| is_missing(&error))
                && above().map(|above| above.dev()).as_ref() == device
        };
        paths.filter(removed).map(Path::to_owned).collect()
    }
}
