//! murald: a wallpaper daemon and its client, in one executable.
//!
//! Threads own their data and communicate over bounded channels; ARCHITECTURE.md lists them.
//! The modules form layers: a module imports only modules of lower layers, and in layer 0 also of
//! its own (`tests/layers.rs` checks this).

// Layer 0: these modules import only each other.
pub(crate) mod battery;
pub(crate) mod clock;
pub(crate) mod color;
pub(crate) mod digest;
pub(crate) mod error_chain;
pub(crate) mod kernel;
pub(crate) mod lock;
pub(crate) mod logging;
pub(crate) mod media;
pub(crate) mod memory;
pub(crate) mod paths;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod signals;
pub(crate) mod sys;
pub(crate) mod systemd;
pub(crate) mod thread;
pub(crate) mod wire;

// Layer 1
pub(crate) mod compositor;
pub(crate) mod decode;
pub(crate) mod events;

// Layer 2
pub(crate) mod config;
pub(crate) mod draw;
pub(crate) mod store;
pub(crate) mod transcode;

// Layer 3
pub(crate) mod backends;
pub(crate) mod desktop;
pub(crate) mod library;

// Layer 4
pub(crate) mod wallpaper;

// Layer 5
pub(crate) mod parallax;
pub(crate) mod playlist;

// Layer 6
pub(crate) mod http;

// Layer 7
pub(crate) mod daemon;

// The client imports only `wire`, `paths`, `media`, `color`, `sys` and `error_chain`.
pub(crate) mod cli;

// The executable's entry point, and the items for its tests and benches.
mod entry;
#[doc(hidden)]
pub mod internals;

pub use entry::main;
