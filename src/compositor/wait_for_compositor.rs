//! Waits for events of a Wayland compositor, for each connection to it. Runs on the thread `outputs`.

use std::io::ErrorKind;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use wayland_client::EventQueue;
use wayland_client::backend::WaylandError;

use crate::sys::{Cancel, poll_until};

pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;

/// Sends what is to be sent and waits for more; `false` when the wait is cancelled.
pub(super) fn receive<Of>(
    queue: &EventQueue<Of>,
    stop: &Cancel,
    until: Option<Instant>,
) -> Result<bool, Error> {
    let mut wanted = PollFlags::IN;
    match queue.flush() {
        // The socket is full: send the remainder when it accepts more.
        Err(WaylandError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
            wanted |= PollFlags::OUT;
        }
        flushed => flushed?,
    }
    let Some(guard) = queue.prepare_read() else { return Ok(true) };
    let connection = guard.connection_fd();
    let mut fds = [PollFd::new(stop, PollFlags::IN), PollFd::new(&connection, wanted)];
    if poll_until(&mut fds, until).is_err() {
        return Ok(true);
    }
    let [stopped, readable] = fds.map(|fd| fd.revents());
    if !stopped.is_empty() {
        return Ok(false);
    }
    if readable.difference(PollFlags::OUT).is_empty() {
        return Ok(true);
    }
    match guard.read() {
        Err(WaylandError::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        read => Ok(read.map(|_| true)?),
    }
}
