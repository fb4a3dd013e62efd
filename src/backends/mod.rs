//! Defines the trait of the seven backends, their placements and their error.
//!
//! A backend shows the placements that it is given and keeps them shown. Each is owned by a worker
//! thread of `wallpaper`, the only thread that calls it and may wait for it. A backend knows no
//! database, playlist or client.

mod awww;
mod builtin;
mod context;
mod copies;
pub(crate) mod decoding;
mod feh;
mod fit_and_transition;
mod follow;
mod foreign;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/backends.rs"]
pub mod fuzz;
mod hyprpaper;
mod mpvpaper;
mod registry;
mod socket;
mod swaybg;
mod trace;
mod unavailable_reason;
mod wal_qt;

pub(crate) use builtin::clear_root;
pub use context::Backends;
pub(crate) use fit_and_transition::{fill_color, fit_word, transition_words};
pub(crate) use foreign::is_any_newer as is_any_background_newer;
pub(crate) use registry::{REGISTRY, Registration, registration};
pub(crate) use unavailable_reason::{UnavailableReason, not_installed, other_session};
pub(crate) use wal_qt::Client as WalQtClient;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::compositor::Output;
use crate::sys::Cancel;
use crate::wire::{Fit, Image, MediaType, Position, Sound, SoundChange, WebCapabilities};

/// A backend in use.
pub trait Backend: Send {
    /// Makes the outputs of this backend show exactly `placements`. Changes only what differs from what
    /// is shown already, including what an earlier daemon left. Returns once the new pictures are shown;
    /// the old ones are removed only then. After an error, the old pictures stay.
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error>;

    /// Uses this transition from now on; `None` stands for that of the settings.
    fn use_transition(&mut self, _: Option<&str>) {}

    /// Makes the next [`Self::show`] use new processes instead of the running ones.
    fn renew(&mut self) {}

    /// Warnings about the placements that [`Self::show`] has just shown, for example that another
    /// program hides them. One sentence each.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The outputs on which nothing of the last [`Self::show`] has been visible yet, because they are
    /// off or covered. Pictures of other backends stay there until then. The channel that reports the
    /// exit of processes reports changes of this, too.
    fn unseen(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Pauses the videos and HTML wallpapers on these outputs. Resumes the others that this backend has
    /// paused, also for an earlier daemon. Pauses by others are left alone. An output in
    /// [`Self::unseen`] stays there.
    fn pause(&mut self, _: &BTreeSet<String>, _: &Cancel) -> Result<(), Error> {
        Ok(())
    }

    /// Changes the sound of the video that plays, without restarting it.
    fn sound(&mut self, _: SoundChange, _: &Cancel) -> Result<Sound, Error> {
        Err(Error::Refused("it cannot change the sound".to_owned()))
    }

    /// Removes all our pictures and processes.
    fn clear(&mut self) -> Result<(), Error>;

    /// Whether all processes that the backend needs still run; if not, its pictures are shown again.
    /// Called when one of its processes has exited, or its picture has become visible.
    fn is_whole(&mut self) -> bool;
}

/// The kinds of content that a backend may be able to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    StaticImage,
    AnimatedImage,
    Video,
    Web,
}

impl Kind {
    pub const ALL: [Self; 4] = [
        Self::StaticImage,
        Self::AnimatedImage,
        Self::Video,
        Self::Web,
    ];

    pub fn from_media_type(media_type: MediaType, animated: bool) -> Self {
        match media_type {
            MediaType::Image if animated => Self::AnimatedImage,
            MediaType::Image => Self::StaticImage,
            MediaType::Video => Self::Video,
            MediaType::Web => Self::Web,
        }
    }

    pub(crate) fn from_image(image: &Image) -> Self {
        Self::from_media_type(image.media_type, image.animated)
    }

    pub fn is_image(self) -> bool {
        matches!(self, Self::StaticImage | Self::AnimatedImage)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::StaticImage => "static_image",
            Self::AnimatedImage => "animated_image",
            Self::Video => "video",
            Self::Web => "web",
        }
    }
}

/// One picture on one output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    pub output: Output,
    pub image_id: i64,
    /// The file to show: the library's, or a slice of it; for an HTML wallpaper, its entry.
    pub path: PathBuf,
    /// The checksum of the file, which may change under the same path: a loop replaces its video there.
    pub content: String,
    pub kind: Kind,
    pub audio_enabled: bool,
    pub web: Option<Web>,
    /// The outputs that the picture is stretched over, including this one; empty otherwise.
    pub extended_over: Vec<String>,
    /// The outputs of `extended_over` that are connected, also while they show a workspace's picture.
    #[serde(default)]
    pub span: Vec<Output>,
    /// Overrides the fit of the backend's settings.
    #[serde(default)]
    pub fit: Option<Fit>,
    /// Overrides the position of the backend's settings: the part of the picture that is visible.
    #[serde(default)]
    pub position: Option<Position>,
    /// The sound to start with, instead of the usual one.
    #[serde(default)]
    pub sound: Option<Sound>,
}

/// The part of a placement that only an HTML wallpaper has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Web {
    pub capabilities: WebCapabilities,
    pub parallax_direction: Option<String>,
    /// The declared defaults, overridden by the user's values.
    pub values: Map<String, Value>,
}

/// The variant decides what the reconciler does next; the text is for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The backend or its server does not start or does not answer; a later try may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The backend runs, but does not show this.
    #[error("{0}")]
    Refused(String),
    /// This file cannot be read.
    #[error("cannot show {}: {why}", path.display())]
    File { path: PathBuf, why: String },
    #[error("cancelled")]
    Cancelled,
}
