//! Reads from a connection to the compositor, with waits that can be cancelled.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use serde_json::Value;

use crate::sys::{Cancel, connect, is_readable, peer, poll_until};

/// The most bytes that are held: more than any list of workspaces has.
const HELD_MAX: usize = 4 << 20;
/// Compositors answer requests from memory, within a frame.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The workspace that an output shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visible {
    pub(crate) output: String,
    /// The compositor's name, such as `1:web`.
    pub(crate) name: String,
    /// Its place in the order; 0 and below have none.
    pub(crate) place: i64,
}

pub(super) struct Feed {
    stream: UnixStream,
    /// Bytes that were received and not parsed yet.
    pub(super) bytes: Vec<u8>,
}

/// Sends a request over a connection of its own, and returns the answer, which is JSON. Hyprland closes
/// the connection after the answer, niri keeps it open.
pub(crate) fn ask(path: &Path, request: &[u8], cancel: &Cancel) -> io::Result<Value> {
    let until = Instant::now() + ANSWER_WITHIN;
    let mut feed = Feed::connect(path)?;
    feed.send(request)?;
    loop {
        let is_open = feed.more(cancel, Some(until))?;
        match serde_json::from_slice(&feed.bytes) {
            Err(error) if error.is_eof() && is_open => {}
            answer => return Ok(answer?),
        }
    }
}

impl Feed {
    /// Never waits: a compositor that does not accept connections counts as missing.
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self {
            stream: connect(path)?,
            bytes: Vec::new(),
        })
    }

    /// The process that listens at the other end.
    pub(super) fn peer(&self) -> Option<u32> {
        u32::try_from(peer(&self.stream).ok()?.pid).ok()
    }

    /// Sends a request of a few bytes, which the socket takes at once unless the peer hangs.
    pub(super) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request)
    }

    /// Waits for more bytes; returns false when the peer has closed the connection.
    pub(super) fn more(&mut self, cancel: &Cancel, until: Option<Instant>) -> io::Result<bool> {
        loop {
            let mut fds = [
                PollFd::new(&self.stream, PollFlags::IN),
                PollFd::new(cancel, PollFlags::IN),
            ];
            if !poll_until(&mut fds, until)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !fds[1].revents().is_empty() {
                return Err(io::Error::other("cancelled"));
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(_) if self.bytes.len() > HELD_MAX => {
                    return Err(io::Error::other("its message is too long"));
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

    /// Whether there is input that was not read yet.
    pub(super) fn is_behind(&self) -> bool {
        is_readable(&self.stream)
    }
}
