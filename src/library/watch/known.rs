//! What the database knows of a watched directory's files. Reads rows, and no disk but the database's.

use std::path::Path;

use super::super::Error;
use super::super::task::{Directory, Which};
use super::directory::Watched;
use super::findings::Scope;
use crate::store::{Store, watched};

/// Paths that are looked up each by itself; with more, all of the directory is read.
const ONE_BY_ONE_MAX: usize = 100;

/// What is known of a scope.
pub(super) fn known(
    store: &Store,
    directory: &Directory,
    scope: &Scope,
) -> Result<Vec<watched::WatchedFile>, Error> {
    let paths = match (scope, &directory.which) {
        (Scope::Paths(paths), _) | (Scope::All, Which::Only(paths)) => paths,
        _ => return Ok(store.read(|c| watched::below(c, &directory.path))?),
    };
    if paths.len() > ONE_BY_ONE_MAX {
        let mut files = store.read(|c| watched::below(c, &directory.path))?;
        files.retain(|file| file.path.ancestors().any(|at| paths.contains(at)));
        return Ok(files);
    }
    let mut files = Vec::new();
    // No record has a name that is not UTF-8.
    for path in paths.iter().filter(|path| path.to_str().is_some()) {
        files.extend(store.read(|c| watched::below(c, path))?);
    }
    // A directory and something in it may both have been named.
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files.dedup_by(|one, other| one.path == other.path);
    Ok(files)
}

/// Whether all files went, of more than one: their disk is more likely away than emptied.
pub(super) fn all_are_missing(store: &Store, one: &Watched) -> Result<bool, Error> {
    if one.missing().next().is_none() {
        return Ok(false);
    }
    let is_gone = |path: &Path| one.is_gone(path);
    let has = |path: &Path| one.task.has(path);
    Ok(store.read(|c| watched::are_all_gone_below(c, one.path(), &has, &is_gone))?)
}
