//! What happens to files, as the kernel tells it. Reading never blocks.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, Event, WatchFlags};
use rustix::io::Errno;

/// Readable when something has happened to what it watches.
#[derive(Debug)]
pub(crate) struct Inotify(OwnedFd);

impl Inotify {
    /// Fails if the user's other programs have used up what there is.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let made = inotify::init(flags).map_err(|errno| match errno {
            // Of the process's descriptors, too: those are raised to the most that it may have.
            Errno::MFILE => no_watches_left("instances"),
            errno => errno.into(),
        });
        Ok(Self(made?))
    }

    /// Watches a file or a directory; a second time it only changes for what.
    pub(crate) fn watch(&self, path: &Path, what: WatchFlags) -> io::Result<()> {
        match inotify::add_watch(&self.0, path, what) {
            Ok(_) => Ok(()),
            Err(Errno::NOSPC) => Err(no_watches_left("watches")),
            Err(errno) => Err(errno.into()),
        }
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

/// The user has used up the `instances` or `watches`: what to do about it.
pub(crate) fn no_watches_left(what: &str) -> io::Error {
    let why =
        format!("the kernel allows no more watches: raise the sysctl fs.inotify.max_user_{what}");
    io::Error::new(io::ErrorKind::QuotaExceeded, why)
}

impl AsFd for Inotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
