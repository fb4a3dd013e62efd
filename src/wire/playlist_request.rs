//! Bodies of requests about playlists.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::request::{ListChange, Object, given, given_object, object, patch_of_record};
use super::{MediaType, Mode, PlaylistOrder, PlaylistType, Tone};

/// `POST /playlists`; absent fields get their defaults.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CreatePlaylist {
    pub name: String,
    #[serde(default, deserialize_with = "object")]
    pub configuration: NewConfiguration,
    /// The images, unless there is a source.
    #[serde(default, deserialize_with = "given")]
    pub images: Option<Vec<Object<NewPlaylistItem>>>,
    /// The filters, with the names of the query of `GET /images`.
    #[serde(default, deserialize_with = "given")]
    pub source: Option<Map<String, Value>>,
}

/// The intervals of a timer in seconds: a second to a year.
pub(crate) const INTERVALS: std::ops::RangeInclusive<i64> = 1..=31_536_000;

/// An object in two forms: a `POST` ignores unknown fields, a `PATCH` refuses them.
macro_rules! objects {
    ($(#[$doc:meta])* $new:ident and $patch:ident {
        $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        pub struct $new { $($(#[$attribute])* pub $field: $type),* }

        /// The same, in a `PATCH`.
        #[derive(Clone, Debug, Default, Deserialize)]
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
    /// Numbers are wider than their allowed ranges, so that a refusal can name the range.
    NewConfiguration and PatchConfiguration {
        #[serde(rename = "type")]
        kind: Option<PlaylistType>,
        interval: Option<i64>,
        order: Option<PlaylistOrder>,
        always_start_on_first_image: Option<bool>,
    }
}

objects! {
    /// `media_type` is accepted from clients that send a record back; the image's own type is used.
    NewPlaylistItem and PatchPlaylistItem {
        image_id: Option<i64>,
        /// Instead of an image: `#rrggbb`.
        color: Option<String>,
        media_type: Option<MediaType>,
        /// Minutes since midnight.
        time: Option<i64>,
        /// Instead of `time`: `07:30`, `sunset-30m`.
        at: Option<String>,
        /// For `appearance`.
        when: Option<Tone>,
    }
}

patch_of_record! {
    /// `PATCH /playlists/{id}`; `configuration` is merged. A list of `images` replaces all.
    PatchPlaylist {
        #[serde(deserialize_with = "given")]
        name: Option<String>,
        #[serde(deserialize_with = "given_object")]
        configuration: Option<PatchConfiguration>,
        #[serde(deserialize_with = "given")]
        images: Option<ListChange<Object<PatchPlaylistItem>, i64>>,
        #[serde(deserialize_with = "given")]
        source: Option<Map<String, Value>>,
    }
    fixed { id, created_at, updated_at, playback }
}

/// `POST /playlists/{id}/start`; monitors are as in [`SetWallpaper`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartPlaylist {
    pub monitors: Option<Vec<String>>,
    /// The older form of the mode `extend`.
    pub extend: Option<bool>,
    pub mode: Option<Mode>,
}

/// `POST /playlists/{id}/next` and `previous`, and the same for all playlists.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepPlaylists {
    /// Steps only the playlists that run on one of these monitors.
    pub monitors: Option<Vec<String>>,
}
