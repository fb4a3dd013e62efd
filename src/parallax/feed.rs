//! A connection to the compositor that is waited on without blocking past a cancel.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::process::Cancel;

/// More than any list of workspaces; a peer that sends more without an end is none that we know.
const HELD_MAX: usize = 4 << 20;

pub(super) struct Feed {
    stream: UnixStream,
    /// What has come and was not taken yet.
    pub(super) bytes: Vec<u8>,
}

impl Feed {
    /// Never waits: a compositor that does not accept is one that is not there.
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self { stream: socket.into(), bytes: Vec::new() })
    }

    /// The process that listens at the other end.
    pub(super) fn peer(&self) -> Option<u32> {
        let peer = sockopt::socket_peercred(&self.stream).ok()?;
        u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
    }

    /// For requests of a few bytes: a peer that does not even take those hangs.
    pub(super) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }

    /// Waits for more bytes; `false` when the peer has closed.
    pub(super) fn more(&mut self, cancel: &Cancel, until: Option<Instant>) -> io::Result<bool> {
        loop {
            let mut fds =
                [PollFd::new(&self.stream, PollFlags::IN), PollFd::new(cancel, PollFlags::IN)];
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) if !fds[1].revents().is_empty() => {
                    return Err(io::Error::other("no longer wanted"));
                }
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(_) if self.bytes.len() > HELD_MAX => {
                    return Err(io::Error::other("it sends without an end"));
                }
                Ok(count) => {
                    self.bytes.extend_from_slice(&chunk[..count]);
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether something has come that was not read yet.
    pub(super) fn is_behind(&self) -> bool {
        let mut fds = [PollFd::new(&self.stream, PollFlags::IN)];
        let now = Timespec::try_from(Duration::ZERO).ok();
        poll(&mut fds, now.as_ref()).is_ok_and(|ready| ready > 0)
    }
}
