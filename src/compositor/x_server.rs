//! Short questions to an X server, for callers that follow no events.
//!
//! Runs on the calling thread over a connection of its own, and gives up on a server that does not
//! answer within a second.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt as _, GetPropertyReply, Window};
use x11rb::reexports::x11rb_protocol::xauth;
use x11rb::rust_connection::{DefaultStream, PollMode, RustConnection, Stream};
use x11rb::utils::RawFdContainer;

use super::search::connect_x11;
use crate::sys::poll_until;

pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;

const PATIENCE: Duration = Duration::from_secs(1);
/// More values than any property has that is asked for.
const VALUES: u32 = 4096;

/// A text that the root window of a display has; none if the server cannot be asked.
pub(super) fn root_text(display: &str, name: &str) -> Option<String> {
    let server = XServer::connect(display).ok()?;
    let [name] = server.atoms([name]).ok()?;
    let value = server.property(server.root, name).ok()?.value;
    String::from_utf8(value).ok().filter(|text| !text.is_empty())
}

pub(super) struct XServer {
    pub(super) server: RustConnection<Bounded>,
    pub(super) root: Window,
}

impl XServer {
    pub(super) fn connect(display: &str) -> Result<Self, Error> {
        let found = connect_x11(display)?;
        let (name, data) = xauth::get_auth(found.family, &found.address, found.number)
            .ok()
            .flatten()
            .unwrap_or_default();
        let stream = Bounded { stream: found.stream, until: Instant::now() + PATIENCE };
        let server =
            RustConnection::connect_to_stream_with_auth_info(stream, found.screen, name, data)?;
        let root = server.setup().roots[found.screen].root;
        Ok(Self { server, root })
    }

    /// Atoms by their names; 0 for one that nobody has made.
    pub(super) fn atoms<const N: usize>(&self, names: [&str; N]) -> Result<[Atom; N], Error> {
        let mut atoms = [0; N];
        for (atom, name) in atoms.iter_mut().zip(names) {
            *atom = self.server.intern_atom(true, name.as_bytes())?.reply()?.atom;
        }
        Ok(atoms)
    }

    pub(super) fn property(&self, window: Window, name: Atom) -> Result<GetPropertyReply, Error> {
        Ok(self.server.get_property(false, window, name, AtomEnum::ANY, 0, VALUES)?.reply()?)
    }

    /// A property that is a list of numbers: atoms, windows, a process.
    pub(super) fn numbers(&self, window: Window, name: Atom) -> Result<Vec<u32>, Error> {
        if name == 0 {
            return Ok(Vec::new());
        }
        let property = self.property(window, name)?;
        Ok(property.value32().map(Iterator::collect).unwrap_or_default())
    }
}

/// A stream on which no wait is longer than its patience.
pub(super) struct Bounded {
    stream: DefaultStream,
    until: Instant,
}

impl Stream for Bounded {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        match poll_until(&mut [PollFd::new(&self.stream, flags)], Some(self.until))? {
            true => Ok(()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn read(&self, bytes: &mut [u8], fds: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.stream.read(bytes, fds)
    }

    fn write(&self, bytes: &[u8], fds: &mut Vec<RawFdContainer>) -> io::Result<usize> {
        self.stream.write(bytes, fds)
    }

    fn write_vectored(
        &self,
        bytes: &[IoSlice<'_>],
        fds: &mut Vec<RawFdContainer>,
    ) -> io::Result<usize> {
        self.stream.write_vectored(bytes, fds)
    }
}
