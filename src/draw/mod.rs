//! Draws wallpapers: murald's own renderer for the backend `builtin`, a process of its own.
//!
//! The daemon starts it as `murald draw` and sends requests over a socket. It outlives the daemon, as
//! every backend does. It has none of the daemon's threads and reads none of its settings.

mod backdrop;
mod fit;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/draw.rs"]
pub mod fuzz;
mod message;
mod paint;
mod painting;
mod root;
mod storage;
mod transition;
mod wayland;

use std::env::ArgsOs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use fit::Span;
pub(crate) use message::{
    Backdrop, Effect, Outcome, Request, Response, Style, Transition, VERSION, Wanted, line,
};

use crate::process::helper_main;

/// The first argument of a process that draws.
pub(crate) const VERB: &str = "draw";

/// Runs the renderer, if this process was started for that.
pub(crate) fn main() -> Option<ExitCode> {
    helper_main(VERB, run)
}

fn run(mut words: ArgsOs) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    match (words.next(), words.next(), words.next()) {
        (Some(flag), Some(socket), None) if flag == "--socket" => {
            wayland::run(&PathBuf::from(socket))
        }
        (Some(flag), Some(request), None) if flag == "--once" => root::run(request.as_bytes()),
        _ => Err("only murald itself runs this command; see murald(1)".into()),
    }
}
