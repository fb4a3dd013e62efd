//! The daemon as a process: its start and end, and what it must live through.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod debug;
#[path = "../desktop/mod.rs"]
mod desktop;
mod doctor;
mod faults;
mod full_disk;
mod garbage;
mod meagre;
mod pitfalls;
mod process;
mod rest;
#[path = "../support/mod.rs"]
mod support;
