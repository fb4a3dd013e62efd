//! Errors of playlist commands.

use std::fmt;

use crate::store::playlists::Refusal;
use crate::store::{self};
use crate::wallpaper;
use crate::wire::PlaylistType;

/// Called once, by the player's thread: it must not block.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

#[derive(Debug)]
pub enum Error {
    /// The rules of playlists, or the database.
    Refused(Refusal),
    NotRunning {
        name: String,
    },
    NotRunningOn {
        name: String,
        monitors: Vec<String>,
    },
    Empty {
        name: String,
    },
    /// It lives, and its source finds no image.
    NothingFound {
        name: String,
    },
    NoMonitor {
        declared: Vec<String>,
        connected: Vec<String>,
    },
    /// It follows the clock: there is nothing to step to.
    NoSteps {
        name: String,
        kind: PlaylistType,
    },
    /// It follows the clock: one picture is all that a slot has.
    OneForAll {
        name: String,
        kind: PlaylistType,
    },
    /// Its picture is not shown.
    Picture(wallpaper::Error),
    /// A later step took its place, and that has failed.
    Overtaken {
        name: String,
    },
    /// More is asked for than can be followed.
    Busy,
    /// The daemon is ending.
    Ending,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::NotRunning { name } => write!(f, "the playlist {name:?} does not run"),
            Self::NotRunningOn { name, monitors } => {
                write!(f, "the playlist {name:?} does not run on {}", monitors.join(", "))
            }
            Self::Empty { name } => write!(f, "the playlist {name:?} has no images"),
            Self::NothingFound { name } => {
                write!(f, "the playlist {name:?} is empty: nothing passes its filters")
            }
            Self::NoMonitor { connected, .. } if connected.is_empty() => {
                f.write_str("no monitor is connected, or no compositor can be reached")
            }
            Self::NoMonitor { declared, connected } => write!(
                f,
                "not connected: {}; connected are {}",
                declared.join(", "),
                connected.join(", ")
            ),
            Self::NoSteps { name, kind: PlaylistType::Appearance } => {
                write!(f, "the playlist {name:?} follows light and dark: it has no steps")
            }
            Self::NoSteps { name, kind } => {
                write!(f, "the playlist {name:?} follows the clock ({kind}): it has no steps")
            }
            Self::OneForAll { name, kind } => write!(
                f,
                "the playlist {name:?} follows the clock ({kind}), with one picture at a time: it \
                 cannot give each monitor its own"
            ),
            Self::Picture(failure) => failure.fmt(f),
            Self::Overtaken { name } => {
                write!(
                    f,
                    "a later step of the playlist {name:?} took the place of this, and failed"
                )
            }
            Self::Busy => f.write_str("too many playlist commands at once: try again"),
            Self::Ending => f.write_str("the daemon is ending"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(refusal) => refusal.source(),
            Self::Picture(failure) => failure.source(),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Refused(error.into())
    }
}
