//! What the database knows of a watched directory's files, and what a look has found to be other than
//! that. No disk but the database's is read.

use std::path::Path;

use super::super::Error;
use super::super::task::{Directory, Which};
use super::directory::Watched;
use super::findings::{Difference, Findings, Scope, compare};
use crate::store::{Store, watched};

/// Paths that are looked up each by itself; with more, all of the directory is read.
const ONE_BY_ONE_MAX: usize = 100;

/// What is other than it was; files whose disk has another number are known by that from then on.
pub(super) fn difference(
    store: &Store,
    directory: &Directory,
    findings: &Findings,
    scope: &Scope,
) -> Result<Difference, Error> {
    let difference = compare(known(store, directory, scope)?, findings, scope);
    if !difference.renumbered.is_empty() {
        let mut renumbered = difference.renumbered.iter();
        store.note(|c| renumbered.try_for_each(|(path, d)| watched::set_device(c, path, *d)))?;
    }
    Ok(difference)
}

/// What is known of a scope.
fn known(
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
    if !one.may_be_away() {
        return Ok(false);
    }
    let is_gone = |path: &Path| one.is_gone(path);
    let has = |path: &Path| one.task.has(path);
    Ok(store.read(|c| watched::are_all_gone_below(c, one.path(), &has, &is_gone))?)
}
