//! Bodies of requests that carry more than a name.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Mode;

/// `POST /images`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportImages {
    pub paths: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder_id: Option<i64>,
}

/// `DELETE /images`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteImages {
    pub ids: Vec<i64>,
}

/// `POST /wallpaper/set`; without `monitor` and `monitors`, or with `*`: all connected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetWallpaper {
    pub image_id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitors: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// `POST /wallpaper/random`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RandomWallpaper {
    /// `*` or absent: all connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}
