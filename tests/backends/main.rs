//! Tests the backends: the real swaybg and feh on real desktops, compared pixel by pixel, and stand-ins
//! for the others, which follow their command lines and protocols strictly and fail on cue.

#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used
)]

#[path = "../desktop/mod.rs"]
mod desktop;

#[path = "../desktop/frames.rs"]
mod frames;

#[path = "../support/mod.rs"]
mod support;

mod awww;
mod builtin;
mod covered;
mod day;
mod effects;
mod every_frame;
mod failing;
mod feh;
mod foreign;
mod hangs;
mod hosted;
mod hyprpaper;
mod hyprpaper_role;
mod killed;
mod memory;
mod mpvpaper;
mod panics;
mod parallax;
mod places;
mod rest;
mod sound;
mod start;
mod stub;
mod swaybg;
mod unseen;
mod wal_qt;
mod wall;
