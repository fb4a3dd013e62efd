//! The records of the daemon's current state, its files and its session, for people and bug reports.
//! They never contain a setting of a client or a secret.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crossbeam_channel::Sender;
use serde::{Deserialize, Serialize};

use super::image::put_id;
use super::names::words;
use super::{HistorySource, Timestamp};

/// Requests that wait for a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DebugQueue {
    pub name: String,
    pub length: usize,
    pub capacity: Option<usize>,
}

impl DebugQueue {
    pub(crate) fn new<T>(name: &str, inbox: &Sender<T>) -> Self {
        Self {
            name: name.to_owned(),
            length: inbox.len(),
            capacity: inbox.capacity(),
        }
    }
}

/// A picture that could not be shown, and its monitors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DebugFailure {
    pub monitors: Vec<String>,
    #[serde(flatten)]
    pub failure: ApplyFailure,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub subject: String,
    pub state: FindingState,
    /// A sentence without its full stop.
    pub text: String,
    /// The step that fixes it, or that may be taken.
    pub step: Option<String>,
}

words! {
    /// As it should be; working, but maybe not as intended; or preventing wallpapers.
    FindingState { Ok = "ok", Note = "note", Fix = "fix" }
}

/// The record of one connected monitor; a null field does not apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Why {
    pub monitor: String,
    pub image_id: Option<i64>,
    pub image_name: Option<String>,
    pub image_path: Option<PathBuf>,
    /// `#rrggbb`, instead of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    pub backend: Option<String>,
    pub source: Option<HistorySource>,
    pub set_at: Option<Timestamp>,
    pub next: Option<NextChange>,
    pub last_failure: Option<ApplyFailure>,
    /// The failure of the hook's last run, the same for all monitors.
    pub hook_failure: Option<HookFailure>,
    /// Programs that may hide the wallpaper, as text for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The whole record in sentences.
    pub text: String,
}

/// The next action of a playlist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NextChange {
    pub playlist_id: i64,
    pub playlist_name: String,
    pub at: Timestamp,
}

/// A picture that could not be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ApplyFailure {
    #[serde(serialize_with = "put_id")]
    pub image_id: i64,
    pub image_name: String,
    pub backend: String,
    pub error: String,
    pub at: Timestamp,
}

/// A run of the hook that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HookFailure {
    pub error: String,
    pub at: Timestamp,
}

words! {
    /// The state of a watched directory.
    WatchState {
        Watched = "watched", Away = "away", Partial = "partial", Unreadable = "unreadable",
    }
}

/// A watched directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WatchedDirectory {
    /// As written in the settings.
    pub path: String,
    /// The target of the link; null if it leads nowhere.
    pub directory: Option<PathBuf>,
    pub state: WatchState,
    pub images: u64,
    /// Files beyond the first one of each image.
    pub copies: u64,
    /// Files and directories that cannot be read now.
    pub unreadable: u64,
    /// For people.
    pub message: Option<String>,
}

/// `GET /library/watch`
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LibraryWatch {
    pub watch: Vec<WatchedDirectory>,
    pub watch_folders: bool,
    pub exclude: Vec<String>,
}

/// The paths of the daemon's files: the settings of `[daemon]`, expanded, and paths without a
/// setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InfoPaths {
    pub socket: String,
    pub config: String,
    pub images: String,
    pub thumbnails: String,
    /// The path of the file.
    pub database: String,
    pub log: String,
    pub state: String,
}

/// The files of the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LibraryHealth {
    /// Copies whose files are missing; their rows are kept.
    pub missing: usize,
}

/// The result of a full check of the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DatabaseReport {
    pub database: PathBuf,
    pub images: usize,
    /// Images whose files are missing.
    pub missing: usize,
    /// None if the database is intact.
    pub problems: Vec<String>,
    /// The newest first.
    pub backups: Vec<PathBuf>,
}

/// The session in which the daemon draws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    /// `wayland` or `x11`.
    pub kind: String,
    /// The path of the compositor's socket, or the value of `DISPLAY`.
    pub display: String,
}

impl Session {
    /// The header in which a command sends its session.
    pub(crate) const HEADER: &str = "X-Murald-Session";

    /// The session of a process with these variables, if it is in one.
    pub(crate) fn from_env(var: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let (kind, display) = match set("WAYLAND_DISPLAY") {
            Some(name) => {
                let runtime = PathBuf::from(set("XDG_RUNTIME_DIR").unwrap_or_default());
                ("wayland", runtime.join(name).into_os_string())
            }
            None => ("x11", set("DISPLAY")?),
        };
        Some(Self {
            kind: kind.to_owned(),
            display: display.into_string().ok()?,
        })
    }

    /// The value of [`Self::HEADER`].
    pub(crate) fn to_header(&self) -> String {
        format!("{} {}", self.kind, self.display)
    }

    pub(crate) fn from_header(text: &str) -> Option<Self> {
        let (kind, display) = text.split_once(' ')?;
        Some(Self {
            kind: kind.to_owned(),
            display: display.to_owned(),
        })
    }

    /// Whether a process with these variables belongs to another session. A process without them
    /// belongs to all.
    pub(crate) fn is_another(&self, var: impl Fn(&str) -> Option<OsString>) -> bool {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let (wayland, x11) = (set("WAYLAND_DISPLAY"), set("DISPLAY"));
        match (self.kind.as_str(), wayland, x11) {
            ("wayland", Some(name), _) => {
                let own = PathBuf::from(set("XDG_RUNTIME_DIR").unwrap_or_default()).join(name);
                // A shell may have outlived the compositor that it was started in.
                own.canonicalize()
                    .is_ok_and(|own| own != real(Path::new(&self.display)))
            }
            ("x11", _, Some(display)) => server(&display) != server(OsStr::new(&self.display)),
            (_, wayland, x11) => wayland.is_some() || x11.is_some(),
        }
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A display without its screen: `:0.0` is on the server `:0`.
fn server(display: &OsStr) -> String {
    let display = display.to_string_lossy();
    match display.rsplit_once('.') {
        Some((server, screen)) if server.contains(':') && !screen.contains(':') => {
            server.to_owned()
        }
        _ => display.into_owned(),
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.kind == "x11" { "X11" } else { "Wayland" };
        write!(f, "the {kind} session {}", self.display)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_is_sent_in_a_header() {
        let check = |wayland: &str, x11: &str, expected: Option<&str>| {
            let var = |name: &str| match name {
                "WAYLAND_DISPLAY" => Some(wayland.into()),
                "DISPLAY" => Some(x11.into()),
                _ => Some("/run/user/7".into()),
            };
            let session = Session::from_env(var);
            let header = session.as_ref().map(Session::to_header);
            assert_eq!(header.as_deref(), expected);
            assert_eq!(header.and_then(|text| Session::from_header(&text)), session);
        };
        check("wayland-1", ":0", Some("wayland /run/user/7/wayland-1"));
        check("/tmp/w 1", "", Some("wayland /tmp/w 1"));
        check("", ":0.0", Some("x11 :0.0"));
        check("", "", None);
    }

    #[test]
    fn environment_tells_the_session() {
        let run = tempfile::tempdir().unwrap();
        for name in ["wayland-0", "wayland-1"] {
            std::fs::write(run.path().join(name), "").unwrap();
        }
        let check = |kind: &str, display: &str, [wayland, x11]: [&str; 2], expected| {
            let var = |name: &str| match name {
                "WAYLAND_DISPLAY" => Some(wayland.into()),
                "DISPLAY" => Some(x11.into()),
                "XDG_RUNTIME_DIR" => Some(run.path().into()),
                _ => None,
            };
            let session = Session {
                kind: kind.to_owned(),
                display: display.to_owned(),
            };
            assert_eq!(
                session.is_another(var),
                expected,
                "{session}, {wayland}, {x11}"
            );
        };
        let socket = run.path().join("wayland-0");
        let socket = socket.to_str().unwrap();
        check("wayland", socket, ["wayland-0", ":0"], false);
        check("wayland", socket, [socket, ""], false);
        check("wayland", socket, ["wayland-1", ":0"], true);
        // The compositor of this socket has exited.
        check("wayland", socket, ["wayland-7", ":0"], false);
        check("wayland", socket, ["", ":0"], true);
        check("wayland", socket, ["", ""], false);
        check("x11", ":0", ["", ":0.0"], false);
        check("x11", ":0", ["wayland-0", ":0"], false);
        check("x11", ":0", ["", ":1"], true);
        check("x11", ":0", ["wayland-0", ""], true);
        check("x11", "localhost:10.0", ["", "localhost:10"], false);
        check("x11", ":0", ["", ""], false);
    }
}
