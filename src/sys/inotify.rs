//! What happens to files, as the kernel tells it. Reading never blocks.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, Event, WatchFlags};

/// Readable when something has happened to what it watches.
#[derive(Debug)]
pub(crate) struct Inotify(OwnedFd);

impl Inotify {
    /// Fails where the user's other programs have used up what there is.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches a file or a directory; a second time it only changes for what.
    pub(crate) fn watch(&self, path: &Path, what: WatchFlags) -> io::Result<()> {
        inotify::add_watch(&self.0, path, what)?;
        Ok(())
    }

    /// Reads all that has come.
    pub(crate) fn read(&self, mut each: impl FnMut(&Event<'_>)) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        while let Ok(event) = reader.next() {
            each(&event);
        }
    }

    /// Reads all that has come, where it matters only that something has.
    pub(crate) fn drain(&self) {
        self.read(|_| ());
    }
}

impl AsFd for Inotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
