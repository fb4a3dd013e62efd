//! What becomes of a file that a worker is given. Plain data, for the batch, the workers and who
//! sends them files.

use std::path::PathBuf;
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
    /// It is watched no more: nothing is taken from it.
    pub(super) ended: AtomicBool,
}

impl Directory {
    pub(super) fn is_as(&self, other: &Self) -> bool {
        (&self.path, self.in_place, self.folders) == (&other.path, other.in_place, other.folders)
    }
}

/// Files that were renamed find their images before any other takes their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Only those whose content an image has that has lost its file.
    Moves,
    All,
}
