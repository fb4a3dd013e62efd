//! Connects to the control socket of a backend: looks for its file every 20 ms while the backend starts,
//! without a watch of the kernel, of which a user has few. Reads answers with a time limit.
//!
//! Runs on the worker's thread.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::Error;
use crate::process::{BackendProcess, Child, Identity};
use crate::sys::{Cancel, connect, peer, poll_until};

/// The time between two looks for a socket or a line of a log.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
/// The same for a process that is not visible and may stay so for hours.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// How long a process takes at most to make its socket, unless it is not visible.
const SOON: Duration = Duration::from_secs(10);

/// The reason why a wait has failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotUp {
    #[error("it exited")]
    Ended,
    #[error("it does not answer in time")]
    Late,
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl NotUp {
    /// Converts this to a backend's error, with the last output of its process.
    pub(super) fn error(self, of: impl Display, process: Option<&BackendProcess>) -> Error {
        match (self, process) {
            (Self::Cancelled, _) => Error::Cancelled,
            (why @ (Self::Ended | Self::Late), Some(process)) => {
                Error::Unavailable(format!("{of}: {why}: {}", process.last_words()))
            }
            (why, _) => Error::Unavailable(format!("{of}: {why}")),
        }
    }
}

/// The identity of a socket file: its inode, which a later socket may reuse, and the time of its last
/// change.
pub(super) type SocketFile = (u64, i64, i64);

/// The socket that is at a path now.
pub(super) fn made(path: &Path) -> Option<SocketFile> {
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
}

/// The process that listens on a socket, if the kernel reports it. Only for servers that tolerate a
/// client that sends nothing.
pub(super) fn listener(path: &Path) -> Option<Child> {
    let stream = connect(path).ok()?;
    let child = Child::hold(Identity::from_pid(peer(&stream).ok()?.pid)?)?;
    // If the process ended before its pidfd was opened, another process may have its PID by now.
    let mut fds = [PollFd::new(&stream, PollFlags::empty())];
    let gone = poll_until(&mut fds, Some(Instant::now())).unwrap_or(false);
    (!gone).then_some(child)
}

/// Sends a request to a server that answers and then closes the connection; returns the answer.
pub(super) fn ask(
    path: &Path,
    request: &str,
    limit: Duration,
    cancel: &Cancel,
) -> Result<String, NotUp> {
    let until = Instant::now() + limit;
    let mut stream = connect(path).map_err(|error| at(path, error))?;
    // The message is far smaller than the socket's buffer, so this does not block.
    let said = stream.write_all(request.as_bytes());
    let said = said.and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    said.map_err(|error| at(path, error))?;
    let answer = read_answer(&mut stream, None, until, cancel, |_| false);
    let answer = answer.map_err(|not_up| match not_up {
        NotUp::Io(error) => NotUp::Io(at(path, error)),
        other => other,
    })?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Reads an answer until the server closes the connection, or until the answer `is_whole`.
pub(super) fn read_answer(
    stream: &mut UnixStream,
    child: Option<&Child>,
    until: Instant,
    cancel: &Cancel,
    is_whole: impl Fn(&[u8]) -> bool,
) -> Result<Vec<u8>, NotUp> {
    /// More than any answer.
    const ANSWER_MAX: usize = 1 << 20;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while answer.len() < ANSWER_MAX && !is_whole(&answer) {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() >= until {
                    return Err(NotUp::Late);
                }
                wait(&[stream.as_fd()], child, until, cancel)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(answer)
}

/// Adds a path to an error.
fn at(path: &Path, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Connects to a socket that `child` is about to create; a socket that is still `before` is an old one.
/// The directory may not exist yet either.
pub(super) fn connect_when_up(
    path: &Path,
    before: Option<SocketFile>,
    child: &Child,
    until: Instant,
    cancel: &Cancel,
) -> Result<UnixStream, NotUp> {
    let began = Instant::now();
    loop {
        let new = made(path).filter(|&made| Some(made) != before);
        if let Some(Ok(stream)) = new.map(|_| connect(path)) {
            return Ok(stream);
        }
        let now = Instant::now();
        if now >= until {
            return Err(NotUp::Late);
        }
        let pause = if now - began < SOON {
            PAUSE
        } else {
            LONG_PAUSE
        };
        wait(&[], Some(child), until.min(now + pause), cancel)?;
    }
}

/// Waits until one of the descriptors can be read, at most until `until`.
pub(super) fn wait(
    fds: &[BorrowedFd<'_>],
    child: Option<&Child>,
    until: Instant,
    cancel: &Cancel,
) -> Result<(), NotUp> {
    let all = [cancel.as_fd()].into_iter().chain(fds.iter().copied());
    let all = all.chain(child.map(AsFd::as_fd));
    let mut polled: Vec<_> = all
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    poll_until(&mut polled, Some(until))?;
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    if is_ready(&polled[0]) {
        return Err(NotUp::Cancelled);
    }
    // Data from before the exit of the process is read first.
    let (readable, ended) = polled[1..].split_at(fds.len());
    let has_ended = ended.iter().any(is_ready) && !readable.iter().any(is_ready);
    if has_ended { Err(NotUp::Ended) } else { Ok(()) }
}

/// A pause that ends early when it is cancelled.
pub(super) fn pause(length: Duration, cancel: &Cancel) -> Result<(), Error> {
    let mut fds = [PollFd::new(cancel, PollFlags::IN)];
    match poll_until(&mut fds, Some(Instant::now() + length)) {
        Ok(true) => Err(Error::Cancelled),
        Ok(false) | Err(_) => Ok(()),
    }
}
