//! Watches the file that names the system's time zone, for the thread `clock`.
//!
//! Watches its directory, because tools replace the file or link by a rename. It does not read the
//! zone.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use crate::sys::Inotify;

/// Events by which the file may be replaced.
const CHANGES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);

#[derive(Debug)]
pub(super) struct ZoneWatch {
    inotify: Inotify,
    name: OsString,
}

impl ZoneWatch {
    pub(super) fn start(file: &Path) -> io::Result<Self> {
        let missing = || io::Error::from(io::ErrorKind::InvalidInput);
        let (directory, name) = file.parent().zip(file.file_name()).ok_or_else(missing)?;
        let inotify = Inotify::new()?;
        inotify.watch(directory, CHANGES | WatchFlags::ONLYDIR)?;
        Ok(Self {
            inotify,
            name: name.to_owned(),
        })
    }

    /// Whether the file has changed since the last call. Reads all pending events.
    pub(super) fn has_changed(&mut self) -> bool {
        let mut changed = false;
        self.inotify.read(|event| {
            let is_it = |name: &CStr| name.to_bytes() == self.name.as_bytes();
            changed |= event.file_name().is_some_and(is_it)
                || event.events().contains(ReadFlags::QUEUE_OVERFLOW);
        });
        changed
    }
}

impl AsFd for ZoneWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
