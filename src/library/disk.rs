//! Handles the files of the library's directory: temporary copies, renames that never replace a file,
//! and flushes. Runs on the calling thread; knows no rows.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::Error;
use crate::decode::{Decoder, Hashed};
use crate::digest::Checksum;
use crate::paths::{self, flush_directory, make_directories};
use crate::wire::Timestamp;

pub(super) use crate::decode::stamp;

/// The prefix of temporary files in the library's directory.
pub(super) const TEMPORARY: &str = ".murald-import-";

/// A file or package that has no row yet. It is removed on drop unless `kept` is set.
pub(super) struct Copy {
    pub(super) path: PathBuf,
    pub(super) kept: bool,
    pub(super) checksum: Checksum,
    pub(super) size: u64,
}

/// A temporary file, which is removed on drop.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(super) fn new(path: PathBuf) -> Self {
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

/// Identifies this run of the daemon, to tell its temporary files from those of earlier runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run(i64);

impl Run {
    pub(super) fn begin() -> Self {
        Self(Timestamp::now().as_micros())
    }

    /// The prefix of this run's temporary files.
    pub(super) fn prefix(self) -> String {
        format!("{TEMPORARY}{:x}-", self.0)
    }
}

/// Creates a directory of the library if it is missing.
pub(super) fn make_directory(path: &Path) -> Result<(), Error> {
    make_directories(path).map_err(Error::file("make", path))
}

/// The files and packages of the library's directory; temporary ones of other runs are removed on the
/// way.
pub(super) fn list(directory: &Path, run: Run) -> Result<HashSet<PathBuf>, Error> {
    let ours = run.prefix();
    let mut files = HashSet::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries.map_err(Error::file("list", directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(Error::file("list", directory))?;
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if !kind.is_file() && !kind.is_dir() {
            continue;
        }
        let name = entry.file_name();
        if let Some(name) = name.to_str().filter(|name| name.starts_with(TEMPORARY)) {
            if name.starts_with(&ours) {
                continue;
            }
            remove(&entry.path())
                .inspect_err(|error| log::warn!("cannot remove {name}: {error}"))
                .ok();
        } else {
            files.insert(entry.path());
        }
    }
    Ok(files)
}

/// Fails if the disk of a file does not answer: a thread that reads the file would hang.
pub(super) fn answers(path: &Path) -> Result<(), Error> {
    let answers = paths::answers(path);
    answers.then_some(()).ok_or_else(|| Error::NoAnswer {
        path: path.to_owned(),
    })
}

/// Whether the directory of a path is missing, so that nothing is known about the file.
pub(super) fn lacks_directory(path: &Path) -> bool {
    path.parent().is_some_and(|home| !home.is_dir())
}

/// Whether a directory is missing, or empty except for temporary files.
pub(super) fn is_bare(directory: &Path) -> bool {
    let is_temporary = |name: &OsStr| name.as_bytes().starts_with(TEMPORARY.as_bytes());
    match fs::read_dir(directory) {
        Ok(mut entries) => {
            entries.all(|entry| entry.is_ok_and(|one| is_temporary(&one.file_name())))
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Whether a file is missing, or a directory of its path is or has become a file. A link that leads to
/// itself counts as broken.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    ) || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Whether nothing has this path, not even a broken link.
pub(super) fn is_gone(path: &Path) -> bool {
    matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// Flushes a copy, which survives a power loss from then on; its name is flushed with its directory.
pub(super) fn flush(copy: &Copy) -> Result<(), Error> {
    let synced = File::open(&copy.path).and_then(|file| file.sync_all());
    synced.map_err(Error::file("flush", &copy.path))
}

impl Copy {
    /// A temporary path in `directory`, where nothing is created yet. `serial` must be unique in this
    /// run.
    pub(super) fn new(directory: &Path, run: Run, serial: u64) -> Self {
        let path = directory.join(format!("{}{serial}", run.prefix()));
        Self {
            path,
            kept: false,
            checksum: [0; 32],
            size: 0,
        }
    }

    pub(super) fn file(&self) -> (&Path, Checksum, u64) {
        (&self.path, self.checksum, self.size)
    }

    /// Copies `source` to the path, and sets the checksum and the size.
    pub(super) fn fill(&mut self, source: &Path, decoder: &Decoder) -> Result<(), Error> {
        let Hashed { checksum, meta } = decoder
            .copy(source, &self.path)
            .map_err(Error::decoding(source))?;
        (self.checksum, self.size) = (checksum, meta.size);
        Ok(())
    }

    /// Sets the checksum and the size of a copy that a program has written, and flushes it.
    pub(super) fn seal(&mut self, decoder: &Decoder) -> Result<(), Error> {
        let Hashed { checksum, meta } = decoder
            .checksum(&self.path)
            .map_err(Error::decoding(&self.path))?;
        (self.checksum, self.size) = (checksum, meta.size);
        flush(self)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.kept {
            remove(&self.path).ok();
        }
    }
}

/// Removes a temporary file, or a package with all that is in it.
fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Renames a file or package; fails if `to` exists.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems do not support `NOREPLACE`.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_by_hand(from, to),
        other => Ok(other?),
    }
}

/// Like [`rename`], but in two steps, of which the first fails if `to` exists.
fn rename_by_hand(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir(to)?;
        // Replaces the new directory only while it is empty.
        return fs::rename(from, to).inspect_err(|_| drop(fs::remove_dir(to)));
    }
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        // Without hard links, as on some FUSE file systems, only a check before the rename is left.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && is_gone(to) => {
            fs::rename(from, to)
        }
        Err(error) => Err(error),
    }
}

/// Flushes a directory, so that renames and removals in it survive a power failure.
pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    flush_directory(path).map_err(Error::file("flush", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rename_by_hand_replaces_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "file").unwrap();
        fs::create_dir(at("full")).unwrap();
        fs::write(at("full/x"), "").unwrap();
        for taken in ["file", "full"] {
            for from in ["file", "full"] {
                let refused = rename_by_hand(&at(from), &at(taken)).unwrap_err();
                assert_eq!(
                    refused.kind(),
                    io::ErrorKind::AlreadyExists,
                    "{from} to {taken}"
                );
            }
        }
        rename_by_hand(&at("file"), &at("other")).unwrap();
        rename_by_hand(&at("full"), &at("moved")).unwrap();
        assert!(is_gone(&at("file")) && is_gone(&at("full")));
        assert_eq!(fs::read(at("other")).unwrap(), b"file");
        assert!(at("moved/x").is_file());
    }
}
