//! What the database knows of a watched directory's files. Reads rows, and no disk but the database's.

use super::super::Error;
use super::super::task::{Directory, Which};
use super::directory::Watched;
use super::findings::Scope;
use crate::store::{Store, watched};

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
    let mut needed = store.read(|c| watched::needed_below(c, one.path()))?;
    needed.retain(|path| one.task.has(path));
    Ok(needed.len() > 1 && needed.iter().all(|path| one.is_gone(path)))
}
