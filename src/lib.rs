//! murald: a wallpaper daemon and its command, in one executable.
//!
//! A handful of threads each own one thing and talk over bounded channels; ARCHITECTURE.md lists them.
//! The modules are listed in layers: a module imports only modules of the layers below its own, and in
//! layer 0 also of its own layer (`tests/layers.rs` checks it).

// Layer 0: these modules import only each other.
pub(crate) mod battery;
pub(crate) mod clock;
pub(crate) mod color;
pub(crate) mod digest;
pub(crate) mod error_chain;
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

// The client sees `wire`, `paths`, `sys` and `error_chain` only, and `media` for pictures in the
// terminal.
pub(crate) mod cli;

// The executable, and the facade for its tests and benches.
mod entry;
#[doc(hidden)]
pub mod internals;

pub use entry::main;
