//! Tests of the interfaces for other programs, on real desktops: links, colour files, the hook.

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
