//! Tests of the command: its calls, its requests to the daemon, its output, completions and migration.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod call;
mod calls;
mod completions;
mod delete;
#[path = "../desktop/mod.rs"]
mod desktop;
mod every_verb;
mod gallery;
mod help;
#[path = "../../benches/figures/lines.rs"]
mod lines;
mod long_running;
mod migrate;
mod migrate_lines;
mod output;
mod people;
mod references;
mod requests;
mod stand_in;
mod start;
#[path = "../support/mod.rs"]
mod support;
mod terminals;
mod together;
