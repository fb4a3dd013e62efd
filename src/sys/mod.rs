//! Thin wrappers over the kernel: interruptible waits, sockets, and file and device events.
//!
//! Everything runs on the calling thread.

mod kernel_events;
mod wait;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

pub(crate) use kernel_events::{Inotify, Uevents, on_the_way_to};
pub use wait::Cancel;
pub(crate) use wait::{
    CancelOnDrop, Gate, Timer, Waker, is_readable, lock, poll_until, read, unpoisoned, write,
};

/// Connects to a listening socket; fails if its queue is full. The stream is non-blocking.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Whether a process listens on the socket, even if its queue is full.
pub(crate) fn is_listened_on(path: &Path) -> bool {
    connect(path).as_ref().map_or_else(is_queue_full, |_| true)
}

/// Whether the connection failed because the server has not accepted earlier clients yet.
pub(crate) fn is_queue_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// The process at the other end of a connection, and its user. A process outside our PID namespace is 0,
/// which rustix's type cannot express.
pub(crate) fn peer(socket: &impl AsFd) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as u32;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let to = (&raw mut peer).cast();
    // SAFETY: the kernel writes at most `length` bytes, the size of `peer`.
    let failed =
        unsafe { libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, to, &raw mut length) };
    if failed == 0 {
        Ok(peer)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The process group of a process; `None` if its leader is outside our PID namespace, too.
pub(crate) fn process_group(pid: i32) -> Option<i32> {
    // SAFETY: only asks the kernel. 0 would stand for this process.
    (pid > 0)
        .then(|| unsafe { libc::getpgid(pid) })
        .filter(|&group| group > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_to_a_full_queue_fails_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        assert!(!is_listened_on(&path));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let mut crowd = Vec::new();
        let error = loop {
            match connect(&path) {
                Ok(one) => crowd.push(one),
                Err(error) => break error,
            }
        };
        assert!(is_queue_full(&error) && is_listened_on(&path), "{error}");
        drop(listener);
        assert!(!is_listened_on(&path));
    }
}
