//! Connects to the sockets of the window managers that report their workspaces and windows: sway, i3 and
//! Hyprland.
//!
//! A [`Following`] is a thread with one connection, for the module that needs it. [`Topics`] are the
//! events that it follows. For windows, other Wayland compositors are asked over a protocol
//! (`toplevels`).

mod feed;
mod follow;
#[cfg(parsers)]
#[path = "../../../tests/fuzz/src/parsers/ipc.rs"]
pub mod fuzz;
mod hyprland;
mod i3;
mod niri;
mod toplevels;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fs, io};

use self::feed::Feed;
use self::hyprland::Hyprland;
use self::i3::I3;
use self::niri::Niri;
use self::toplevels::Toplevels;
use super::{Session, x_server};
use crate::paths::Env;
use crate::sys::Cancel;

pub(crate) use feed::{Visible, ask};
pub(crate) use follow::{Following, Source, Toggle, start};

/// The programs with these sockets; sway speaks i3's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Hyprland,
    I3,
    Sway,
}

/// The events that a client follows, by the names of each protocol.
#[derive(Debug)]
pub(crate) struct Topics {
    i3: &'static [&'static str],
    hyprland: &'static [&'static str],
    /// Whether the events are about windows. These are also followed over wlr-foreign-toplevel, and not
    /// at all over X11, as no video plays there.
    windows: bool,
}

/// The events after which another workspace may be shown.
pub(crate) const WORKSPACES: Topics = Topics {
    i3: &["workspace"],
    hyprland: &[
        "workspace",
        "focusedmon",
        "moveworkspace",
        "renameworkspace",
        "monitoradded",
        "monitorremoved",
    ],
    windows: false,
};

/// The events after which windows may cover other outputs than before.
pub(crate) const WINDOWS: Topics = Topics {
    i3: &["window", "workspace"],
    hyprland: &[
        "fullscreen",
        "openwindow",
        "closewindow",
        "movewindow",
        "activespecial",
        "workspace",
        "focusedmon",
        "moveworkspace",
        "monitoradded",
        "monitorremoved",
    ],
    windows: true,
};

pub(crate) enum Connection {
    Hyprland(Hyprland),
    I3(I3),
    Toplevels(Toplevels),
}

impl Connection {
    /// Waits until this may have changed, and returns the outputs on which a window is full screen.
    pub(crate) fn covered(&mut self, cancel: &Cancel) -> io::Result<BTreeSet<String>> {
        match self {
            Self::Hyprland(hyprland) => hyprland.covered(cancel),
            Self::I3(i3) => i3.covered(cancel),
            Self::Toplevels(toplevels) => toplevels.covered(cancel),
        }
    }

    /// Waits for a change, and returns the visible workspaces with their outputs. The first value says
    /// whether these are all outputs; otherwise the others show the same as before.
    pub(crate) fn next(&mut self, cancel: &Cancel) -> io::Result<(bool, Vec<Visible>)> {
        match self {
            Self::Hyprland(hyprland) => hyprland.next(cancel),
            Self::I3(i3) => i3.next(cancel),
            Self::Toplevels(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether the compositor was reloaded since the last call, and may have put another background over
    /// ours.
    pub(crate) fn take_reload(&mut self) -> bool {
        let Self::I3(i3) = self else { return false };
        i3.take_reload()
    }

    /// Whether there is input that was not read yet.
    pub(crate) fn is_behind(&self) -> bool {
        match self {
            Self::Hyprland(hyprland) => hyprland.feed.is_behind(),
            Self::I3(i3) => i3.feed.is_behind(),
            Self::Toplevels(_) => false,
        }
    }

    /// Connects to the compositor of this session; `None` if it has no such socket, or none yet.
    fn open(
        wanted: Option<Protocol>,
        topics: &'static Topics,
        (session, env): (&Session, &Env),
    ) -> Option<Self> {
        let compositor = match session {
            Session::Wayland { socket } => Feed::connect(socket).ok()?.peer(),
            Session::X11 { .. } if topics.windows => return None,
            Session::X11 { .. } => None,
        };
        let mut second = None;
        for candidate in candidates(wanted, session, env) {
            let Ok(feed) = Feed::connect(&candidate.socket) else {
                continue;
            };
            if feed.peer() == compositor {
                return candidate.open(feed, topics);
            }
            // A compositor may pass its sockets on to another process, so a socket of another process is
            // used if it is named.
            if candidate.named && second.is_none() {
                second = Some((candidate, feed));
            }
        }
        if let Some((candidate, feed)) = second {
            return candidate.open(feed, topics);
        }
        match session {
            Session::Wayland { socket } if topics.windows => {
                Toplevels::open(socket, niri(compositor, env)).map(Self::Toplevels)
            }
            _ => None,
        }
    }
}

/// Niri, if it is this compositor.
fn niri(compositor: Option<u32>, env: &Env) -> Option<Niri> {
    let is_it = |socket: &PathBuf| {
        let name = socket.file_name().unwrap_or_default().as_bytes();
        let feed = name
            .starts_with(b"niri.")
            .then(|| Feed::connect(socket).ok())
            .flatten();
        feed.is_some_and(|feed| feed.peer() == compositor)
    };
    let runtime = fs::read_dir(env.var("XDG_RUNTIME_DIR")?).ok()?.flatten();
    runtime.map(|entry| entry.path()).find(is_it).map(Niri)
}

/// A socket at which a compositor may be.
struct Candidate {
    protocol: Protocol,
    socket: PathBuf,
    /// The environment or the X server names it.
    named: bool,
}

impl Candidate {
    fn open(self, feed: Feed, topics: &'static Topics) -> Option<Connection> {
        log::info!("following the workspaces at {}", self.socket.display());
        match self.protocol {
            Protocol::I3 | Protocol::Sway => I3::connect(feed, topics.i3).map(Connection::I3).ok(),
            Protocol::Hyprland => {
                let requests = self.socket.with_file_name(REQUESTS);
                Some(Connection::Hyprland(Hyprland::new(
                    feed,
                    requests,
                    topics.hyprland,
                )))
            }
        }
    }
}

const EVENTS: &str = ".socket2.sock";
const REQUESTS: &str = ".socket.sock";

/// The sockets to try; first those that are named.
fn candidates(wanted: Option<Protocol>, session: &Session, env: &Env) -> Vec<Candidate> {
    let set = |name: &str| {
        env.var(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let runtime = set("XDG_RUNTIME_DIR").filter(|path| path.is_absolute());
    let entries = |directory: Option<PathBuf>| {
        directory
            .and_then(|directory| fs::read_dir(directory).ok())
            .into_iter()
            .flatten()
            .flatten()
    };
    let mut found = Vec::new();
    let mut add = |protocol, socket, named| {
        if wanted.is_none_or(|wanted| wanted == protocol) {
            found.push(Candidate {
                protocol,
                socket,
                named,
            });
        }
    };
    match session {
        Session::X11 { .. } if wanted.is_some_and(|wanted| wanted != Protocol::I3) => {}
        Session::X11 { display } => {
            let told = || x_server::root_text(display, "I3_SOCKET_PATH").map(PathBuf::from);
            let named = set("I3SOCK").into_iter().chain(told());
            named.for_each(|socket| add(Protocol::I3, socket, true));
        }
        Session::Wayland { .. } => {
            let hyprland = runtime.as_ref().map(|runtime| runtime.join("hypr"));
            let signature = set("HYPRLAND_INSTANCE_SIGNATURE");
            if let (Some(directory), Some(signature)) = (&hyprland, signature) {
                add(
                    Protocol::Hyprland,
                    directory.join(signature).join(EVENTS),
                    true,
                );
            }
            if let Some(named) = set("SWAYSOCK") {
                add(Protocol::Sway, named, true);
            }
            for instance in entries(hyprland) {
                add(Protocol::Hyprland, instance.path().join(EVENTS), false);
            }
            for entry in entries(runtime).filter(|entry| is_sway_socket(&entry.file_name())) {
                add(Protocol::Sway, entry.path(), false);
            }
        }
    }
    found
}

/// `sway-ipc.UID.PID.sock`
fn is_sway_socket(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"sway-ipc.") && name.ends_with(b".sock")
}
