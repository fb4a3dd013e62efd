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
mod schema;
mod snapshot;
mod template;
mod toml;
mod watch;
mod watch_paths;
mod watches;

pub use error::{Error, Position};
pub use handle::{Changed, ConfigHandle, check};
pub use schema::{
    Awww, AwwwFilter, AwwwFormat, AwwwResize, AwwwTransition, Backend, BackendName, Builtin,
    BuiltinFit, BuiltinTransition, Compositor, Daemon, FehMode, HyprpaperFit, Key, LogLevel,
    Mpvpaper, ParallaxDirection, ParallaxDriver, Rule, Section, SelectionMode, Spot, SwaybgFit,
    ValueType, WalQt,
};
pub use snapshot::Config;
pub use watch::Watch;
