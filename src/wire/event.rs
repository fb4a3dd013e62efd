//! Every event of the stream, with its payload's fields in the order that the API documents.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::image::{put_id, put_ids};
use super::names::words;
use super::{AppearanceMode, Image, MediaType, Mode, Source, Timestamp, Tone};

words! {
    /// The collection that a client should fetch again.
    GalleryDomain {
        Images = "images", Folders = "folders", Playlists = "playlists", History = "history",
    }
}

words! {
    /// Why references to an image were removed.
    OrphanReason { RowMissing = "row_missing", FileMissing = "file_missing" }
}

/// A playlist's item that the backend cannot show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedItem {
    pub image_id: i64,
    pub media_type: MediaType,
    pub slot_index: usize,
}

/// One list gives the events, their names and their payloads.
macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $name:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)?
    })+) => {
        words! {
            /// The type of an event.
            EventKind { $($variant = $name),+ }
        }

        /// Something that happened. Fields that are `None` are omitted.
        #[derive(Clone, Debug, Serialize)]
        #[serde(untagged)]
        pub enum Event {
            $($(#[$doc])* $variant { $($(#[$field_doc])* $field: $type),* },)+
        }

        impl Event {
            pub fn kind(&self) -> EventKind {
                match self { $(Self::$variant { .. } => EventKind::$variant),+ }
            }
        }
    };
}

events! {
    WallpaperChanged = "wallpaper_changed" {
        #[serde(serialize_with = "put_id")]
        image_id: i64,
        media_type: MediaType,
        /// Null for a plain colour.
        path: Option<PathBuf>,
        tags: Vec<String>,
        monitors: Vec<String>,
        mode: Mode,
        source: Source,
        backend: String,
        /// Only when the image has a palette.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        colors: Vec<String>,
        image_name: String,
        /// `#rrggbb`, instead of an image.
        #[serde(skip_serializing_if = "Option::is_none")]
        color: Option<String>,
        /// In mode `each`: the image of each monitor of the whole call.
        #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "put_ids")]
        images: BTreeMap<String, i64>,
    }
    WallpaperApplyFailed = "wallpaper_apply_failed" {
        #[serde(serialize_with = "put_id")]
        image_id: i64,
        error: String,
        backend: String,
    }
    WallpaperRestoreFailed = "wallpaper_restore_failed" {
        backend: String,
        error: String,
    }
    PlaylistStarted = "playlist_started" {
        playlist_id: i64,
        playlist_name: String,
        monitors: Vec<String>,
        applied_to: Vec<String>,
        extend: bool,
    }
    /// Stop-all has `action` and `stopped` instead of `playlist_id`.
    PlaylistStopped = "playlist_stopped" {
        #[serde(skip_serializing_if = "Option::is_none")]
        playlist_id: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stopped: Option<usize>,
    }
    PlaylistPaused = "playlist_paused" {
        #[serde(skip_serializing_if = "Option::is_none")]
        playlist_id: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        paused: Option<usize>,
    }
    PlaylistResumed = "playlist_resumed" {
        #[serde(skip_serializing_if = "Option::is_none")]
        playlist_id: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        resumed: Option<usize>,
    }
    PlaylistImageChanged = "playlist_image_changed" {
        playlist_id: i64,
        image_index: usize,
        #[serde(serialize_with = "put_id")]
        image_id: i64,
        monitors: Vec<String>,
        /// `missed_event_recovery` when catching up after a missed change.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<&'static str>,
        /// In mode `each`: the image of each monitor.
        #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "put_ids")]
        images: BTreeMap<String, i64>,
    }
    PlaylistSkippedIncompatible = "playlist_skipped_incompatible" {
        playlist_id: i64,
        playlist_name: String,
        backend: String,
        skipped: usize,
        applied_index: usize,
        skipped_items: Vec<SkippedItem>,
    }
    /// `backend` in fixed mode, `media_type` in auto mode.
    PlaylistNoCompatibleItem = "playlist_no_compatible_item" {
        playlist_id: i64,
        playlist_name: String,
        total_images: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        backend: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<MediaType>,
    }
    ProcessingStarted = "processing_started" {
        batch_id: String,
        total: usize,
    }
    ImageProcessed = "image_processed" {
        batch_id: String,
        image: Box<Image>,
        current: usize,
        total: usize,
        elapsed_ms: u64,
        /// True when the library had this content already; absent otherwise.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        duplicate: bool,
        /// The file that was named, or was found in a named directory.
        path: String,
        /// A fault in the file, though its picture is complete.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    ImageError = "image_error" {
        batch_id: String,
        path: String,
        error: String,
        current: usize,
        total: usize,
        elapsed_ms: u64,
        /// It was found in a directory and is not of a supported type; absent otherwise.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        skipped: bool,
    }
    ProcessingComplete = "processing_complete" {
        batch_id: String,
        total: usize,
        succeeded: usize,
        failed: usize,
        elapsed_ms: u64,
        /// Skipped files, which are not counted as failures.
        skipped: usize,
    }
    ProcessingCancelled = "processing_cancelled" {
        batch_id: String,
        total: usize,
        succeeded: usize,
        failed: usize,
        elapsed_ms: u64,
        /// Skipped files, which are not counted as failures.
        skipped: usize,
    }
    ConfigChanged = "config_changed" {
        sections: Vec<String>,
        /// `file`, `api_reset_all` or `api_reset_backend`; absent for a plain patch.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<&'static str>,
    }
    AppearanceChanged = "appearance_changed" {
        mode: AppearanceMode,
        now: Tone,
    }
    GalleryChanged = "gallery_changed" {
        domain: GalleryDomain,
    }
    ImageOrphanPurged = "image_orphan_purged" {
        image_id: i64,
        reason: OrphanReason,
        monitor_states_purged: usize,
        history_entries_purged: usize,
        playlists_affected: usize,
    }
    /// `backend` and `retrying`, or `backend` alone, or `checked`.
    BackendUnavailable = "backend_unavailable" {
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        backend: Option<String>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        retrying: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        checked: Vec<String>,
    }
}

/// An event's payload with its time: the `data:` line of the stream.
#[derive(Serialize)]
struct Stamped<'a> {
    #[serde(flatten)]
    event: &'a Event,
    timestamp: Timestamp,
}

impl Event {
    /// The payload as one line of JSON, `timestamp` last.
    pub fn to_json(&self, timestamp: Timestamp) -> serde_json::Result<String> {
        serde_json::to_string(&Stamped {
            event: self,
            timestamp,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_absent_ones_are_omitted() {
        let now = Timestamp::now();
        let check = |event: Event, kind: &str, start: &str| {
            assert_eq!(event.kind().as_str(), kind);
            let json = event.to_json(now).unwrap();
            assert_eq!(json, format!("{start},\"timestamp\":\"{now}\"}}"));
        };
        check(
            Event::PlaylistStopped {
                playlist_id: None,
                action: Some("stop_all"),
                stopped: Some(2),
            },
            "playlist_stopped",
            r#"{"action":"stop_all","stopped":2"#,
        );
        check(
            Event::WallpaperApplyFailed {
                image_id: 7,
                error: "no".into(),
                backend: "feh".into(),
            },
            "wallpaper_apply_failed",
            r#"{"image_id":7,"error":"no","backend":"feh""#,
        );
    }
}
