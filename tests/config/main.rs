//! The room `config` on real files: edits by whatever means, each heard once; no setting and no
//! comment lost. In process, without a daemon.
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
