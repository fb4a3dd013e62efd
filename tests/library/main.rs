//! Tests of the library: imports, changes, watched directories, and what kills, crowds and failing calls
//! do to it.

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
mod import;
mod import_kill;
mod migration_kill;
mod missing;
mod model;
mod records;
#[path = "../support/mod.rs"]
mod support;
mod upkeep;
mod watch;
mod web;
