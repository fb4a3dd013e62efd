//! The records of the API except images and reports: pages, folders, playlists, monitors, backends,
//! wallpapers. Field order is the order on the wire.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::image::{labelled, put_id, put_ids};
use super::names::words;
use super::{AppearanceMode, Fit, MediaType, Mode, PauseReason, Position, Timestamp, Tone};

/// A list that has no pages: `{"data": [...]}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Data<T> {
    pub data: Vec<T>,
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Page<T> {
    pub data: Vec<T>,
    pub pagination: Pagination,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pagination {
    pub page: u64,
    pub per_page: u64,
    pub total_items: u64,
    pub total_pages: u64,
}

/// `GET /images/ids`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ids {
    pub ids: Vec<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Folder {
    pub id: i64,
    pub name: String,
    pub parent_id: Option<i64>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub image_count: u64,
    pub folder_count: u64,
    /// The images in this folder and in all folders below it.
    pub images_below: u64,
}

words! {
    /// The condition that advances a playlist.
    PlaylistType {
        Timer = "timer", Manual = "manual", TimeOfDay = "time_of_day", DayOfWeek = "day_of_week",
        Appearance = "appearance",
    }
}

words! {
    PlaylistOrder { Ordered = "ordered", Random = "random" }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaylistConfiguration {
    #[serde(rename = "type")]
    pub kind: PlaylistType,
    /// Seconds, for `timer`.
    pub interval: u32,
    pub order: PlaylistOrder,
    pub always_start_on_first_image: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaylistItem {
    #[serde(serialize_with = "put_id")]
    pub image_id: i64,
    /// `#rrggbb`, instead of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    pub media_type: MediaType,
    /// Minutes since midnight, for `time_of_day`; other types keep any number for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<i64>,
    /// Instead of `time`: `07:30`, `sunset-30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// For `appearance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Tone>,
}

/// The mode that decides between light and dark, and the current appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Appearance {
    pub mode: AppearanceMode,
    pub now: Tone,
}

/// The state of the machine and the session, and whether it pauses everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Power {
    /// Whether the machine runs on battery; none if the battery is not watched.
    pub battery: Option<bool>,
    pub locked: bool,
    pub idle: bool,
    pub resting: Option<PauseReason>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Playback {
    pub was_running: bool,
    pub current_index: usize,
    pub paused: bool,
    pub monitors: Vec<String>,
    pub extend: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Playlist {
    pub id: i64,
    pub name: String,
    pub configuration: PlaylistConfiguration,
    /// If there is a source: the images that match it now, in the records of the API.
    pub images: Vec<PlaylistItem>,
    /// The filters of a dynamic playlist; absent if the items are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Map<String, Value>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playback: Option<Playback>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActivePlaylist {
    pub playlist_id: i64,
    pub playlist_name: String,
    pub playlist_type: PlaylistType,
    pub current_index: usize,
    /// None while a dynamic playlist finds no image, and for a plain colour.
    pub current_image_id: Option<i64>,
    /// `#rrggbb`, instead of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_color: Option<String>,
    pub previous_image_id: Option<i64>,
    pub next_image_id: Option<i64>,
    pub total_images: usize,
    pub paused: bool,
    /// Why it is paused, besides a client's pause.
    pub resting: Option<PauseReason>,
    /// Resumed by a client although it is resting.
    #[serde(skip_serializing_if = "is_false")]
    pub resumed: bool,
    pub started_at: Timestamp,
    pub slot_started_at: Option<Timestamp>,
    pub next_change_at: Option<Timestamp>,
    /// The declared monitors.
    pub monitors: Vec<String>,
    /// The declared monitors that are connected.
    pub applied_to: Vec<String>,
    pub extend: bool,
    pub mode: Mode,
    /// Why none of its images can be shown: `builtin cannot show any image of`. Not in the API.
    #[serde(skip)]
    pub not_shown: Option<String>,
}

/// A program that draws backgrounds and was not started by us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    pub program: String,
    /// None if its window does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
}

/// A warning that names the program.
impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        if let Some(pid) = self.pid {
            write!(f, " (process {pid})")?;
        }
        f.write_str(", which murald did not start, draws backgrounds and may hide the wallpaper")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct HistoryEntry {
    pub id: i64,
    #[serde(serialize_with = "put_id")]
    pub image_id: i64,
    pub image_name: String,
    /// `#rrggbb`, instead of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    pub monitors: Vec<String>,
    pub mode: Mode,
    pub set_at: Timestamp,
    pub source: HistorySource,
    pub backend: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// In mode `each`: the image of each monitor of the whole call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "put_ids")]
    pub images: BTreeMap<String, i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistorySource {
    #[serde(rename = "type")]
    pub kind: super::Source,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playlist_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playlist_name: Option<String>,
}

impl HistorySource {
    /// Without a playlist.
    pub(crate) fn from_kind(kind: super::Source) -> Self {
        Self {
            kind,
            playlist_id: None,
            playlist_name: None,
        }
    }
}

/// The answer of `POST /wallpaper/set`, `random` and `back`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SetAnswer {
    pub status: SetStatus,
    #[serde(serialize_with = "put_id")]
    pub image_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    pub image_path: Option<PathBuf>,
    /// `#rrggbb`, instead of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The name of the monitor, `*` for all, otherwise the names joined by commas.
    pub monitor: String,
    /// Empty if it is for monitors that are not connected yet.
    pub monitors: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    pub mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The image of each monitor, if they may differ.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "put_ids")]
    pub images: BTreeMap<String, i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The monitors that show the wallpaper of a workspace, and that workspace.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hidden_by: BTreeMap<String, String>,
}

words! {
    /// The outcome of a request for a wallpaper; superseded by a newer one for the same monitors.
    SetStatus { Set = "set", Superseded = "superseded" }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurrentMonitor {
    pub monitor_name: String,
    /// None for a plain colour.
    pub image_id: Option<i64>,
    pub image_name: String,
    pub image_path: Option<PathBuf>,
    /// `#rrggbb`, instead of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub mode: Mode,
    pub backend: String,
    pub set_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Only for videos shown by mpvpaper, like the next field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub muted: Option<bool>,
    /// None until a client sets the sound: mpv uses its own settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<u8>,
    /// Why its video or HTML wallpaper is paused.
    pub paused_by: Option<PauseReason>,
    /// The workspace whose wallpaper is shown instead of the monitor's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// An entry of `[workspaces]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Workspace {
    pub name: String,
    /// Null if nothing matches, if no backend can show it, and for a plain colour.
    pub image_id: Option<i64>,
    pub image_name: Option<String>,
    /// `#rrggbb`, instead of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    pub playlist_id: Option<i64>,
    /// The monitor that shows the workspace.
    pub monitor: Option<String>,
    pub warning: Option<String>,
}

impl CurrentMonitor {
    /// The image with its id, for people.
    pub(crate) fn label(&self) -> String {
        match self.image_id {
            Some(id) => labelled(&self.image_name, id),
            None => self.image_name.clone(),
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The answer to `POST /images` with `wait`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ImportedBatch {
    /// `complete` or `cancelled`.
    pub status: &'static str,
    pub batch_id: String,
    /// Files found.
    pub total: usize,
    pub succeeded: usize,
    pub failed: usize,
    pub skipped: usize,
    /// In the order of the inputs.
    pub images: Vec<i64>,
    pub notes: Vec<ImportNote>,
    pub errors: Vec<ImportProblem>,
}

/// A remark about an imported file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ImportNote {
    pub path: String,
    pub note: String,
}

/// Why a file was not imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ImportProblem {
    pub path: String,
    pub error: String,
}
