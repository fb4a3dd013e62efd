//! For the targets of `tests/fuzz`: what programs say, by plain types. A part of its module in debug builds only.

use super::trace::Trace;
use super::{awww, version};

pub use super::hyprpaper::fuzz::said as hyprpaper;
pub use super::mpvpaper::fuzz::said as mpv;
pub use super::wal_qt::fuzz::answer as wal_qt;

/// The outputs that awww tells of.
pub fn awww(said: &str) -> usize {
    awww::queried(said).len()
}

/// The version in what a program says, and its numbers.
pub fn version(said: &str) -> Option<(String, (u32, u32, u32))> {
    let version = version::version_in(said)?;
    let numbers = version::numbers(&version);
    Some((version, numbers))
}

/// Of a client's conversation with its compositor: on how many outputs it has drawn, whether on all,
/// and whether it will on none.
pub fn trace(said: &str) -> (usize, bool, bool) {
    let mut trace = Trace::default();
    said.lines().for_each(|line| trace.read(line));
    (trace.drawn(), trace.is_done(), trace.is_idle())
}
