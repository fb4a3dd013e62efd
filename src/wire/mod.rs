//! What travels between daemon and clients: records, request bodies, events and the error body.
//!
//! Shared by `http` and `cli`, so that both speak of the same fields. Field order is the order on
//! the wire. Nothing here reads a file, a clock or a setting.

mod error;
mod event;
mod image_row;
mod names;
mod record;
mod request;
mod time;
pub mod unix;

pub use error::{ErrorBody, ErrorCode};
pub use event::{Event, EventKind, GalleryDomain, OrphanReason, SkippedItem};
pub use image_row::ImageRow;
pub use names::{
    Format, LoopAction, LoopPreset, MediaFilter, MediaType, Mode, Orientation, Resolution,
    SortOrder, Source, Unknown,
};
pub(crate) use names::{Word, words};
pub use record::{
    ActivePlaylist, BackendInfo, Capabilities, Conflict, CurrentMonitor, CurrentWallpaper, Data,
    DatabaseReport, Folder, HistoryEntry, HistorySource, Image, JsonObject, LibraryHealth, Monitor,
    Page, Pagination, Playback, Playlist, PlaylistConfiguration, PlaylistItem, PlaylistOrder,
    PlaylistType, Theme, WebCapabilities, WebMeta,
};
pub use request::{
    CreateFolder, CreatePlaylist, DeleteImages, ExportLoop, ExtractPalette, ImportImages,
    ImportWeb, MoveImages, NewConfiguration, NewPlaylistItem, NoFields, PatchCapabilities,
    PatchFolder, PatchImage, PatchPlaylist, RandomWallpaper, SelectAll, SetWallpaper,
    StartPlaylist,
};
pub use time::Timestamp;
