//! Tests the daemon as a process: its start, its shutdown, and what it must survive.

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
