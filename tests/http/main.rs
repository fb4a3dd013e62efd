//! Tests of the HTTP server with friendly and hostile clients, on a real socket.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests"
)]

mod api;
mod end;
mod files;
mod fuzz;
mod hazards;
mod streams;
mod support;
mod syntax;
mod times;
#[path = "../support/wait.rs"]
mod wait;
