//! murald: a wallpaper daemon and its command, in one executable.
//!
//! A handful of threads each own one thing and talk over bounded channels. Nothing mutable is
//! shared but the database file, the configuration snapshot and the list of event subscribers.
//! The rooms below stand in reading order: a room imports only rooms of the layers under its own
//! (`tests/layers.rs` holds them to it).

// Layer 0: no room of ours below.
pub mod clock;
pub mod color;
pub mod lock;
pub mod logging;
pub mod media;
pub mod memory;
pub mod paths;
pub mod process;
pub mod signals;
pub mod systemd;
pub mod thread;
pub mod wire;

// Layer 1
pub mod compositor;
pub mod config;
pub mod events;
pub mod store;
pub mod transcode;

// Layer 2
pub mod backends;
pub mod library;

// Layer 3
pub mod wallpaper;

// Layer 4
pub mod parallax;
pub mod playlist;

// Layer 5
pub mod http;

// Layer 6
pub mod daemon;

// The client sees `wire` and `paths` only, and `media` for pictures in the terminal.
pub mod cli;
