//! The log file and its rotation: the current file keeps its name, older ones are `.1`, `.2`...
//!
//! Also the settings of the log. A file that cannot be written never stops the daemon.
//!
//! flexi_logger's own rotation would give the current file a name with an infix.

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
    /// Nothing is opened yet.
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
        // A pipe without reader must not block, and a terminal must not become our controlling terminal.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags.bits() as i32)
            .open(&self.path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            // A line might wait for its reader, and a device would be renamed at the first rotation.
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        Ok(Open { file, size: found.len() })
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    /// Writes whole lines.
    pub(super) fn write(&self, lines: &[u8]) -> io::Result<()> {
        let mut open = self.lock();
        if open
            .as_ref()
            .is_some_and(|open| open.size > 0 && open.size + lines.len() as u64 > self.max_size)
        {
            // The log goes on if the file was removed or cannot be renamed.
            self.rotate().ok();
            if let Ok(new) = self.opened() {
                *open = Some(new);
            }
        }
        if let Some(open) = open.as_mut() {
            // One write per line, so that lines of several threads never mix.
            open.file.write_all(lines)?;
            open.size += lines.len() as u64;
        }
        Ok(())
    }

    /// Removes the oldest file and renames each other one to the next number.
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
        // At worst, a thread that panicked leaves a truncated line.
        lock(&self.open)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub level: LevelFilter,
    pub file: PathBuf,
    /// Bytes at which the file is rotated.
    pub max_size: u64,
    /// Rotated files that are kept.
    pub backups: u32,
}

/// The lowest level that stderr gets, and whether people read it there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stderr {
    pub(super) level: LevelFilter,
    pub(super) is_terminal: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_rotated_by_size_and_old_files_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log/daemon.log");
        let level = log::LevelFilter::Info;
        let settings = Settings { level, file: path.clone(), max_size: 10, backups: 2 };
        let file = RotatedFile::new(&settings);
        file.reopen().unwrap();
        for line in
            ["1234567\n", "2\n", "3\n", "4567890\n", "a line longer than the limit\n", "6\n"]
        {
            file.write(line.as_bytes()).unwrap();
        }
        let read = |suffix: &str| fs::read_to_string(format!("{}{suffix}", path.display())).ok();
        assert_eq!(read("").as_deref(), Some("6\n"));
        assert_eq!(read(".1").as_deref(), Some("a line longer than the limit\n"));
        assert_eq!(read(".2").as_deref(), Some("3\n4567890\n"));
        assert_eq!(read(".3"), None);
    }

    #[test]
    fn log_survives_removed_file_and_failed_rotation() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.log");
        let level = log::LevelFilter::Info;
        let settings = Settings { level, file: path.clone(), max_size: 10, backups: 1 };
        let file = RotatedFile::new(&settings);
        file.reopen().unwrap();
        file.write(b"1234567\n").unwrap();
        fs::remove_file(&path).unwrap();
        file.write(b"abcdefg\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcdefg\n");
        // A directory cannot be replaced.
        fs::create_dir_all(directory.path().join("daemon.log.1/x")).unwrap();
        file.write(b"ABCDEFG\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abcdefg\nABCDEFG\n");
    }

    #[test]
    fn log_is_never_a_pipe_or_a_device() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        for path in [pipe, "/dev/null".into()] {
            let level = log::LevelFilter::Info;
            let file = RotatedFile::new(&Settings { level, file: path, max_size: 1, backups: 1 });
            assert!(file.reopen().is_err());
            file.write(b"nowhere\n").unwrap();
        }
        assert!(fs::metadata("/dev/null").unwrap().len() == 0 && fs::metadata("/dev/null").is_ok());
    }

    #[test]
    fn log_file_moved_away_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.log");
        let level = log::LevelFilter::Info;
        let settings = Settings { level, file: path.clone(), max_size: 1000, backups: 1 };
        let file = RotatedFile::new(&settings);
        file.reopen().unwrap();
        fs::rename(&path, directory.path().join("old")).unwrap();
        file.reopen().unwrap();
        file.write(b"new\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new\n");
    }
}
