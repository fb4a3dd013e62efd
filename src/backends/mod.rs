//! The seven backends behind one trait, with their placements and their error.
//!
//! A backend makes the screen show what it is told and keeps it shown. Each backend in use is owned
//! by one thread of `wallpaper` (its worker), which calls it and may wait for it: nothing here is
//! called by a thread that others need. A backend knows no database, no playlist and no client.

mod awww;
mod builtin;
mod context;
mod copies;
pub(crate) mod decoding;
mod feh;
mod fit_and_transition;
mod follow;
mod foreign;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/backends.rs"]
pub mod fuzz;
mod hyprpaper;
mod mpvpaper;
mod registry;
mod socket;
mod swaybg;
mod trace;
mod unavailable_reason;
mod version;
mod wal_qt;

pub use context::{Backends, RootPainter};
pub(crate) use fit_and_transition::{fit_word, has_transition};
pub(crate) use registry::{REGISTRY, Registration, registration};
pub(crate) use unavailable_reason::{UnavailableReason, not_installed, other_session};
pub use version::Versions;
pub(crate) use wal_qt::Client as WalQtClient;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::compositor::Output;
use crate::sys::Cancel;
use crate::wire::{Fit, MediaType, Position, Sound, SoundChange, WebCapabilities};

/// One way to put wallpapers on screens, in use.
pub trait Backend: Send {
    /// Makes the outputs of this backend show exactly `placements`, changing only what differs from what
    /// is there already (also what an earlier daemon has left). Returns once the new
    /// pictures are up; what they replace goes only then. An error leaves what was there.
    fn show(&mut self, placements: &[Placement], cancel: &Cancel) -> Result<(), Error>;

    /// Changes with this transition from now on; none: as the settings have it.
    fn use_transition(&mut self, _: Option<&str>) {}

    /// Has the next [`Self::show`] show all by new processes in place of those that run.
    fn renew(&mut self) {}

    /// Warnings about the placements that [`Self::show`] has just shown, for example that another
    /// program hides them. One sentence each.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The outputs on which nothing of the last [`Self::show`] was seen yet, as they are off or
    /// covered. Pictures of other backends stay there until something is seen. The channel that
    /// reports the end of processes reports this, too.
    fn unseen(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Pauses the videos and pages on these outputs. Resumes the others, if this backend has paused
    /// them, also through an earlier daemon. Pauses by somebody else are left alone, and an output
    /// that was not seen yet stays unseen.
    fn pause(&mut self, _: &BTreeSet<String>, _: &Cancel) -> Result<(), Error> {
        Ok(())
    }

    /// Changes the sound of the video that plays, without starting it again.
    fn sound(&mut self, _: SoundChange, _: &Cancel) -> Result<Sound, Error> {
        Err(Error::Refused("it cannot change the sound".to_owned()))
    }

    /// Takes down all that is ours: pictures and processes.
    fn clear(&mut self) -> Result<(), Error>;

    /// Called when one of its processes has ended, or was seen at last: whether all that it needs
    /// still runs. If not, what it shows is shown again.
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
    pub fn of(media_type: MediaType, animated: bool) -> Self {
        match media_type {
            MediaType::Image if animated => Self::AnimatedImage,
            MediaType::Image => Self::StaticImage,
            MediaType::Video => Self::Video,
            MediaType::Web => Self::Web,
        }
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
    /// The file to show: the library's, or a slice of it. For a web package its entry.
    pub path: PathBuf,
    /// Stands for what is in the file: a loop takes the place of its video under the same name.
    pub content: String,
    pub kind: Kind,
    pub audio_enabled: bool,
    pub web: Option<Web>,
    /// The outputs that one picture is stretched over, this one among them; empty otherwise.
    pub extended_over: Vec<String>,
    /// The outputs of `extended_over` that are connected, also while they show a workspace's picture.
    #[serde(default)]
    pub span: Vec<Output>,
    /// Overrides the fit of the backend's settings.
    #[serde(default)]
    pub fit: Option<Fit>,
    /// Overrides the position of the backend's settings: the part of the picture that is seen.
    #[serde(default)]
    pub position: Option<Position>,
    /// The sound to start with, instead of the usual one.
    #[serde(default)]
    pub sound: Option<Sound>,
}

/// The part of a placement that only a web package has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Web {
    pub capabilities: WebCapabilities,
    pub parallax_direction: Option<String>,
    /// Declared defaults with the owner's overrides over them.
    pub values: Map<String, Value>,
}

/// The kind decides what the reconciler does next; the text is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The backend or its server does not start or does not answer: worth another try later.
    #[error("{0}")]
    Unavailable(String),
    /// The backend runs and will not show this.
    #[error("{0}")]
    Refused(String),
    /// The backend has no memory for what it should show here: another may have some.
    #[error("{0}")]
    NoMemory(String),
    /// This file cannot be read.
    #[error("cannot show {}: {why}", path.display())]
    File { path: PathBuf, why: String },
    /// Told to stop before it was done.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// A file that is needed lies on a disk that does not respond.
    pub(crate) fn no_answer(path: &Path) -> Self {
        Self::Unavailable(format!("the disk of {} does not answer", path.display()))
    }
}
