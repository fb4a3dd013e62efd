//! Tests of the module `config` on real files: each edit publishes one event, and no setting or comment
//! is lost. Most run without a daemon.
#![allow(clippy::disallowed_methods, clippy::print_stderr, clippy::unwrap_used)]

mod daemon;
mod editors;
mod fuzz;
mod keys;
mod properties;
mod support;
#[path = "../support/wait.rs"]
mod wait;
mod watch;
