//! What other programs read of the wallpapers and hear of them, on real desktops.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[path = "../desktop/mod.rs"]
mod desktop;
mod files;
mod hook;
#[path = "../support/mod.rs"]
mod support;
