//! What a backend is given to show.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::compositor::Output;
use crate::wire::{Fit, MediaType, WebCapabilities};

/// What a backend must be able to show.
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
    /// In place of what the backend's settings say.
    #[serde(default)]
    pub fit: Option<Fit>,
}

/// What only a web package has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Web {
    pub capabilities: WebCapabilities,
    pub parallax_direction: Option<String>,
    /// Declared defaults with the owner's overrides over them.
    pub values: Map<String, Value>,
}
