//! The bodies of requests that carry more than a name.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
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

/// `PUT /library/watch`, which needs all of `watch`, and `PATCH`; absent fields stay as they are.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeWatch {
    #[serde(default, deserialize_with = "given")]
    pub watch: Option<ListChange<String>>,
    #[serde(default, deserialize_with = "given")]
    pub watch_folders: Option<bool>,
    #[serde(default, deserialize_with = "given")]
    pub exclude: Option<Vec<String>>,
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

/// Items that are added to a list, and items that are removed from it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference<T, R = T> {
    #[serde(default = "Vec::new")]
    pub add: Vec<T>,
    #[serde(default = "Vec::new")]
    pub remove: Vec<R>,
}

/// A change of a list: all of its items, or a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListChange<T, R = T> {
    All(Vec<T>),
    Some(Difference<T, R>),
}

impl<T, R> From<Vec<T>> for ListChange<T, R> {
    fn from(all: Vec<T>) -> Self {
        Self::All(all)
    }
}

struct ListOrDifference<T, R>(PhantomData<(T, R)>);

impl<'de, T: Deserialize<'de>, R: Deserialize<'de>> Deserialize<'de> for ListChange<T, R> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListOrDifference(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>, R: Deserialize<'de>> Visitor<'de> for ListOrDifference<T, R> {
    type Value = ListChange<T, R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list, or an object with add and remove")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(ListChange::All)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        Difference::deserialize(MapAccessDeserializer::new(fields)).map(ListChange::Some)
    }
}

/// A field of a record that cannot be changed: a client may send the whole record back.
pub(super) type Fixed = Option<IgnoredAny>;

/// A `PATCH` body with the fields of the record that cannot be changed, which are ignored.
macro_rules! patch_of_record {
    (
        $(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }
        fixed { $($fixed:ident),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[allow(dead_code, reason = "fixed fields are only known")]
        pub(crate) struct $name {
            $($(#[$attribute])* pub $field: $type,)*
            $($fixed: $crate::wire::request::Fixed,)*
        }
    };
}
pub(super) use patch_of_record;

patch_of_record! {
    /// `PATCH /folders/{id}`; `parent_id` null moves to the root.
    PatchFolder {
        #[serde(deserialize_with = "given")]
        name: Option<String>,
        #[serde(deserialize_with = "given")]
        parent_id: Option<Option<i64>>,
    }
    fixed { id, created_at, updated_at, image_count, folder_count, images_below }
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
    pub folder_id: Option<i64>,
}

patch_of_record! {
    /// `PATCH /images/{id}`; `folder_id` null moves to the root.
    PatchImage {
        #[serde(deserialize_with = "given")]
        name: Option<String>,
        #[serde(deserialize_with = "given")]
        tags: Option<ListChange<String>>,
        #[serde(deserialize_with = "given")]
        description: Option<String>,
        /// `#rrggbb`, most dominant first.
        #[serde(deserialize_with = "given")]
        colors: Option<Vec<String>>,
        #[serde(deserialize_with = "given")]
        folder_id: Option<Option<i64>>,
        #[serde(deserialize_with = "given")]
        is_selected: Option<bool>,
        #[serde(deserialize_with = "given")]
        audio_enabled: Option<bool>,
        #[serde(deserialize_with = "given")]
        position: Option<Option<Position>>,
        /// Only for web packages, like the next field.
        #[serde(deserialize_with = "given")]
        wallpaper_config_overrides: Option<Map<String, Value>>,
        #[serde(deserialize_with = "given_object")]
        web_capabilities: Option<PatchCapabilities>,
    }
    fixed {
        id, path, media_type, format, width, height, duration, animated, file_size, checksum,
        hue_group, imported_at, source_path, in_place, thumbnails, preview_path, web_meta,
    }
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

/// `PATCH /images`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchImages {
    pub ids: Vec<i64>,
    #[serde(deserialize_with = "object")]
    pub tags: Difference<String>,
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
#[derive(Clone, Debug)]
pub(crate) struct Object<T>(pub T);

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
