//! Bodies of requests that carry more than a name.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AppearanceMode, Fit, LoopAction, LoopPreset, MediaType, Mode, PlaylistOrder, PlaylistType,
    Tone, WebCapabilities,
};

/// `POST /images`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ImportImages {
    pub paths: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder_id: Option<i64>,
    /// Files alone: they stay where they are, and are not copied.
    #[serde(default)]
    pub in_place: bool,
}

/// `PUT /library/watch`; what is absent stays as it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutWatch {
    pub watch: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub in_place: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub watch_folders: Option<bool>,
    /// The images in place of directories that are no longer watched go.
    #[serde(default)]
    pub forget: bool,
}

/// `DELETE /images`; a field that is not known is refused, or a mistyped `trash` would delete for good.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteImages {
    pub ids: Vec<i64>,
    /// Also the files of images that are not copies of ours; as `trash`, where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub files: Option<bool>,
    /// Files go to the desktop's trash; means `files`, too.
    #[serde(default)]
    pub trash: bool,
}

impl DeleteImages {
    /// Whether the files of images in place go, too.
    pub(crate) fn takes_files(&self) -> bool {
        self.files.unwrap_or(self.trash)
    }
}

/// `POST /images/{id}/extract-video-palette`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExtractPalette {
    pub time_seconds: f64,
}

/// `POST /images/{id}/video-loop-export`; `folder_id` only with `import_new`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExportLoop {
    pub in_seconds: f64,
    pub out_seconds: f64,
    pub preset: LoopPreset,
    pub action: LoopAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder_id: Option<i64>,
    #[serde(default)]
    pub blend_halves: bool,
}

/// `POST /wallpaper/set`; without `monitor` and `monitors`, or with `*`: all connected. Either
/// `image_id` or `path`, whose file is imported where the library does not have it.
///
/// A field that is not known is refused, here and wherever a mistyped `monitor` would change every
/// screen.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetWallpaper {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitors: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// Of the backend's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<String>,
    /// Nothing changes now: it is for monitors that were never seen before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// `POST /wallpaper/random`; monitors are as in [`SetWallpaper`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RandomWallpaper {
    /// By the names of the query of `GET /images`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitors: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// Of the backend's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CreateFolder {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<i64>,
}

/// `PATCH /folders/{id}`; `parent_id` null moves to the root.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PatchFolder {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub parent_id: Option<Option<i64>>,
}

/// `POST /folders/move-images`; `folder_id` null means the root.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MoveImages {
    pub image_ids: Vec<i64>,
    // Required: a forgotten folder must not empty one.
    #[serde(deserialize_with = "nullable")]
    pub folder_id: Option<i64>,
}

/// A field that was given; null only where its type has it.
fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A field that may be null and must not be absent.
fn nullable<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// An object. What serde derives for a struct would read its fields from a list, too.
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

fn object<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Object::deserialize(deserializer).map(|Object(fields)| fields)
}

fn object_list<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|Object(fields)| fields).collect())
}

fn given_object<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    object(deserializer).map(Some)
}

fn given_object_list<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    object_list(deserializer).map(Some)
}

/// `POST /images/import-web`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ImportWeb {
    pub path: PathBuf,
    #[serde(default)]
    pub folder_id: Option<i64>,
}

/// `PATCH /images/{id}`; `folder_id` null moves to the root.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PatchImage {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub tags: Option<Vec<String>>,
    /// `#rrggbb`, most dominant first.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub colors: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub folder_id: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub is_selected: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub audio_enabled: Option<bool>,
    /// Of a web package, as is the next.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub wallpaper_config_overrides: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given_object")]
    pub web_capabilities: Option<PatchCapabilities>,
}

/// Of [`WebCapabilities`] those that change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PatchCapabilities {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub network: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub keyboard: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub audio_reactive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub parallax_aware: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub pointer_interactive: Option<bool>,
}

impl PatchCapabilities {
    pub fn over(self, before: WebCapabilities) -> WebCapabilities {
        WebCapabilities {
            network: self.network.unwrap_or(before.network),
            keyboard: self.keyboard.unwrap_or(before.keyboard),
            audio_reactive: self.audio_reactive.unwrap_or(before.audio_reactive),
            parallax_aware: self.parallax_aware.unwrap_or(before.parallax_aware),
            pointer_interactive: self.pointer_interactive.unwrap_or(before.pointer_interactive),
        }
    }
}

/// `POST /images/select-all`
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SelectAll {
    pub selected: bool,
}

/// `POST /playlists`; what is absent gets its default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CreatePlaylist {
    pub name: String,
    #[serde(default, deserialize_with = "object")]
    pub configuration: NewConfiguration,
    /// Either these or a source.
    #[serde(default, deserialize_with = "given_object_list")]
    pub images: Option<Vec<NewPlaylistItem>>,
    /// By the names of the query of `GET /images`.
    #[serde(default, deserialize_with = "given")]
    pub source: Option<Map<String, Value>>,
}

/// One object in two strengths: a `POST` passes over fields that it does not know, a `PATCH`
/// refuses them.
macro_rules! objects {
    ($(#[$doc:meta])* $new:ident and $patch:ident {
        $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        pub struct $new { $($(#[$attribute])* pub $field: $type),* }

        /// The same, in a `PATCH`.
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $patch { $($(#[$attribute])* pub $field: $type),* }

        impl From<$patch> for $new {
            fn from($patch { $($field),* }: $patch) -> Self {
                Self { $($field),* }
            }
        }
    };
}

objects! {
    /// Numbers are wider than what is allowed, so that a refusal can say what is.
    NewConfiguration and PatchConfiguration {
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        kind: Option<PlaylistType>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order: Option<PlaylistOrder>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        always_start_on_first_image: Option<bool>,
    }
}

objects! {
    /// `media_type` is taken from whoever sends back what a record said: the image's own counts.
    NewPlaylistItem and PatchPlaylistItem {
        image_id: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<MediaType>,
        /// Minutes since midnight.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<i64>,
        /// In place of a time: `07:30`, `sunset-30m`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        /// For `appearance`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<Tone>,
    }
}

/// `PATCH /playlists/{id}`; `configuration` is merged, `images` replaces all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PatchPlaylist {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given_object")]
    pub configuration: Option<PatchConfiguration>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given_object_list")]
    pub images: Option<Vec<PatchPlaylistItem>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub source: Option<Map<String, Value>>,
}

/// `PUT /appearance`
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutAppearance {
    pub mode: AppearanceMode,
}

/// `PUT /power`: one of them at least.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PutPower {
    pub locked: Option<bool>,
    pub idle: Option<bool>,
}

/// `POST /playlists/{id}/start`; monitors are as in [`SetWallpaper`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartPlaylist {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitors: Option<Vec<String>>,
    /// The same as the mode `extend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extend: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// The other actions on playlists, of one and of all.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}
