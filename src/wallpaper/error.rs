//! Errors of this module: why a request fails, or why a picture is not shown.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::backends::{self, Backends, Kind, REGISTRY, Registration, UnavailableReason};
use crate::compositor::Compositor;
use crate::config::BackendName;
use crate::store;
use crate::wire::MediaType;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// No installed backend works in this session, and the builtin one is not available either.
    #[error("{}", no_backend_text(lack, checked, unusable))]
    NoBackend {
        lack: UnavailableReason,
        checked: Vec<String>,
        /// The reason why each installed backend cannot be used here.
        unusable: Vec<String>,
    },
    /// The requested backend is not installed, or does not work in this session.
    #[error("{}", not_usable_text(*backend, missing, lack))]
    NotUsable {
        backend: BackendName,
        checked: Vec<String>,
        missing: Vec<&'static str>,
        lack: UnavailableReason,
    },
    /// The backend in use cannot show content of this kind.
    #[error("{backend} cannot show {image_name:?}, which is {}", kind_text(*kind))]
    Incompatible {
        backend: BackendName,
        kind: Kind,
        media_type: MediaType,
        /// None for a file that is not in the library.
        image_id: Option<i64>,
        image_name: String,
        remedy: Remedy,
    },
    /// The backend has no such fit, or no such transition.
    #[error("{what} must be {} with {backend}, not {word:?}", one_of(allowed))]
    NoWord {
        what: &'static str,
        word: String,
        backend: BackendName,
        allowed: Vec<&'static str>,
    },
    #[error("no backend named {name:?}: backends are {}", BackendName::WORDS.join(", "))]
    UnknownBackend { name: String },
    #[error("{}", unknown_monitors_text(names, connected))]
    UnknownMonitors {
        names: Vec<String>,
        connected: Vec<String>,
    },
    #[error("no monitor is connected, or the compositor cannot be reached")]
    NoMonitor,
    #[error("no image with ID {id}")]
    NoImage { id: i64 },
    /// The image is in the library, but its file is missing.
    #[error("the file of image {id} is {}: {}", if *away { "unavailable" } else { "missing" }, path.display())]
    FileGone {
        id: i64,
        path: PathBuf,
        /// The file is used in place and may come back.
        away: bool,
    },
    #[error("the library is empty")]
    EmptyLibrary,
    /// No image matches the filter of a random request.
    #[error("no image matches the filter")]
    NoMatch,
    /// The history of these monitors has no other picture to go back to.
    #[error("no previous wallpaper on {}", monitors.join(", "))]
    NothingBefore { monitors: Vec<String> },
    #[error("{0}")]
    NoSound(String),
    #[error("{backend} could not show the image")]
    Backend {
        backend: BackendName,
        source: backends::Error,
    },
    /// Shared, because one failure may be the answer to several requests.
    #[error("the library cannot be read or written")]
    Store(#[source] Arc<store::Error>),
    /// Too many requests are waiting.
    #[error("too many wallpaper changes at once; try again")]
    Busy,
    #[error("the daemon is shutting down")]
    Ending,
}

/// The backends that could show what the backend in use cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// These are installed.
    Activate(Vec<BackendName>),
    /// These work in this session, but none of them is installed.
    Install(Vec<BackendName>),
    /// No backend can show it in this session.
    None,
}

fn one_of(words: &[&str]) -> String {
    let several = if words.len() > 1 { "one of " } else { "" };
    format!("{several}{}", words.join(", "))
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, names) = match self {
            Self::Activate(names) => ("activate", names),
            Self::Install(names) => ("install", names),
            Self::None => return f.write_str("no backend can show it in this session"),
        };
        let list: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        write!(f, "{verb} {}, which can show it", list.join(" or "))
    }
}

impl Error {
    /// Joins the reasons of all monitors.
    pub(super) fn no_sound(why: impl IntoIterator<Item = String>) -> Self {
        Self::NoSound(why.into_iter().collect::<Vec<_>>().join("; "))
    }

    pub fn no_backend(backends: &Backends) -> Self {
        let is_installed = |entry: &&Registration| backends.missing(entry).is_empty();
        let installed = REGISTRY.iter().filter(is_installed);
        // The reason for the missing builtin backend is reported as `lack`.
        let others = installed.filter(|entry| entry.name != BackendName::Builtin);
        let unusable = others
            .filter_map(|entry| backends.unusable(entry))
            .collect();
        Self::NoBackend {
            lack: backends.unavailable_reason(),
            checked: backends.programs(None),
            unusable,
        }
    }
}

fn no_backend_text(lack: &UnavailableReason, checked: &[String], unusable: &[String]) -> String {
    match (lack, lack.instead()) {
        (UnavailableReason::Session { .. }, _) => lack.to_string(),
        (_, Some(instead)) => format!("{lack}: {instead}"),
        (_, None) => {
            let none = format!(
                "{lack}, and none of these is installed: {}",
                checked.join(", ")
            );
            unusable
                .iter()
                .fold(none, |text, why| format!("{text}; {why}"))
        }
    }
}

fn not_usable_text(backend: BackendName, missing: &[&str], lack: &UnavailableReason) -> String {
    if !missing.is_empty() {
        return backends::not_installed(backend, missing);
    }
    match (backend, lack) {
        (BackendName::Builtin, _)
        | (_, UnavailableReason::Session { .. } | UnavailableReason::Place(Compositor::Wayland)) => {
            lack.to_string()
        }
        (BackendName::Hyprpaper, _) => {
            format!("{backend} works on Hyprland only")
        }
        (
            BackendName::Awww
            | BackendName::Feh
            | BackendName::Mpvpaper
            | BackendName::Swaybg
            | BackendName::WalQt,
            _,
        ) => backends::other_session(backend),
    }
}

fn kind_text(kind: Kind) -> &'static str {
    match kind {
        Kind::StaticImage => "a still picture",
        Kind::AnimatedImage => "an animated picture",
        Kind::Video => "a video",
        Kind::Web => "an HTML wallpaper",
    }
}

fn unknown_monitors_text(names: &[String], connected: &[String]) -> String {
    if connected.is_empty() {
        return format!("no monitor named {} (none is connected)", names.join(", "));
    }
    format!(
        "no monitor named {} (connected: {})",
        names.join(", "),
        connected.join(", ")
    )
}

impl From<store::Error> for Error {
    fn from(source: store::Error) -> Self {
        Self::Store(Arc::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_chain::chain;

    #[test]
    fn remedy_names_the_backends_that_can_show_it() {
        use BackendName::{Mpvpaper, WalQt};
        let check = |remedy: Remedy, expected: &str| assert_eq!(remedy.to_string(), expected);
        check(
            Remedy::Activate(vec![Mpvpaper]),
            "activate mpvpaper, which can show it",
        );
        let both = vec![Mpvpaper, WalQt];
        check(
            Remedy::Install(both),
            "install mpvpaper or wal-qt, which can show it",
        );
        check(Remedy::None, "no backend can show it in this session");
    }

    #[test]
    fn error_says_why_a_backend_cannot_be_used() {
        let check = |backend, missing: &[&'static str], lack: UnavailableReason, expected: &str| {
            let checked = Vec::new();
            let missing = missing.to_vec();
            let error = Error::NotUsable {
                backend,
                checked,
                missing,
                lack,
            };
            assert_eq!(error.to_string(), expected);
        };
        use BackendName::{Awww, Builtin, Feh, Hyprpaper};
        let nowhere = || UnavailableReason::Session {
            sought: "X".to_owned(),
        };
        let no_session = "no Wayland or X11 session found: X";
        let both = &["awww", "awww-daemon"];
        let no_programs = "awww is not installed";
        check(Awww, both, UnavailableReason::Leave, no_programs);
        check(Awww, both, nowhere(), no_programs);
        check(Feh, &[], nowhere(), no_session);
        check(Feh, &[], UnavailableReason::Leave, "feh works on X11 only");
        let needs_hyprland = "hyprpaper works on Hyprland only";
        check(Hyprpaper, &[], UnavailableReason::Leave, needs_hyprland);
        let no_place = UnavailableReason::Place(Compositor::Wayland);
        check(Hyprpaper, &[], no_place.clone(), &no_place.to_string());
        check(Builtin, &[], nowhere(), no_session);
        for lack in [
            UnavailableReason::Leave,
            UnavailableReason::Place(Compositor::X11),
        ] {
            check(Builtin, &[], lack.clone(), &lack.to_string());
        }
    }

    #[test]
    fn error_lists_the_connected_monitors() {
        let check = |connected: &[&str], expected: &str| {
            let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
            let named = names(&["A", "B"]);
            let connected = names(connected);
            let error = Error::UnknownMonitors {
                names: named,
                connected,
            };
            assert_eq!(error.to_string(), expected);
        };
        check(&[], "no monitor named A, B (none is connected)");
        check(&["C", "D"], "no monitor named A, B (connected: C, D)");
    }

    #[test]
    fn error_names_its_cause_if_it_has_one() {
        let source = backends::Error::Unavailable("on purpose".to_owned());
        let cause = source.to_string();
        let failed = Error::Backend {
            backend: BackendName::Feh,
            source,
        };
        assert_eq!(
            chain(&failed),
            format!("feh could not show the image: {cause}")
        );
        let source = store::Error::Damaged {
            what: "on purpose".to_owned(),
        };
        let unread = format!("the library cannot be read or written: {source}");
        assert_eq!(chain(&Error::from(source)), unread);
        assert_eq!(chain(&Error::NoMonitor), Error::NoMonitor.to_string());
    }
}
