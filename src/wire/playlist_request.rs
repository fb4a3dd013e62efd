//! Bodies of requests about playlists.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::request::{given, given_object, given_object_list, object};
use super::{MediaType, Mode, PlaylistOrder, PlaylistType, Tone};

/// `POST /playlists`; what is absent gets its default.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CreatePlaylist {
    pub name: String,
    #[serde(default, deserialize_with = "object")]
    pub configuration: NewConfiguration,
    /// Either these or a source.
    #[serde(default, deserialize_with = "given_object_list")]
    pub images: Option<Vec<NewPlaylistItem>>,
    /// The filters, by the names of the query of `GET /images`.
    #[serde(default, deserialize_with = "given")]
    pub source: Option<Map<String, Value>>,
}

/// The intervals of a timer in seconds: a second to a year.
pub(crate) const INTERVALS: std::ops::RangeInclusive<i64> = 1..=31_536_000;

/// One object in two strengths: a `POST` passes over fields that it does not know, a `PATCH`
/// refuses them.
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
    /// Numbers are wider than what is allowed, so that a refusal can say what is.
    NewConfiguration and PatchConfiguration {
        #[serde(rename = "type")]
        kind: Option<PlaylistType>,
        interval: Option<i64>,
        order: Option<PlaylistOrder>,
        always_start_on_first_image: Option<bool>,
    }
}

objects! {
    /// `media_type` is taken from whoever sends back what a record said: the image's own counts.
    NewPlaylistItem and PatchPlaylistItem {
        image_id: i64,
        media_type: Option<MediaType>,
        /// Minutes since midnight.
        time: Option<i64>,
        /// In place of a time: `07:30`, `sunset-30m`.
        at: Option<String>,
        /// For `appearance`.
        when: Option<Tone>,
    }
}

/// `PATCH /playlists/{id}`; `configuration` is merged, `images` replaces all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PatchPlaylist {
    #[serde(deserialize_with = "given")]
    pub name: Option<String>,
    #[serde(deserialize_with = "given_object")]
    pub configuration: Option<PatchConfiguration>,
    #[serde(deserialize_with = "given_object_list")]
    pub images: Option<Vec<PatchPlaylistItem>>,
    #[serde(deserialize_with = "given")]
    pub source: Option<Map<String, Value>>,
}

/// `POST /playlists/{id}/start`; monitors are as in [`SetWallpaper`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartPlaylist {
    pub monitors: Option<Vec<String>>,
    /// The same as the mode `extend`.
    pub extend: Option<bool>,
    pub mode: Option<Mode>,
}

/// `POST /playlists/{id}/next` and `previous`, and those of all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepPlaylists {
    /// Only the playlists that run on one of these.
    pub monitors: Option<Vec<String>>,
}
