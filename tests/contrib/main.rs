//! Tests of contrib/: scripts, units, packages and recipes, with the real tools.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod colours;
#[path = "../desktop/mod.rs"]
mod desktop;
mod package;
mod recipes;
mod scripts;
#[path = "../support/mod.rs"]
mod support;
mod units;
