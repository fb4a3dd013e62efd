//! Replaces files that others may read at any time: a new file is written beside the old one and
//! renamed.
//!
//! Runs on the calling thread.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Prefix of a new file's name before the rename: hides it from programs that read all files of a
/// directory, or all with an extension.
pub(crate) const TEMPORARY: &str = ".new-";

/// Replaces a file atomically: readers see the old content or the new. Not flushed, so the file may
/// be empty after a power loss.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = Replacement::create(path)?;
    fs::write(&new.path, bytes)?;
    new.land()
}

/// A new, empty file beside the one it is to replace, to be filled by the caller. Dropping it
/// without [`Self::land`] removes it, for example if the disk is full. Each target has one at a
/// time.
#[must_use]
pub(crate) struct Replacement {
    path: PathBuf,
    target: PathBuf,
    has_landed: bool,
}

impl Replacement {
    /// Creates the file, and the directory if it is missing.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut temporary = OsString::from(TEMPORARY);
        temporary.push(name);
        let path = target.with_file_name(temporary);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        // A killed daemon may have left one. A link of this name is not followed.
        fs::remove_file(&path).ok();
        let mut new = OpenOptions::new();
        new.write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self {
            path,
            target: target.to_owned(),
            has_landed: false,
        })
    }

    /// Writes and flushes the whole file, with this mode: before the rename, or a power loss could
    /// leave an empty file.
    pub(crate) fn fill(&self, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Exchanges the file with its target, which must exist. Not all file systems can do that.
    pub(crate) fn exchange(&self) -> io::Result<()> {
        let (one, other) = (&self.path, &self.target);
        Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
    }

    /// Gives the file the name of its target as well; fails if a file has that name. Not all file
    /// systems can do that.
    pub(crate) fn link(&self) -> io::Result<()> {
        fs::hard_link(&self.path, &self.target)
    }

    pub(crate) fn land(mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)?;
        self.has_landed = true;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // After the rename, the name may be that of another new file.
        if !self.has_landed {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Creates a directory and its missing parents, accessible by the user only.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    let missing = path
        .ancestors()
        .take_while(|directory| !directory.exists())
        .count();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let homes = path.ancestors().skip(1).take(missing);
    homes
        .filter(|home| !home.as_os_str().is_empty())
        .try_for_each(flush_directory)
}

/// Removes the unused files of a directory. Files that cannot be removed are retried at the next
/// call.
pub(crate) fn remove_unused(directory: &Path, is_used: impl Fn(&Path) -> bool) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries
        .map(|entry| entry.path())
        .filter(|path| !is_used(path))
    {
        remove_leftover(&path);
    }
}

/// Removes a file, or a temporary directory that a killed program has left. Other directories stay, as
/// murald has not made them.
pub(crate) fn remove_leftover(path: &Path) {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_temporary = name.starts_with(TEMPORARY.as_bytes());
    if fs::remove_file(path).is_err() && is_temporary {
        fs::remove_dir_all(path).ok();
    }
}

/// Flushes a directory, so that creations, renames and removals in it survive a power loss.
pub(crate) fn flush_directory(path: &Path) -> io::Result<()> {
    match File::open(path).and_then(|directory| directory.sync_all()) {
        // Some network file systems do not support this for directories.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        flushed => flushed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_atomically() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/x.conf");
        let only = [path.clone()];
        let there = || {
            let entries = fs::read_dir(path.parent().unwrap()).unwrap();
            entries
                .map(|entry| entry.unwrap().path())
                .collect::<Vec<_>>()
        };
        for content in ["a", "b"] {
            replace(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(there(), only);
        }
        let half = Replacement::create(&path).unwrap();
        fs::write(half.path(), "half").unwrap();
        assert_eq!(there().len(), 2, "it is beside the old one");
        drop(half);
        assert_eq!(fs::read_to_string(&path).unwrap(), "b");
        assert_eq!(there(), only);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"c").is_err(), "a directory has its name");
        assert_eq!(there(), only);
    }

    #[test]
    fn only_temporary_directories_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".new-1.png.d", "of the user"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("file"), "").unwrap();
        }
        fs::write(dir.path().join("unused"), "").unwrap();
        remove_unused(dir.path(), |_| false);
        let left = fs::read_dir(dir.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["of the user"]);
    }
}
