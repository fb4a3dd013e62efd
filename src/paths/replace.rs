//! Files that others may read at any time: a new one is made beside the old one and takes its name.
//!
//! Runs on whoever writes. What has to outlast a power loss is not for here: its owner flushes it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The beginning of a new file's name until it lands: it hides the file from programs that take all
/// files of a directory, or all of an ending.
pub(crate) const TEMPORARY: &str = ".new-";

/// Writes a file whole or not at all: readers see the old one or the new one. Not flushed: a power
/// loss may leave the name and nothing in it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = Replacement::of(path)?;
    fs::write(&new.path, bytes)?;
    new.land()
}

/// An empty file beside one that it is to replace, for others to fill; removed unless it lands, so that
/// a full disk keeps nothing of it. A file has one at a time.
#[must_use]
pub(crate) struct Replacement {
    path: PathBuf,
    target: PathBuf,
}

impl Replacement {
    /// Makes the directory, too, where it is missing.
    pub(crate) fn of(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut temporary = OsString::from(TEMPORARY);
        temporary.push(name);
        let path = target.with_file_name(temporary);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        File::create(&path)?;
        Ok(Self { path, target: target.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn land(self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // The file is gone if it has landed.
        fs::remove_file(&self.path).ok();
    }
}

/// Makes a directory for the user alone, and those that lead to it, where they are missing.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    let missing = path.ancestors().take_while(|directory| !directory.exists()).count();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let homes = path.ancestors().skip(1).take(missing);
    homes.filter(|home| !home.as_os_str().is_empty()).try_for_each(flush_directory)
}

/// Removes the files of a directory that are not in use. Those that cannot be removed are tried again
/// the next time.
pub(crate) fn remove_unused(directory: &Path, is_used: impl Fn(&Path) -> bool) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| !is_used(path)) {
        fs::remove_file(path).ok();
    }
}

/// So that what was made, renamed or removed in it stays so after a power loss.
pub(crate) fn flush_directory(path: &Path) -> io::Result<()> {
    match File::open(path).and_then(|directory| directory.sync_all()) {
        // Network file systems that have no such thing for directories.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
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
    fn file_is_replaced_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/x.conf");
        let only = [path.clone()];
        let there = || {
            let entries = fs::read_dir(path.parent().unwrap()).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
        };
        for content in ["a", "b"] {
            replace(&path, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(there(), only);
        }
        let half = Replacement::of(&path).unwrap();
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
}
