//! The file that names the system's time zone, watched. Run by the thread `clock`.
//!
//! It watches the directory, because tools replace the file or the link by a rename. It never reads
//! the zone itself.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Whatever may put another file under the name.
const CHANGES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);

#[derive(Debug)]
pub(super) struct ZoneWatch {
    inotify: OwnedFd,
    name: OsString,
}

impl ZoneWatch {
    pub(super) fn start(file: &Path) -> io::Result<Self> {
        let missing = || io::Error::from(io::ErrorKind::InvalidInput);
        let (directory, name) = file.parent().zip(file.file_name()).ok_or_else(missing)?;
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&inotify, directory, CHANGES | WatchFlags::ONLYDIR)?;
        Ok(Self { inotify, name: name.to_owned() })
    }

    /// Whether the file has changed since the last time. Reads all that has come.
    pub(super) fn has_changed(&mut self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut changed = false;
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| OsString::from_vec(name.to_bytes().to_vec()));
            changed |= name.as_ref() == Some(&self.name)
                || event.events().contains(ReadFlags::QUEUE_OVERFLOW);
        }
        changed
    }
}

impl AsFd for ZoneWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// Has the zone looked up anew when it is next asked for.
pub(super) fn forget() {
    jiff::tz::reset_system_time_zone_cache();
    jiff::tz::db().reset();
}
