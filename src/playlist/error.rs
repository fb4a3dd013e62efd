//! Errors of playlist commands.

use crate::store;
use crate::store::playlists::Refusal;
use crate::wallpaper;
use crate::wire::PlaylistType;

/// Called once, on the player's thread; it must not block.
pub(crate) type Reply<T> = Box<dyn FnOnce(Result<T, Error>) + Send>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Refused by the rules of playlists, or by the database.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("playlist {name:?} is not running")]
    NotRunning { name: String },
    #[error("playlist {name:?} is not running on {}", monitors.join(", "))]
    NotRunningOn { name: String, monitors: Vec<String> },
    #[error("playlist {name:?} has no images")]
    Empty { name: String },
    /// A dynamic playlist whose source finds no image.
    #[error("playlist {name:?} is empty: no image matches its filters")]
    NothingFound { name: String },
    /// A playlist that follows the clock has nothing to step to.
    #[error("playlist {name:?} changes {}; next and previous do not apply", followed(*kind))]
    NoSteps { name: String, kind: PlaylistType },
    /// A playlist that follows the clock has a single picture in each slot.
    #[error(
        "playlist {name:?} follows the clock ({kind}) and cannot show a different image on each monitor"
    )]
    OneForAll { name: String, kind: PlaylistType },
    /// The picture cannot be shown.
    #[error(transparent)]
    Picture(wallpaper::Error),
    /// A later step superseded this one, and has failed.
    #[error("a newer request for playlist {name:?} replaced this one, and failed")]
    Overtaken { name: String },
    /// More commands wait than the player accepts.
    #[error("too many playlist commands at once; try again")]
    Busy,
    /// The daemon is ending.
    #[error("the daemon is shutting down")]
    Ending,
}

/// The rule of a playlist that has no steps.
fn followed(kind: PlaylistType) -> &'static str {
    match kind {
        PlaylistType::Appearance => "with light and dark mode",
        PlaylistType::DayOfWeek => "by day of the week",
        PlaylistType::TimeOfDay => "at times of day",
        PlaylistType::Timer | PlaylistType::Manual => "on request",
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Refused(error.into())
    }
}
