//! The log file and its rotation: the current file keeps its name, older ones get the suffixes
//! `.1`, `.2` and so on.
//!
//! A file that cannot be written does not stop the daemon. flexi_logger's own rotation is not used,
//! as it adds an infix to the current file's name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use log::LevelFilter;
use rustix::fs::OFlags;

use crate::paths::make_directories;
use crate::sys::lock;

#[derive(Debug)]
pub(super) struct RotatedFile {
    path: PathBuf,
    max_size: u64,
    backups: u32,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
}

impl RotatedFile {
    /// Does not open the file yet.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            path: settings.file.clone(),
            max_size: settings.max_size,
            backups: settings.backups,
            open: Mutex::new(None),
        }
    }

    pub(super) fn reopen(&self) -> io::Result<()> {
        let mut open = self.lock();
        *open = None;
        *open = Some(self.opened()?);
        Ok(())
    }

    fn opened(&self) -> io::Result<Open> {
        if let Some(directory) = self.path.parent() {
            make_directories(directory)?;
        }
        // Opening a pipe must not block, and a terminal must not become the controlling terminal.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags.bits() as i32)
            .open(&self.path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            // Writing to a pipe might block, and a device would be renamed at the first rotation.
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            ));
        }
        Ok(Open {
            file,
            size: found.len(),
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    /// Writes complete lines, after rotating the file if necessary.
    pub(super) fn write(&self, lines: &[u8]) -> io::Result<()> {
        let mut open = self.lock();
        if open
            .as_ref()
            .is_some_and(|open| open.size > 0 && open.size + lines.len() as u64 > self.max_size)
        {
            // Continue with the open file if it cannot be renamed.
            self.rotate().ok();
            if let Ok(new) = self.opened() {
                *open = Some(new);
            }
        }
        if let Some(open) = open.as_mut() {
            // Lines are written as a whole, so that those of several threads do not mix.
            open.file.write_all(lines)?;
            open.size += lines.len() as u64;
        }
        Ok(())
    }

    /// Renames each file to the next number, overwriting the oldest.
    fn rotate(&self) -> io::Result<()> {
        for number in (1..self.backups).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.numbered(1))
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        // A thread that panicked may leave a truncated line, but nothing worse.
        lock(&self.open)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub level: LevelFilter,
    pub file: PathBuf,
    /// The size in bytes at which the file is rotated.
    pub max_size: u64,
    /// Number of rotated files to keep.
    pub backups: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_rotated_by_size_and_old_files_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log/daemon.log");
        let level = log::LevelFilter::Info;
        let settings = Settings {
            level,
            file: path.clone(),
            max_size: 10,
            backups: 2,
        };
        let file = RotatedFile::new(&settings);
        file.reopen().unwrap();
        for line in [
            "1234567\n",
            "2\n",
            "3\n",
            "4567890\n",
            "a line longer than the limit\n",
            "6\n",
        ] {
            file.write(line.as_bytes()).unwrap();
        }
        let read = |suffix: &str| fs::read_to_string(format!("{}{suffix}", path.display())).ok();
        assert_eq!(read("").as_deref(), Some("6\n"));
        assert_eq!(
            read(".1").as_deref(),
            Some("a line longer than the limit\n")
        );
        assert_eq!(read(".2").as_deref(), Some("3\n4567890\n"));
        assert_eq!(read(".3"), None);
    }

    #[test]
    fn log_survives_a_removed_file_and_a_failed_rotation() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.log");
        let level = log::LevelFilter::Info;
        let settings = Settings {
            level,
            file: path.clone(),
            max_size: 10,
            backups: 1,
        };
        let file = RotatedFile::new(&settings);
        file.reopen().unwrap();
        file.write(b"1234567\n").unwrap();
        fs::remove_file(&path).unwrap();
        file.write(b"abcdefg\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcdefg\n");
        // A directory in the way cannot be overwritten.
        fs::create_dir_all(directory.path().join("daemon.log.1/x")).unwrap();
        file.write(b"ABCDEFG\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcdefg\nABCDEFG\n");
    }

    #[test]
    fn log_is_not_written_to_a_pipe_or_device() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        for path in [pipe, "/dev/null".into()] {
            let level = log::LevelFilter::Info;
            let file = RotatedFile::new(&Settings {
                level,
                file: path,
                max_size: 1,
                backups: 1,
            });
            assert!(file.reopen().is_err());
            file.write(b"nowhere\n").unwrap();
        }
        assert!(fs::metadata("/dev/null").unwrap().len() == 0 && fs::metadata("/dev/null").is_ok());
    }

    #[test]
    fn moved_log_file_is_created_again_when_reopened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.log");
        let level = log::LevelFilter::Info;
        let settings = Settings {
            level,
            file: path.clone(),
            max_size: 1000,
            backups: 1,
        };
        let file = RotatedFile::new(&settings);
        file.reopen().unwrap();
        fs::rename(&path, directory.path().join("old")).unwrap();
        file.reopen().unwrap();
        file.write(b"new\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new\n");
    }
}
