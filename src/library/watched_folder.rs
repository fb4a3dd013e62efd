//! The folder that shows the directory in which a watched file is. Reads rows, and no disk.

use std::path::Path;

use super::Error;
use super::task::{Directory, Which};
use crate::store::folders::{self, DEPTH_MAX};
use crate::store::{Connection, watched};

/// Makes a folder of this name in another, or does not.
pub(super) type Make<'a> = dyn Fn(&str, Option<i64>) -> Result<Option<i64>, Error> + 'a;

/// The folder of a file; `make` is called for one that is missing.
pub(super) fn folder_of(
    c: &Connection,
    directory: &Directory,
    file: &Path,
    make: &Make<'_>,
) -> Result<Option<i64>, Error> {
    if let Which::Named(folder) = directory.which {
        return Ok(folder.filter(|&id| folders::exists(c, id).unwrap_or(false)));
    }
    if !directory.folders {
        return Ok(None);
    }
    let own = directory.path.file_name().unwrap_or_default();
    let inside = file.parent().and_then(|parent| parent.strip_prefix(&directory.path).ok());
    let names = std::iter::once(own).chain(inside.into_iter().flat_map(Path::iter));
    let mut at = None;
    for name in names.take(DEPTH_MAX) {
        let name = folder_name(&name.to_string_lossy());
        let found = match watched::folder(c, &name, at)? {
            Some(id) => Some(id),
            None => make(&name, at)?,
        };
        let Some(id) = found else { return Ok(None) };
        at = Some(id);
    }
    Ok(at)
}

/// A directory's name as a folder can have it.
fn folder_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    match name.trim() {
        "" => "_".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_names_that_can_be_shown() {
        for (name, expected) in [("sea", "sea"), (" a\tb ", "a_b"), ("\n", "_"), ("  ", "_")] {
            assert_eq!(folder_name(name), expected);
        }
    }
}
