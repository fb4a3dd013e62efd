//! Tests which monitor shows what, pixel by pixel on real desktops.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod answers;
mod apply;
mod awww;
mod back;
mod blinks;
mod colors;
#[path = "../desktop/mod.rs"]
mod desktop;
mod drawn;
mod each;
mod endure;
mod fits;
#[path = "../desktop/frames.rs"]
mod frames;
mod newcomers;
mod outputs;
mod photographs;
mod rewritten;
mod scene;
mod seams;
#[path = "../support/mod.rs"]
mod support;
mod why;
mod wishes;
mod workspaces;
