//! What other programs read of the wallpapers, on real desktops.

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
#[path = "../support/mod.rs"]
mod support;
