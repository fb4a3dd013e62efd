//! Connects to an X server with a limit for every wait, and asks it short questions.
//!
//! Questions run on the caller's thread and fail if the server does not answer within a second. They
//! read properties of the root window, and find windows that cover the wallpaper, such as a file
//! manager's desktop. No events are followed, because those would wake the daemon for each new window.

use std::io::{self, IoSlice};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use x11rb::connection::Connection;
use x11rb::protocol::randr::{ConnectionExt as _, MonitorInfo};
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ConnectionExt as _, GetPropertyReply, MapState, PropMode, Screen, Window,
};
use x11rb::reexports::x11rb_protocol::parse_display::{ConnectAddress, parse_display};
use x11rb::reexports::x11rb_protocol::xauth::{self, Family};
use x11rb::rust_connection::{DefaultStream, PollMode, RustConnection, Stream};
use x11rb::utils::RawFdContainer;
use x11rb::wrapper::ConnectionExt as _;

use super::{Error, Output};
use crate::sys::{Cancel, connect, poll_until};

const PATIENCE: Duration = Duration::from_secs(1);
/// The most values that are read of a property.
const VALUES: u32 = 4096;

/// A text property of a display's root window; `None` if the server cannot be asked.
pub(super) fn root_text(display: &str, name: &str) -> Option<String> {
    let server = XServer::ask(display).ok()?;
    let [name] = server.atoms([name]).ok()?;
    let value = server.property(server.root, name).ok()?.value;
    String::from_utf8(value)
        .ok()
        .filter(|text| !text.is_empty())
}

/// The property with the backend that has painted the root window, and the pixmap it has set there.
const PAINTER: &str = "_MURALD_ROOT_PAINTER";

/// The pixmap of the root window, which other programs find by this property.
fn root_pixmap(server: &XServer) -> Result<Vec<u32>, Error> {
    let [name] = server.atoms(["_XROOTPMAP_ID"])?;
    server.numbers(server.root, name)
}

/// Notes that this backend has painted the current picture of the root window.
pub(crate) fn note_root_painter(display: &str, backend: &str) -> Result<(), Error> {
    let server = XServer::ask(display)?;
    let text = format!("{backend} {:?}", root_pixmap(&server)?);
    let connection = &server.server;
    let name = connection
        .intern_atom(false, PAINTER.as_bytes())?
        .reply()?
        .atom;
    let kind = AtomEnum::STRING;
    let text = text.as_bytes();
    connection
        .change_property8(PropMode::REPLACE, server.root, name, kind, text)?
        .check()?;
    Ok(())
}

/// The backend that has painted the current picture of the root window; `None` if another program has.
pub(crate) fn root_painter(display: &str) -> Option<String> {
    let text = root_text(display, PAINTER)?;
    let pixmap = root_pixmap(&XServer::ask(display).ok()?).ok()?;
    let (backend, painted) = text.split_once(' ')?;
    (painted == format!("{pixmap:?}")).then(|| backend.to_owned())
}

/// Whether a display is Xwayland's, whose root window is not visible.
pub(super) fn is_xwayland(display: &str) -> bool {
    let look = || -> Result<bool, Error> {
        let XServer { server, root, .. } = XServer::ask(display)?;
        // Before version 23.1 it had no extension of its own, but its outputs had names of their own.
        if server.query_extension(b"XWAYLAND")?.reply()?.present {
            return Ok(true);
        }
        server.randr_query_version(1, 5)?.reply()?;
        let mut monitors = monitors(&server, root)?.into_iter();
        Ok(monitors.any(|(name, _)| name.starts_with("XWAYLAND")))
    };
    look().unwrap_or(false)
}

/// The monitors of an X server, with their names, in the server's own order.
pub(crate) fn monitors(
    server: &impl Connection,
    root: Window,
) -> Result<Vec<(String, MonitorInfo)>, Error> {
    let mut named = Vec::new();
    for monitor in server.randr_get_monitors(root, true)?.reply()?.monitors {
        let name = server.get_atom_name(monitor.name)?.reply()?.name;
        named.push((String::from_utf8_lossy(&name).into_owned(), monitor));
    }
    Ok(named)
}

/// A connection before the handshake, and what the handshake needs.
pub(super) struct X11Stream {
    stream: DefaultStream,
    family: Family,
    address: Vec<u8>,
    number: u16,
    screen: usize,
}

impl X11Stream {
    pub(super) fn connect(display: &str) -> io::Result<Self> {
        let parsed = parse_display(Some(display))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no socket found");
        for address in parsed.connect_instruction() {
            let connected = match &address {
                ConnectAddress::Socket(path) => {
                    connect(Path::new(path)).and_then(DefaultStream::from_unix_stream)
                }
                other => DefaultStream::connect(other),
            };
            match connected {
                Ok((stream, (family, address))) => {
                    let number = parsed.display;
                    let screen = usize::from(parsed.screen);
                    return Ok(Self {
                        stream,
                        family,
                        address,
                        number,
                        screen,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

pub(super) type Server = RustConnection<Bounded>;

pub(super) struct XServer {
    pub(super) server: Server,
    pub(super) root: Window,
    screen: usize,
}

impl XServer {
    /// Connects for questions that are answered within a second.
    fn ask(display: &str) -> Result<Self, Error> {
        Self::connect(
            X11Stream::connect(display)?,
            Some(Instant::now() + PATIENCE),
            None,
        )
    }

    /// Completes the handshake. All waits end at `until`, or when `stop` is cancelled.
    pub(super) fn connect(
        found: X11Stream,
        until: Option<Instant>,
        stop: Option<Cancel>,
    ) -> Result<Self, Error> {
        let X11Stream {
            stream,
            family,
            address,
            number,
            screen,
        } = found;
        // Without a readable authority file, the server may still accept the connection.
        let key = xauth::get_auth(family, &address, number).ok().flatten();
        let (name, data) = key.unwrap_or_default();
        let stream = Bounded {
            stream,
            until,
            stop,
        };
        let server = RustConnection::connect_to_stream_with_auth_info(stream, screen, name, data)?;
        let root = server.setup().roots[screen].root;
        Ok(Self {
            server,
            root,
            screen,
        })
    }

    pub(super) fn screen(&self) -> &Screen {
        &self.server.setup().roots[self.screen]
    }

    /// Atoms by their names; 0 for one that does not exist.
    pub(super) fn atoms<const N: usize>(&self, names: [&str; N]) -> Result<[Atom; N], Error> {
        let mut atoms = [0; N];
        for (atom, name) in atoms.iter_mut().zip(names) {
            *atom = self
                .server
                .intern_atom(true, name.as_bytes())?
                .reply()?
                .atom;
        }
        Ok(atoms)
    }

    pub(super) fn property(&self, window: Window, name: Atom) -> Result<GetPropertyReply, Error> {
        Ok(self
            .server
            .get_property(false, window, name, AtomEnum::ANY, 0, VALUES)?
            .reply()?)
    }

    /// A property that is a list of numbers: atoms, windows, a process.
    pub(super) fn numbers(&self, window: Window, name: Atom) -> Result<Vec<u32>, Error> {
        if name == 0 {
            return Ok(Vec::new());
        }
        let property = self.property(window, name)?;
        Ok(property
            .value32()
            .map(Iterator::collect)
            .unwrap_or_default())
    }
}

/// A stream whose waits have a time limit or can be cancelled.
pub(super) struct Bounded {
    stream: DefaultStream,
    until: Option<Instant>,
    stop: Option<Cancel>,
}

impl Stream for Bounded {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        let mut fds = vec![PollFd::new(&self.stream, flags)];
        fds.extend(
            self.stop
                .iter()
                .map(|stop| PollFd::new(stop, PollFlags::IN)),
        );
        if !poll_until(&mut fds, self.until)? {
            Err(io::ErrorKind::TimedOut.into())
        } else if self.stop.as_ref().is_some_and(Cancel::is_cancelled) {
            Err(io::Error::other("cancelled"))
        } else {
            Ok(())
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

/// The most windows that are looked at.
const WINDOWS: usize = 4096;

/// A visible window of the type that desktops have, which covers more than half of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesktopWindow {
    /// Its program, as the window names it.
    pub(crate) class: Option<String>,
    pub(crate) pid: Option<i32>,
}

/// The desktop windows of an X server; empty if it cannot be asked.
pub(crate) fn desktop_windows(display: &str, outputs: &[Output]) -> Vec<DesktopWindow> {
    find(display, outputs).unwrap_or_else(|error| {
        log::debug!("cannot list the desktop windows of the X server: {error}");
        Vec::new()
    })
}

fn find(display: &str, outputs: &[Output]) -> Result<Vec<DesktopWindow>, Error> {
    let server = XServer::ask(display)?;
    let root = server.root;
    let [kind, desktop, list, pid] = server.atoms([
        "_NET_WM_WINDOW_TYPE",
        "_NET_WM_WINDOW_TYPE_DESKTOP",
        "_NET_CLIENT_LIST",
        "_NET_WM_PID",
    ])?;
    // A window manager may have put the window into a frame; without one, it is a child of the root
    // window.
    let mut windows = server.server.query_tree(root)?.reply()?.children;
    windows.extend(server.numbers(root, list)?);
    windows.sort_unstable();
    windows.dedup();
    let mut found = Vec::new();
    for window in windows.into_iter().take(WINDOWS) {
        // A window that is gone by now has no type.
        let is_desktop = server
            .numbers(window, kind)
            .unwrap_or_default()
            .contains(&desktop);
        if is_desktop && server.covers_any(window, outputs).unwrap_or(false) {
            let pid = server
                .numbers(window, pid)?
                .first()
                .and_then(|&pid| pid.try_into().ok());
            found.push(DesktopWindow {
                class: server.class(window)?,
                pid,
            });
        }
    }
    Ok(found)
}

impl XServer {
    /// The second name of `WM_CLASS`, which is the program's.
    fn class(&self, window: Window) -> Result<Option<String>, Error> {
        let property = self.property(window, AtomEnum::WM_CLASS.into())?;
        let name = property
            .value
            .split(|&byte| byte == 0)
            .rfind(|name| !name.is_empty());
        Ok(name.map(|name| String::from_utf8_lossy(name).into_owned()))
    }

    fn covers_any(&self, window: Window, outputs: &[Output]) -> Result<bool, Error> {
        let attributes = self.server.get_window_attributes(window)?.reply()?;
        let size = self.server.get_geometry(window)?.reply()?;
        let place = self
            .server
            .translate_coordinates(window, self.root, 0, 0)?
            .reply()?;
        let place = [place.dst_x, place.dst_y].map(i64::from);
        let size = [size.width, size.height].map(i64::from);
        let hides = |output: &Output| {
            let at = [output.x, output.y].map(i64::from);
            covers(
                (place, size),
                (
                    at,
                    [output.logical_width, output.logical_height].map(i64::from),
                ),
            )
        };
        Ok(attributes.map_state == MapState::VIEWABLE && outputs.iter().any(hides))
    }
}

/// A place and a size.
type Area = ([i64; 2], [i64; 2]);

/// Whether the first area covers more than half of the second.
fn covers((place, size): Area, (at, of): Area) -> bool {
    let shared = |axis: usize| {
        let end = (place[axis] + size[axis]).min(at[axis] + of[axis]);
        (end - place[axis].max(at[axis])).max(0)
    };
    2 * shared(0) * shared(1) > of[0] * of[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_covers_an_output_if_it_hides_more_than_half() {
        let check = |place, size, expected| {
            let output = ([1920, 0], [1280, 720]);
            assert_eq!(
                covers((place, size), output),
                expected,
                "{place:?} {size:?}"
            );
        };
        check([0, 0], [3200, 1080], true);
        check([1920, 0], [1280, 720], true);
        // A window beside a panel.
        check([1920, 40], [1280, 680], true);
        check([0, 0], [1920, 1080], false);
        check([1920, 0], [640, 720], false);
        check([-5000, -5000], [100, 100], false);
    }
}
