//! Parsers with plain types, for the targets of `tests/fuzz`. Part of its module with `cfg(parsers)`.

use super::{facts::Facts, ffmpeg};

/// Width, height and seconds in ffprobe's output.
pub fn facts(json: &[u8]) -> Option<(u32, u32, f64)> {
    let facts = Facts::parse(json).ok()?;
    Some((facts.width, facts.height, facts.duration))
}

/// The progress in ffmpeg's output, in seconds.
pub fn progress(said: &str) -> Option<f64> {
    ffmpeg::progress_seconds(said)
}
