//! The control socket of a setter: waited for without polling, and connected to without blocking.
//!
//! Runs on the hand's thread.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::process::{Cancel, Child, Identity};

/// Between bind and listen, and between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Why a wait ended without what was waited for.
#[derive(Debug)]
pub(super) enum NotUp {
    /// The process is gone.
    Ended,
    Late,
    Cancelled,
    Io(io::Error),
}

impl From<io::Error> for NotUp {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The file of a socket. A number alone may come again when the socket is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
}

/// The socket that is at a path now.
pub(super) fn made(path: &Path) -> Option<Made> {
    let metadata = path.symlink_metadata().ok()?;
    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    Some(Made { inode: metadata.ino(), seconds, nanoseconds })
}

/// Connects, to a socket that is there and listened on; never waits. The stream does not block.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// The process that listens on a socket, where the kernel tells. Only for servers that bear a client
/// who says nothing.
pub(super) fn listener(path: &Path) -> Option<Child> {
    let stream = connect(path).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    let child = Child::hold(Identity::of(peer.pid.as_raw_nonzero().get())?)?;
    // Had it ended before we took hold, its number might be another's by now.
    let mut fds = [PollFd::new(&stream, PollFlags::empty())];
    let gone = poll(&mut fds, Some(&Timespec::default())).is_ok_and(|hung_up| hung_up > 0);
    (!gone).then_some(child)
}

/// Connects to a socket that `child` is about to make; `before` is one that was there before: not that.
pub(super) fn connect_when_up(
    path: &Path,
    before: Option<Made>,
    child: &Child,
    until: Instant,
    cancel: &Cancel,
) -> Result<UnixStream, NotUp> {
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let watch = inotify::init(flags).map_err(io::Error::from)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let appear = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, directory, appear).map_err(io::Error::from)?;
    loop {
        let new = made(path).filter(|&made| Some(made) != before);
        if let Some(Ok(stream)) = new.map(|_| connect(path)) {
            return Ok(stream);
        }
        // One that is there and refuses is about to listen; one that is not there is waited for.
        let soon = new.map(|_| Instant::now() + PAUSE);
        let next = soon.map_or(until, |soon| soon.min(until));
        wait(&[watch.as_fd()], child, next, cancel)?;
        if Instant::now() >= until {
            return Err(NotUp::Late);
        }
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut events = inotify::Reader::new(&watch, &mut buffer);
        while events.next().is_ok() {}
    }
}

/// Waits until one of the descriptors can be read, at most until `until`.
pub(super) fn wait(
    fds: &[BorrowedFd<'_>],
    child: &Child,
    until: Instant,
    cancel: &Cancel,
) -> Result<(), NotUp> {
    let mut polled = vec![
        PollFd::new(cancel, PollFlags::IN),
        PollFd::from_borrowed_fd(child.as_fd(), PollFlags::IN),
    ];
    polled.extend(fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
    let left = until.saturating_duration_since(Instant::now());
    match poll(&mut polled, Timespec::try_from(left).ok().as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(NotUp::Io(error.into())),
    }
    if !polled[0].revents().is_empty() {
        return Err(NotUp::Cancelled);
    }
    let readable = polled[2..].iter().any(|fd| !fd.revents().is_empty());
    // What it said before its end is read first.
    if !readable && !polled[1].revents().is_empty() {
        return Err(NotUp::Ended);
    }
    Ok(())
}

/// A pause that ends early when it is cancelled.
pub(super) fn pause(length: Duration, cancel: &Cancel) -> Result<(), super::Error> {
    let mut fds = [PollFd::new(cancel, PollFlags::IN)];
    let until = Instant::now() + length;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => return Ok(()),
            Ok(_) => return Err(super::Error::Cancelled),
            // A signal is main's.
            Err(_) => {}
        }
    }
}
