//! The library's directory as a disk has it: copies that are ours until they land, names that are
//! never written over, and what is flushed when. Runs in whoever brings a file in, moves it or
//! removes it; knows no rows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::Error;
use crate::store::images::Checksum;

/// What temporary files in the library's directory begin with.
pub(super) const TEMPORARY: &str = ".murald-import-";
/// Bytes that are read at once.
const BUFFER: usize = 256 << 10;

/// A file or package that is ours and has no row yet; removed unless it is kept.
pub(super) struct Copy {
    pub(super) path: PathBuf,
    pub(super) kept: bool,
    pub(super) checksum: Checksum,
    pub(super) size: u64,
}

impl Copy {
    /// A name in `directory` for what is about to be made; no other copy has this `serial`.
    pub(super) fn new(directory: &Path, serial: u64) -> Self {
        let path = directory.join(format!("{TEMPORARY}{serial}"));
        Self { path, kept: false, checksum: [0; 32], size: 0 }
    }

    /// Fills it with what `file` holds, which is open at `source`.
    pub(super) fn fill(&mut self, source: &Path, file: &mut File) -> Result<(), Error> {
        let mut target = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&self.path)
            .map_err(Error::file("write", &self.path))?;
        // Shares the blocks where the file system can; what is hashed is what we have then.
        let cloned = rustix::fs::ioctl_ficlone(&target, &*file).is_ok();
        self.checksum =
            if cloned { hash(&mut target, &mut io::sink()) } else { hash(file, &mut target) }
                .map_err(Error::file("copy", source))?;
        self.size = target.metadata().map_err(Error::file("read", &self.path))?.len();
        Ok(())
    }

    /// For a file that somebody else has written: on the disk, and with what there is to know.
    pub(super) fn seal(&mut self) -> Result<(), Error> {
        let mut file = File::open(&self.path).map_err(Error::file("read", &self.path))?;
        self.checksum = checksum(&self.path, &mut file)?;
        self.size = file.metadata().map_err(Error::file("read", &self.path))?.len();
        file.sync_all().map_err(Error::file("flush", &self.path))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.kept {
            remove(&self.path).ok();
        }
    }
}

/// Opens a regular file; a pipe without a writer does not hold us up.
pub(super) fn open(path: &Path) -> Result<File, Error> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
        .map_err(Error::file("read", path))?;
    if !file.metadata().map_err(Error::file("read", path))?.is_file() {
        return Err(Error::NotFile { path: path.to_owned() });
    }
    Ok(file)
}

/// SHA-256 of a file from its beginning.
pub(super) fn checksum(path: &Path, file: &mut File) -> Result<Checksum, Error> {
    hash(file, &mut io::sink()).map_err(Error::file("read", path))
}

/// Reads a file from its beginning; what was read goes to `copy`.
fn hash(file: &mut File, copy: &mut dyn Write) -> io::Result<Checksum> {
    io::Seek::rewind(file)?;
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; BUFFER]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(digest.finalize().into()),
            Ok(count) => {
                digest.update(&buffer[..count]);
                copy.write_all(&buffer[..count])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes what is ours: a file, or a package with all that is in it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Renames without ever replacing anything.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // File systems that cannot promise that: a link can.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if from.is_dir() => {
            // A rename replaces a directory only where it is empty: this one cannot be.
            fs::create_dir(to)?;
            fs::rename(from, to)
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        other => Ok(other?),
    }
}

/// So that what was renamed or removed in it stays so after a power loss.
pub(super) fn sync_directory(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::file("flush", path))
}
