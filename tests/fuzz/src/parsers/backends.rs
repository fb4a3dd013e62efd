//! Parsers of programs' output with plain types, for the targets of `tests/fuzz`. Part of its module with
//! `cfg(parsers)`.

use super::awww;
use super::trace::Trace;
use crate::process::version;

pub use super::hyprpaper::fuzz::said as hyprpaper;
pub use super::mpvpaper::fuzz::said as mpv;
pub use super::wal_qt::fuzz::answer as wal_qt;

/// The number of outputs that awww lists.
pub fn awww(said: &str) -> usize {
    awww::queried(said).len()
}

/// The version in a program's output, and its numbers.
pub fn version(said: &str) -> Option<(String, (u32, u32, u32))> {
    let version = version::version_in(said)?;
    let numbers = version::numbers(&version);
    Some((version, numbers))
}

/// A client's messages with its compositor: the number of outputs it has drawn on, whether it has drawn
/// on all, and whether it will draw on none.
pub fn trace(said: &str) -> (usize, bool, bool) {
    let mut trace = Trace::default();
    said.lines().for_each(|line| trace.read(line));
    (trace.drawn(), trace.is_done(), trace.is_idle())
}
