//! Reports the outputs of the running compositor or X server, and their changes.
//!
//! The thread `outputs` owns the connection. It waits for a compositor that has not started yet or
//! restarts, and reports every change to its subscribers. It starts no helper program, and lists only
//! outputs that the compositor has described completely.

#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/compositor.rs"]
pub mod fuzz;
pub(crate) mod ipc;
mod output;
mod output_manager;
mod outputs;
mod search;
mod wayland;
mod wayland_wait;
mod x11;
mod x_server;

use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::paths::Env;
use crate::wire;

#[cfg(parsers)]
pub use ipc::fuzz as ipc_fuzz;
pub use output::{Identity, Output};
pub(crate) use output::{alike, identities};
pub use outputs::{Outputs, Watch};
pub(crate) use search::reach;
pub(crate) use wayland_wait::wait_for_compositor;
pub(crate) use x_server::{
    DesktopWindow, desktop_windows, monitors, note_root_painter, root_painter,
};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The kinds of compositor, as `daemon.compositor` and the capabilities of backends name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compositor {
    Wayland,
    X11,
}

impl Compositor {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wayland => "wayland",
            Self::X11 => "x11",
        }
    }
}

/// A compositor that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// The path of its socket.
    Wayland { socket: PathBuf },
    /// As in `DISPLAY`.
    X11 { display: String },
}

impl Session {
    pub fn compositor(&self) -> Compositor {
        match self {
            Self::Wayland { .. } => Compositor::Wayland,
            Self::X11 { .. } => Compositor::X11,
        }
    }

    /// The inode and time of its socket, which another compositor at the same place does not have.
    pub(crate) fn began(&self) -> Option<String> {
        let socket = match self {
            Self::Wayland { socket } => socket.clone(),
            Self::X11 { display } => search::x11_socket(display)?,
        };
        let meta = socket.metadata().ok()?;
        Some(format!(
            "{} {}.{}",
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec()
        ))
    }

    /// The record for clients.
    pub(crate) fn record(&self) -> wire::Session {
        let display = match self {
            Self::Wayland { socket } => socket.display().to_string(),
            Self::X11 { display } => display.clone(),
        };
        wire::Session {
            kind: self.compositor().as_str().to_owned(),
            display,
        }
    }

    /// Environment variables that a child needs, over our own environment, which may be older than
    /// the session.
    pub fn environment(&self) -> (OsString, OsString) {
        match self {
            Self::Wayland { socket } => ("WAYLAND_DISPLAY".into(), socket.into()),
            Self::X11 { display } => ("DISPLAY".into(), display.into()),
        }
    }
}

/// The socket or display at which the compositor is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CompositorPlace {
    Wayland {
        /// The socket that the environment names: tried first.
        named: Option<PathBuf>,
        /// The runtime directory, where sockets are searched otherwise.
        directory: Option<PathBuf>,
    },
    X11 {
        display: String,
        /// The runtime directory, where Wayland sockets are searched if the server is Xwayland.
        directory: Option<PathBuf>,
    },
}

impl CompositorPlace {
    /// The place of a session that a command has named.
    fn from_session(session: &wire::Session) -> Self {
        let display = session.display.clone();
        if session.kind == "wayland" {
            let named = PathBuf::from(display);
            let directory = named.parent().map(Path::to_owned);
            let named = Some(named);
            return Self::Wayland { named, directory };
        }
        Self::X11 {
            display,
            directory: None,
        }
    }

    fn compositor(&self) -> Compositor {
        match self {
            Self::Wayland { .. } => Compositor::Wayland,
            Self::X11 { .. } => Compositor::X11,
        }
    }

    /// Takes it from the session's environment; `wanted` is `daemon.compositor`, `None` for `auto`.
    /// Without a named session, which a service may start before, it is a Wayland socket that is yet to
    /// appear.
    fn find(wanted: Option<Compositor>, env: &Env) -> Self {
        let set = |name: &str| env.var(name).filter(|value| !value.is_empty());
        let compositor = wanted.unwrap_or_else(|| match set("XDG_SESSION_TYPE") {
            _ if set("WAYLAND_DISPLAY").is_some() => Compositor::Wayland,
            Some(kind) if kind == "wayland" => Compositor::Wayland,
            Some(kind) if kind == "x11" => Compositor::X11,
            _ if set("DISPLAY").is_some() => Compositor::X11,
            _ => Compositor::Wayland,
        });
        let directory = set("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|d| d.is_absolute());
        match compositor {
            Compositor::Wayland => {
                // An absolute WAYLAND_DISPLAY replaces the directory in the join.
                let base = directory.as_deref().unwrap_or(Path::new("/"));
                let named = set("WAYLAND_DISPLAY").map(|name| base.join(name));
                Self::Wayland { named, directory }
            }
            Compositor::X11 => {
                let display = set("DISPLAY").and_then(|display| display.into_string().ok());
                let display = display.unwrap_or_else(|| ":0".to_owned());
                Self::X11 {
                    display,
                    directory: directory.filter(|_| wanted.is_none()),
                }
            }
        }
    }
}

/// Says that there is no compositor, and names the variable that users can change.
impl fmt::Display for CompositorPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wayland {
                named: Some(named), ..
            } => {
                write!(f, "no compositor at {} (WAYLAND_DISPLAY)", named.display())
            }
            Self::Wayland {
                directory: Some(directory),
                ..
            } => {
                let directory = directory.display();
                write!(
                    f,
                    "no socket at {directory}/wayland-* (the daemon was started without WAYLAND_DISPLAY)"
                )
            }
            Self::Wayland { .. } => {
                f.write_str("the daemon was started without WAYLAND_DISPLAY and XDG_RUNTIME_DIR")
            }
            Self::X11 { display, .. } => write!(f, "no X server at {display} (DISPLAY)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wayland(named: Option<&str>) -> CompositorPlace {
        CompositorPlace::Wayland {
            named: named.map(PathBuf::from),
            directory: Some("/run/user/7".into()),
        }
    }

    fn x11(display: &str) -> CompositorPlace {
        let directory = Some("/run/user/7".into());
        CompositorPlace::X11 {
            display: display.to_owned(),
            directory,
        }
    }

    #[test]
    fn environment_names_the_compositor() {
        let check = |wanted, [wayland, display, kind]: [&str; 3], expected| {
            let env = Env::from([
                ("XDG_RUNTIME_DIR", "/run/user/7"),
                ("WAYLAND_DISPLAY", wayland),
                ("DISPLAY", display),
                ("XDG_SESSION_TYPE", kind),
            ]);
            assert_eq!(CompositorPlace::find(wanted, &env), expected);
        };
        let socket = wayland(Some("/run/user/7/wayland-1"));
        // Xwayland sets DISPLAY too.
        check(None, ["wayland-1", ":0", ""], socket.clone());
        check(None, ["/else/where", "", ""], wayland(Some("/else/where")));
        check(None, ["", ":0", ""], x11(":0"));
        check(None, ["", ":0", "wayland"], wayland(None));
        check(None, ["", "", "x11"], x11(":0"));
        check(None, ["", ":3", "tty"], x11(":3"));
        check(None, ["", "", ""], wayland(None));
        let only = CompositorPlace::X11 {
            display: ":1".to_owned(),
            directory: None,
        };
        check(Some(Compositor::X11), ["wayland-1", ":1", "wayland"], only);
        check(Some(Compositor::Wayland), ["", ":1", "x11"], wayland(None));
        assert!(x11(":3").to_string().contains("server at :3 (DISPLAY)"));
        assert!(
            wayland(None)
                .to_string()
                .contains("/run/user/7/wayland-* (the daemon was started without")
        );
    }
}
