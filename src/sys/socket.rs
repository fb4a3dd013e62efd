//! Connections to sockets of this machine that never make us wait. `clippy.toml` forbids the standard
//! library's: where a server takes nobody in, as one that was stopped, they wait without an end.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connects to a socket that is listened on. One whose queue is full is as one that is not there.
/// The stream does not block.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Whether anybody listens on a socket, also where its queue is full.
pub(crate) fn is_listened_on(path: &Path) -> bool {
    connect(path).as_ref().map_or_else(is_queue_full, |_| true)
}

/// Why a connection failed: somebody listens, and has not taken in those before us.
pub(crate) fn is_queue_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_place_in_a_queue() {
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
