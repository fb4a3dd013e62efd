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

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use fit::Span;
pub(crate) use message::{
    Backdrop, Effect, Outcome, Request, Response, Style, Transition, VERSION, Wanted, line,
};

use crate::memory;

/// The first argument of a process that draws.
pub(crate) const VERB: &str = "draw";

/// Runs the renderer, if this process was started for that.
pub(crate) fn main() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_none_or(|word| word != VERB) {
        return None;
    }
    memory::restrain();
    Some(match run(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the log. If it cannot be written, it has no reader.
            writeln!(std::io::stderr(), "murald draw: {error}").ok();
            ExitCode::FAILURE
        }
    })
}

fn run(
    mut words: impl Iterator<Item = OsString>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    match (words.next(), words.next(), words.next()) {
        (Some(flag), Some(socket), None) if flag == "--socket" => {
            wayland::run(&PathBuf::from(socket))
        }
        (Some(flag), Some(request), None) if flag == "--once" => root::run(request.as_bytes()),
        _ => Err("only murald itself runs this command; see murald(1)".into()),
    }
}
