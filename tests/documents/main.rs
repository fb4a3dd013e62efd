//! Compares the documents for people and programs with the program: README, manual, OpenAPI description.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[path = "../desktop/mod.rs"]
mod desktop;
mod manual;
mod openapi;
mod readme;
mod settings;
#[path = "../support/mod.rs"]
mod support;
mod words;
