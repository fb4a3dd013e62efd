//! Waits on a Wayland connection, together with other descriptors.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use wayland_client::EventQueue;
use wayland_client::backend::WaylandError;

use crate::sys::poll_until;

/// Sends the requests, and waits until the compositor or another descriptor can be read, or the deadline
/// has passed.
pub(crate) fn wait_for_compositor<Of>(
    queue: &EventQueue<Of>,
    others: &[BorrowedFd<'_>],
    until: Option<Instant>,
) -> Result<(), WaylandError> {
    let mut wanted = PollFlags::IN;
    match queue.flush() {
        // The socket is full: the remainder is sent when the compositor has read some.
        Err(WaylandError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
            wanted |= PollFlags::OUT;
        }
        flushed => flushed?,
    }
    let Some(guard) = queue.prepare_read() else {
        return Ok(());
    };
    let connection = guard.connection_fd();
    let mut fds = vec![PollFd::new(&connection, wanted)];
    fds.extend(others.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
    poll_until(&mut fds, until)?;
    if fds[0].revents().difference(PollFlags::OUT).is_empty() {
        return Ok(());
    }
    match guard.read() {
        Err(WaylandError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        read => read.map(drop),
    }
}
