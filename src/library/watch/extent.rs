//! Which paths belong to a watched directory: those that are in none of the watched directories inside
//! it, and not in murald's own. Of the files in place, those that are in no watched directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::Error;
use super::super::context::ImportContext;
use super::super::task::{Directory, Which};
use super::walk::Scope;
use crate::store::watched;

pub(super) struct Extent {
    directory: Arc<Directory>,
    /// murald's own directories.
    own: Vec<PathBuf>,
    /// The watched directories inside this one at the last look, whose files are theirs.
    inner: Vec<PathBuf>,
    /// The single files at the last look at everything.
    files: BTreeSet<PathBuf>,
}

impl Extent {
    pub(super) fn new(directory: &Arc<Directory>, own: Vec<PathBuf>) -> Self {
        Self {
            directory: Arc::clone(directory),
            own,
            inner: Vec::new(),
            files: BTreeSet::new(),
        }
    }

    /// Finds the other watched directories before a look, and the single files before one at everything.
    pub(super) fn renew(&mut self, scope: &Scope, context: &ImportContext) -> Result<(), Error> {
        let path = &self.directory.path;
        let mut roots = context.watched.roots();
        if self.directory.which == Which::All {
            roots.retain(|root| root != path && root.starts_with(path));
            self.inner = roots;
        } else if *scope == Scope::All {
            let files = context.store.read(watched::files_in_place)?.into_iter();
            let is_single = |file: &PathBuf| !roots.iter().any(|root| file.starts_with(root));
            self.files = files.filter(is_single).collect();
        }
        Ok(())
    }

    /// The directories that a walk does not enter. The disks of watched directories inside may not
    /// answer.
    pub(super) fn closed(&self, scope: &Scope) -> Vec<PathBuf> {
        match scope {
            Scope::All => [&self.own[..], &self.inner[..]].concat(),
            Scope::Paths(_) => self.own.clone(),
        }
    }

    pub(super) fn is_inner(&self, path: &Path) -> bool {
        self.inner.iter().any(|inner| path.starts_with(inner))
    }

    /// Whether a path is of a file that this thread follows.
    pub(super) fn has(&self, path: &Path) -> bool {
        match self.directory.which {
            Which::Only => self.files.contains(path),
            _ => path.starts_with(&self.directory.path) && !self.is_inner(path),
        }
    }

    pub(super) fn files(&self) -> &BTreeSet<PathBuf> {
        &self.files
    }
}
