//! The results of programs. A program can write only to a fresh directory beside the file that it makes,
//! and only a regular file is taken out of that directory. Runs on the calling thread.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, statvfs};
use rustix::io::Errno;

use super::error::Error;

/// The usual name of a result; some programs choose the format by the extension.
pub(super) const RESULT: &str = "result.png";
/// A disk with fewer free bytes counts as full: programs write about as much at once.
const FULL: u64 = 1 << 20;

/// The directory of one program; it is removed when this is dropped.
pub(super) struct Fresh {
    pub(super) directory: PathBuf,
    to: PathBuf,
}

impl Fresh {
    /// Creates the directory for a program that makes the file `to`.
    pub(super) fn beside(to: &Path) -> Result<Self, Error> {
        let mut directory = to.as_os_str().to_owned();
        directory.push(".d");
        let fresh = Self {
            directory: directory.into(),
            to: to.to_owned(),
        };
        // A daemon that was killed leaves its directory.
        fs::remove_dir_all(&fresh.directory).ok();
        let made = DirBuilder::new().mode(0o700).create(&fresh.directory);
        made.map_err(|source| fresh.unwritable(source))?;
        Ok(fresh)
    }

    /// The path to which the program writes its result.
    pub(super) fn result(&self) -> PathBuf {
        self.directory.join(RESULT)
    }

    /// Moves a result of the program to its place, and opens it. The program cannot reach it there.
    pub(super) fn take(&self, name: &str) -> io::Result<File> {
        fs::rename(self.directory.join(name), &self.to)?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = File::options()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(&self.to);
        let is_file = |file: &File| file.metadata().is_ok_and(|metadata| metadata.is_file());
        opened.ok().filter(is_file).ok_or_else(|| {
            fs::remove_file(&self.to).ok();
            io::ErrorKind::InvalidInput.into()
        })
    }

    /// Takes a PNG; returns whether there is one with its end chunk, as not every program reports that
    /// the disk is full.
    pub(super) fn take_png(&self, name: &str) -> bool {
        let mut end = [0; 12];
        let read = self.take(name).and_then(|mut file| {
            file.seek(SeekFrom::End(-12))?;
            file.read_exact(&mut end)
        });
        read.is_ok() && end == *b"\0\0\0\0IEND\xaeB`\x82"
    }

    /// The error of a program that failed: that of the disk if it is full. Removes the result.
    pub(super) fn blamed(&self, error: Error) -> Error {
        fs::remove_file(&self.to).ok();
        let disk = statvfs(&self.directory);
        let is_full = disk.is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < FULL);
        match error {
            Error::Ended => Error::Ended,
            _ if is_full => self.unwritable(Errno::NOSPC.into()),
            error => error,
        }
    }

    fn unwritable(&self, source: io::Error) -> Error {
        Error::Write {
            path: self.to.clone(),
            source,
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_and_whole_pictures_are_taken() {
        let home = tempfile::tempdir().unwrap();
        let (to, own) = (home.path().join("a.png"), home.path().join("own.png"));
        image::RgbImage::new(1, 1).save(&own).unwrap();
        let png = fs::read(&own).unwrap();
        let check = |make: &dyn Fn(&Path), is_taken| {
            let fresh = Fresh::beside(&to).unwrap();
            make(&fresh.result());
            assert_eq!(fresh.take_png(RESULT), is_taken);
            assert_eq!(to.symlink_metadata().is_ok_and(|it| it.is_file()), is_taken);
            let error = fresh.blamed(Error::NoPicture);
            assert!(matches!(error, Error::NoPicture), "{error}");
            drop(fresh);
            assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        };
        check(&|result| fs::write(result, &png).unwrap(), true);
        check(&|_| {}, false);
        check(&|result| symlink(&own, result).unwrap(), false);
        let pipe = |result: &Path| {
            mknodat(CWD, result, FileType::Fifo, Mode::RWXU, 0).unwrap();
        };
        check(&pipe, false);
        assert_eq!(fs::read(&own).unwrap(), png);
    }

    #[test]
    fn result_without_its_end_is_no_picture() {
        let home = tempfile::tempdir().unwrap();
        let fresh = Fresh::beside(&home.path().join("a.png")).unwrap();
        for bytes in [&b""[..], b"..IEND\xaeB`"] {
            fs::write(fresh.result(), bytes).unwrap();
            assert!(!fresh.take_png(RESULT), "{bytes:?}");
        }
    }
}
