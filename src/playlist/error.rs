//! Errors of playlist commands.

use crate::store;
use crate::store::playlists::Refusal;
use crate::wallpaper;
use crate::wire::PlaylistType;

/// Called once, by the player's thread: it must not block.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rules of playlists, or the database.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the playlist {name:?} does not run")]
    NotRunning { name: String },
    #[error("the playlist {name:?} does not run on {}", monitors.join(", "))]
    NotRunningOn { name: String, monitors: Vec<String> },
    #[error("the playlist {name:?} has no images")]
    Empty { name: String },
    /// A dynamic playlist whose source finds no image.
    #[error("the playlist {name:?} is empty: nothing passes its filters")]
    NothingFound { name: String },
    #[error("{}", no_monitor(declared, connected))]
    NoMonitor { declared: Vec<String>, connected: Vec<String> },
    /// A playlist that follows the clock has nothing to step to.
    #[error("the playlist {name:?} follows {}: it has no steps", followed(*kind))]
    NoSteps { name: String, kind: PlaylistType },
    /// A playlist that follows the clock has a single picture in each slot.
    #[error(
        "the playlist {name:?} follows the clock ({kind}), with one picture at a time: it cannot give \
         each monitor its own"
    )]
    OneForAll { name: String, kind: PlaylistType },
    /// Its picture is not shown.
    #[error(transparent)]
    Picture(wallpaper::Error),
    /// A later step took its place, and that step has failed.
    #[error("a later step of the playlist {name:?} took the place of this, and failed")]
    Overtaken { name: String },
    /// More commands wait than the player accepts.
    #[error("too many playlist commands at once: try again")]
    Busy,
    /// The daemon is ending.
    #[error("the daemon is ending")]
    Ending,
}

fn no_monitor(declared: &[String], connected: &[String]) -> String {
    if connected.is_empty() {
        return "no monitor is connected, or no compositor can be reached".to_owned();
    }
    format!("not connected: {}; connected are {}", declared.join(", "), connected.join(", "))
}

/// The rule of a playlist that has no steps.
fn followed(kind: PlaylistType) -> String {
    match kind {
        PlaylistType::Appearance => "light and dark".to_owned(),
        kind => format!("the clock ({kind})"),
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Refused(error.into())
    }
}
