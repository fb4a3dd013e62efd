//! A directory of second names for the files that are shown: each says for what it stands and keeps
//! the ending, by which setters know what is in a file.
//!
//! Runs on the worker's thread.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::backends::Placement;
use crate::paths;

pub(super) struct Names {
    directory: PathBuf,
}

impl Names {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The name for a file; `stem` says for what of it.
    pub(super) fn of(&self, stem: String, file: &Path) -> PathBuf {
        let mut name = OsString::from(stem);
        if let Some(extension) = file.extension() {
            name.push(".");
            name.push(extension);
        }
        self.directory.join(name)
    }

    /// Whether the disk of the cache does: where it does not, the names are done without.
    pub(super) fn answers(&self) -> bool {
        paths::answers(&self.directory)
    }

    pub(super) fn make_directory(&self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)
    }

    /// Removes all but the names of these placements.
    pub(super) fn keep(&self, placements: &[Placement], name: impl Fn(&Placement) -> PathBuf) {
        if !self.answers() {
            return;
        }
        let used: Vec<PathBuf> = placements.iter().map(name).collect();
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if !used.contains(&path) {
                // What cannot be removed now is tried again after the next change.
                fs::remove_file(path).ok();
            }
        }
    }
}
