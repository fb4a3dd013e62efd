//! The records, request bodies, events and error body that daemon and clients exchange.
//!
//! Shared by `http` and `cli`, so that both use the same fields. Field order is the order on the wire.
//! Nothing here reads a file or a setting; only `time` and `unix` read a clock.

pub(crate) mod collate;
mod error;
mod event;
mod image;
mod names;
mod playlist_request;
mod position;
mod record;
mod report;
mod request;
mod time;
pub(crate) mod unix;
pub(crate) mod zone;

pub(crate) use error::{BadParameter, ErrorBody, ErrorCode, Parameters};
pub use event::{Event, EventKind, GalleryDomain};
pub(crate) use event::{OrphanReason, SkippedItem};
pub(crate) use image::{
    COLOR_SIZE, DESCRIPTION_MAX, JsonObject, ThumbnailPaths, WebMeta, id_or_color, labelled, put_id,
};
pub use image::{Image, WebCapabilities};
pub(crate) use names::{
    AppearanceMode, Fit, LoopAction, LoopPreset, MediaFilter, MediaType, Orientation, PauseReason,
    Resolution, SortBy, SortOrder, Tone, Unknown, Word, words,
};
pub use names::{Format, Mode, Source};
pub(crate) use playlist_request::{
    CreatePlaylist, INTERVALS, NewConfiguration, NewPlaylistItem, PatchPlaylist, StartPlaylist,
    StepPlaylists,
};
pub(crate) use position::Position;
pub use record::HistorySource;
pub(crate) use record::{
    ActivePlaylist, Appearance, Conflict, CurrentMonitor, Data, Folder, HistoryEntry, Ids,
    ImportNote, ImportProblem, ImportedBatch, Page, Pagination, Playback, Playlist,
    PlaylistConfiguration, PlaylistItem, PlaylistOrder, PlaylistType, Power, SetAnswer, SetStatus,
    Workspace,
};
pub(crate) use report::{
    ApplyFailure, DatabaseReport, DebugFailure, DebugQueue, Finding, FindingState, HookFailure,
    InfoPaths, LibraryHealth, LibraryWatch, NextChange, Session, WatchState, WatchedDirectory, Why,
};
pub use request::DeleteImages;
pub(crate) use request::{
    BackWallpaper, ChangeWatch, CreateFolder, ExportLoop, ExtractPalette, ImportImages, ImportWeb,
    MoveImages, NoFields, Object, PatchCapabilities, PatchFolder, PatchImage, PatchImages,
    PutAppearance, PutPower, RandomWallpaper, SelectAll, SetSound, SetWallpaper, Sound,
    SoundChange,
};
pub(crate) use request::{Difference, ListChange};
pub use time::DayTime;
pub use time::Timestamp;
pub(crate) use time::{DAY_TIMES, SunEvent};
