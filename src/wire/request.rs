//! The bodies of requests that carry more than a name.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AppearanceMode, Fit, LoopAction, LoopPreset, Mode, Position, WebCapabilities};

/// `POST /images`
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ImportImages {
    pub paths: Vec<PathBuf>,
    pub folder_id: Option<i64>,
    /// Only for files: they stay in place and are not copied.
    #[serde(default)]
    pub in_place: bool,
    /// The answer comes when the batch is done.
    #[serde(default)]
    pub wait: bool,
}

/// `PUT /library/watch`; absent fields stay as they are.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutWatch {
    pub watch: Vec<String>,
    #[serde(default, deserialize_with = "given")]
    pub in_place: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    pub watch_folders: Option<bool>,
    /// Removes the images in place of directories that are no longer watched.
    #[serde(default)]
    pub forget: bool,
}

/// `DELETE /images`; unknown fields are refused, because a mistyped `trash` would delete for good.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteImages {
    #[serde(default)]
    pub ids: Vec<i64>,
    /// Instead of ids: files that were kept when their images were deleted.
    #[serde(default)]
    pub paths: Vec<PathBuf>,
    /// Also deletes the files of images in place; by default the same as `trash`.
    #[serde(default, deserialize_with = "given")]
    pub files: Option<bool>,
    /// Moves files to the desktop's trash.
    #[serde(default)]
    pub trash: bool,
}

impl DeleteImages {
    /// Whether the files of images in place are deleted, too.
    pub(crate) fn takes_files(&self) -> bool {
        self.files.unwrap_or(self.trash)
    }
}

/// `POST /images/{id}/extract-video-palette`
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ExtractPalette {
    pub time_seconds: f64,
}

/// `POST /images/{id}/video-loop-export`; `folder_id` only with `import_new`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ExportLoop {
    pub in_seconds: f64,
    pub out_seconds: f64,
    pub preset: LoopPreset,
    pub action: LoopAction,
    pub folder_id: Option<i64>,
    #[serde(default)]
    pub blend_halves: bool,
}

/// `POST /wallpaper/set`; without `monitor` and `monitors`, or with `*`, on all connected monitors.
/// Takes one of `image_id`, `color` and `path`; a file that the library does not have is imported.
///
/// Unknown fields are refused, here and in other requests in which a mistyped `monitor` would
/// change every screen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetWallpaper {
    pub image_id: Option<i64>,
    pub path: Option<PathBuf>,
    /// `#rgb` or `#rrggbb`.
    pub color: Option<String>,
    pub monitor: Option<String>,
    pub monitors: Option<Vec<String>>,
    pub mode: Option<Mode>,
    pub fit: Option<Fit>,
    /// The part of the picture that is shown.
    pub position: Option<Position>,
    /// The name of a transition of the backend.
    pub transition: Option<String>,
    /// Changes nothing now: sets the wallpaper of monitors that were never seen before.
    pub default: Option<bool>,
}

/// `POST /wallpaper/random`; monitors are as in [`SetWallpaper`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RandomWallpaper {
    /// The filters, with the names of the query of `GET /images`.
    pub filter: Option<Map<String, Value>>,
    pub monitor: Option<String>,
    pub monitors: Option<Vec<String>>,
    pub mode: Option<Mode>,
    pub fit: Option<Fit>,
    /// The part of the picture that is shown.
    pub position: Option<Position>,
    /// The name of a transition of the backend.
    pub transition: Option<String>,
}

/// `POST /wallpaper/back`; monitors are as in [`SetWallpaper`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackWallpaper {
    pub monitor: Option<String>,
    pub monitors: Option<Vec<String>>,
}

/// `POST /folders`
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CreateFolder {
    pub name: String,
    pub parent_id: Option<i64>,
}

/// `PATCH /folders/{id}`; `parent_id` null moves to the root.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PatchFolder {
    #[serde(deserialize_with = "given")]
    pub name: Option<String>,
    #[serde(deserialize_with = "given")]
    pub parent_id: Option<Option<i64>>,
}

/// `POST /folders/move-images`; `folder_id` null means the root.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct MoveImages {
    pub image_ids: Vec<i64>,
    // Required: a forgotten folder must not empty one.
    #[serde(deserialize_with = "nullable")]
    pub folder_id: Option<i64>,
}

/// `POST /images/import-web`
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ImportWeb {
    pub path: PathBuf,
    #[serde(default)]
    pub folder_id: Option<i64>,
}

/// `PATCH /images/{id}`; `folder_id` null moves to the root.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PatchImage {
    #[serde(deserialize_with = "given")]
    pub name: Option<String>,
    #[serde(deserialize_with = "given")]
    pub tags: Option<Vec<String>>,
    #[serde(deserialize_with = "given")]
    pub description: Option<String>,
    /// `#rrggbb`, most dominant first.
    #[serde(deserialize_with = "given")]
    pub colors: Option<Vec<String>>,
    #[serde(deserialize_with = "given")]
    pub folder_id: Option<Option<i64>>,
    #[serde(deserialize_with = "given")]
    pub is_selected: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub audio_enabled: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub position: Option<Option<Position>>,
    /// Only for web packages, like the next field.
    #[serde(deserialize_with = "given")]
    pub wallpaper_config_overrides: Option<Map<String, Value>>,
    #[serde(deserialize_with = "given_object")]
    pub web_capabilities: Option<PatchCapabilities>,
}

/// `POST /wallpaper/sound`; at least one of `muted` and `volume`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SetSound {
    pub monitor: Option<String>,
    pub monitors: Option<Vec<String>>,
    #[serde(deserialize_with = "given")]
    pub muted: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub volume: Option<i64>,
}

/// The sound of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sound {
    pub muted: bool,
    /// In percent.
    pub volume: u8,
}

/// A change of a [`Sound`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoundChange {
    pub muted: Option<bool>,
    pub volume: Option<u8>,
}

/// The changed fields of [`WebCapabilities`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatchCapabilities {
    #[serde(deserialize_with = "given")]
    pub network: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub keyboard: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub audio_reactive: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub parallax_aware: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub pointer_interactive: Option<bool>,
}

impl PatchCapabilities {
    pub fn over(self, before: WebCapabilities) -> WebCapabilities {
        WebCapabilities {
            network: self.network.unwrap_or(before.network),
            keyboard: self.keyboard.unwrap_or(before.keyboard),
            audio_reactive: self.audio_reactive.unwrap_or(before.audio_reactive),
            parallax_aware: self.parallax_aware.unwrap_or(before.parallax_aware),
            pointer_interactive: self
                .pointer_interactive
                .unwrap_or(before.pointer_interactive),
        }
    }
}

/// `POST /images/select-all`
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct SelectAll {
    pub selected: bool,
}

/// `PUT /appearance`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutAppearance {
    pub mode: AppearanceMode,
}

/// `PUT /power`; at least one of the fields.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PutPower {
    pub locked: Option<bool>,
    pub idle: Option<bool>,
}

/// The body of the other actions, on one playlist or on all.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

/// A field that was given; null only if its type allows it.
pub(super) fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A field that may be null and must not be absent.
pub(super) fn nullable<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// An object. The code that serde derives for a struct would also read its fields from a list.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

pub(super) fn object<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(fields)| fields)
}

pub(super) fn given_object<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    object(deserializer).map(Some)
}

pub(super) fn given_object_list<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let list = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(Some(
        list.into_iter().map(|Object(fields)| fields).collect(),
    ))
}
