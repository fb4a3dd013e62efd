//! The settings: one TOML file, one schema, one snapshot.
//!
//! `schema` lists sections and keys, `document` reads the file against it, `snapshot` is what
//! other modules read.

mod document;
mod error;
mod exclude;
mod file;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/config.rs"]
pub mod fuzz;
mod handle;
mod overlay;
mod patch;
mod schema;
mod snapshot;
mod toml;
mod watch;

pub use error::Error;
pub(crate) use error::Position;
pub(crate) use exclude::Exclude;
pub use handle::ConfigHandle;
pub(crate) use handle::check;
pub(crate) use patch::{own_directories, watched_directory};
pub(crate) use schema::{
    Awww, AwwwFilter, AwwwFormat, AwwwResize, AwwwTransition, Backend, Builtin, BuiltinBackdrop,
    BuiltinTransition, Compositor, Daemon, FehMode, HyprpaperFit, ImageFit, LogLevel, Mpvpaper,
    MpvpaperLayer, ParallaxDirection, ParallaxDriver, SelectionMode, StillFiles, SwaybgFit, WalQt,
    WalQtTransition,
};
pub use schema::{BackendName, Key, Rule, Section, ValueType};
pub(crate) use snapshot::Changed;
pub use snapshot::Config;
pub use watch::Watch;
