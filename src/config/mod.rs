//! The settings: one TOML file, one schema, one snapshot.
//!
//! `schema` says what there is, `document` reads the file against it, `snapshot` is what rooms get.

mod comments;
mod diff;
mod document;
mod error;
mod file;
mod handle;
mod overlay;
mod patch;
mod places;
mod schema;
mod snapshot;
mod template;
mod toml;
mod watch;

pub use error::{Error, Place};
pub use handle::{Change, Changed, ConfigHandle, Source, check};
pub use schema::{
    App, AutoPriorities, Awww, AwwwFilter, AwwwFormat, AwwwResize, AwwwTransition, Backend,
    BackendName, Bezier, Compositor, Daemon, Feh, FehMode, Hyprpaper, HyprpaperFit, ImageFit,
    ImageRendering, Key, Kind, LogLevel, Misfit, Monitors, Mpvpaper, ParallaxDirection,
    ParallaxDriver, RemoteGallery, Rule, Section, SelectionMode, Swaybg, SwaybgFit, Value, WalQt,
    WalQtTransition,
};
pub use snapshot::Config;
pub use watch::Watch;
