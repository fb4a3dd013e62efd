//! Lists a directory for imports and watched directories, without what both skip, and takes the stamps
//! of files and packages. Reads no file.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::disk::stamp;
use super::package::is_manifest;
use crate::config::Exclude;
use crate::store::watched::Stamp;

/// Endings of the names of unfinished files.
const UNFINISHED: [&[u8]; 11] = [
    b"~",
    b".part",
    b".partial",
    b".crdownload",
    b".opdownload",
    b".download",
    b".filepart",
    b".!qB",
    b".tmp",
    b".swp",
    b".bak",
];
/// Names of directories in which network disks keep thumbnails, deleted files and old versions.
const NOT_PICTURES: [&[u8]; 3] = [b"@eaDir", b"#recycle", b"#snapshot"];
/// The maximum number of files and directories of a package that its stamp covers. An import refuses
/// packages that have more.
const PACKAGE_MAX: usize = 20_000;
/// A directory with this file has no pictures for its user, as on phones.
const NO_MEDIA: &str = ".nomedia";

/// Whether imports and watched directories skip a name: it is hidden, or means an unfinished file or a
/// directory without pictures for its user.
pub(super) fn is_skipped_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".")
        || UNFINISHED.iter().any(|end| name.ends_with(end))
        || NOT_PICTURES.contains(&name)
}

/// A directory's entries that are not skipped, and what is special about it.
pub(super) struct Listing {
    pub(super) entries: Vec<DirEntry>,
    pub(super) is_empty: bool,
    /// It is one image with all its files.
    pub(super) is_package: bool,
    /// Its owner wants no pictures of it shown.
    pub(super) has_no_media: bool,
}

/// Lists `directory`, which is `root` or below it. `root` is what a client imports or watches.
pub(super) fn list(root: &Path, directory: &Path, exclude: &Exclude) -> io::Result<Listing> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let has = |is: &dyn Fn(&OsStr) -> bool| entries.iter().any(|one| is(&one.file_name()));
    let is_package = has(&is_manifest);
    let has_no_media = has(&|name| name == NO_MEDIA);
    let is_empty = entries.is_empty();
    let inside = directory.strip_prefix(root).unwrap_or(directory);
    entries.retain(|one| {
        let name = one.file_name();
        let is_directory = || {
            let kind = one.file_type();
            kind.is_ok_and(|kind| kind.is_dir() || kind.is_symlink() && one.path().is_dir())
        };
        let is_excluded =
            || !exclude.is_empty() && exclude.has(&inside.join(&name), is_directory());
        !is_skipped_name(&name) && !is_excluded()
    });
    Ok(Listing {
        entries,
        is_empty,
        is_package,
        has_no_media,
    })
}

/// Whether the listings of the directories between `root` and a file lead to the file, as far as names
/// show.
pub(super) fn is_listed(root: &Path, file: &Path, exclude: &Exclude) -> bool {
    file.strip_prefix(root).is_ok_and(|inside| {
        !inside.iter().any(is_skipped_name) && (exclude.is_empty() || !exclude.covers(inside))
    })
}

/// Whether a file of this name concerns all files of its directory.
pub(super) fn is_mark(name: &OsStr) -> bool {
    name == NO_MEDIA || is_manifest(name)
}

/// Whether the owner of a directory wants no pictures of it shown.
pub(super) fn has_no_media(directory: &Path) -> bool {
    directory.join(NO_MEDIA).exists()
}

/// The stamp of a file, or of a package with all its files.
pub(super) fn stamp_of(path: &Path) -> io::Result<Stamp> {
    let meta = fs::metadata(path)?;
    Ok(if meta.is_dir() {
        package_stamp(path, &meta, &mut |_| ())
    } else {
        stamp(&meta)
    })
}

/// The stamp of a package, which changes with each of its files. `enter` is called with each of its
/// directories before that is listed.
pub(super) fn package_stamp(root: &Path, meta: &Metadata, enter: &mut dyn FnMut(&Path)) -> Stamp {
    let mut whole = Stamp {
        size: 0,
        ..stamp(meta)
    };
    let mut left = PACKAGE_MAX;
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        enter(&directory);
        // An import reports what cannot be read.
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in entries.take(left) {
            left -= 1;
            let Ok(meta) = entry.metadata() else { continue };
            let one = stamp(&meta);
            whole.modified = whole.modified.max(one.modified);
            whole.changed = whole.changed.max(one.changed);
            if meta.is_dir() {
                pending.push(entry.path());
            } else {
                // A sparse file may have any size.
                whole.size = whole.size.saturating_add(one.size);
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_unfinished_and_excluded_files_are_skipped() {
        let exclude = Exclude::new(&["raw/".to_owned()]);
        let check = |path: &str, expected| {
            let found = is_listed(Path::new("/w"), Path::new(path), &exclude);
            assert_eq!(found, expected, "{path}");
        };
        check("/w/a.png", true);
        check("/w/sub/a.png", true);
        check("/w", true);
        check("/w/.a.png", false);
        check("/w/.git/a.png", false);
        check("/w/a.png.part", false);
        check("/w/a.png~", false);
        check("/w/x.tmp/a.png", false);
        check("/w/@eaDir/a.png", false);
        check("/w/a.png.opdownload", false);
        check("/w/raw/a.png", false);
        check("/w/raw", true);
        check("/elsewhere/a.png", false);
    }
}
