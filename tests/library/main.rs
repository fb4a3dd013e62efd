//! The library: how pictures come in, what is done with them, and what a kill or a crowd leaves.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod colors;
mod conformance;
mod crowd;
mod database;
mod decode;
#[path = "../desktop/mod.rs"]
mod desktop;
mod edit_kill;
mod failing;
mod filters;
mod formats;
mod guard;
mod import;
mod import_kill;
#[path = "../support/mod.rs"]
mod support;
mod upkeep;
mod watch;
mod web;
