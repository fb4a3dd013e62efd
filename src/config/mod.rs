//! The settings: one TOML file, one schema, one snapshot.
//!
//! `schema` says what there is, `document` reads the file against it, `snapshot` is what rooms get.

mod change;
mod comments;
mod diff;
mod document;
mod error;
mod file;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/config.rs"]
pub mod fuzz;
mod handle;
mod overlay;
mod patch;
mod schema;
mod snapshot;
mod template;
mod toml;
mod watch;
mod watchable;
mod watches;
mod writer;

pub(crate) use change::Changed;
pub use error::Error;
pub(crate) use error::Position;
pub use handle::ConfigHandle;
pub(crate) use handle::check;
pub(crate) use schema::{
    Awww, AwwwFilter, AwwwFormat, AwwwResize, AwwwTransition, Backend, Builtin, BuiltinFit,
    BuiltinTransition, Compositor, Daemon, FehMode, Hooks, HyprpaperFit, LogLevel, Mpvpaper,
    MpvpaperLayer, ParallaxDirection, ParallaxDriver, SelectionMode, Spot, StillFiles, SwaybgFit,
    WalQt, WalQtTransition,
};
pub use schema::{BackendName, Key, Rule, Section, ValueType};
pub use snapshot::Config;
pub use watch::Watch;
pub(crate) use watchable::{own_directories, watched_directory};
