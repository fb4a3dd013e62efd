//! A file for a moment: ours while it is held, then removed unless it was renamed. Used by whoever has
//! a program write a file for us; makes none itself.

use std::fs;
use std::path::{Path, PathBuf};

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
