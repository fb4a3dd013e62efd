//! What becomes of a file that a worker is given. Plain data, for the batch, the workers and who
//! sends them files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Copied into the library.
    Copy,
    /// Taken where it lies.
    InPlace,
    /// It lies in the library's directory already.
    Adopt,
    /// It lies in a directory that is watched.
    Watched(Arc<Directory>, Pass),
}

/// A watched directory, as its files are taken.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) in_place: bool,
    pub(super) folders: bool,
    pub(super) which: Which,
    /// It is watched no more: nothing is taken from it.
    pub(super) ended: AtomicBool,
}

/// Which files of a directory are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Which {
    /// All, but those that were deleted in murald and left on the disk.
    #[default]
    All,
    /// These, each of which was imported by its name, while it has an image.
    Only(BTreeSet<PathBuf>),
    /// One that somebody imports by its name now, into this folder.
    Named(Option<i64>),
}

impl Directory {
    /// That of one file in place.
    pub(super) fn of(file: &Path, which: Which) -> Self {
        let path = file.parent().unwrap_or(file).to_owned();
        Self { path, in_place: true, which, ..Self::default() }
    }

    /// Whether a file is one of those that are taken, as far as its path tells.
    pub(super) fn has(&self, file: &Path) -> bool {
        match &self.which {
            Which::Only(files) => files.contains(file),
            Which::All | Which::Named(_) => file.starts_with(&self.path),
        }
    }

    pub(super) fn is_as(&self, other: &Self) -> bool {
        (&self.path, self.in_place, self.folders, &self.which)
            == (&other.path, other.in_place, other.folders, &other.which)
    }
}

/// Files that were renamed find their images before any other takes their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Only those whose content an image has that has lost its file.
    Moves,
    All,
}
