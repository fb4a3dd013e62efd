//! For the targets of `tests/fuzz`: parsers, by plain types. A part of its module in debug builds only.

use super::{facts::Facts, ffmpeg};

/// Width, height and seconds of what ffprobe describes.
pub fn facts(json: &[u8]) -> Option<(u32, u32, f64)> {
    let facts = Facts::parse(json).ok()?;
    Some((facts.width, facts.height, facts.duration))
}

/// How far ffmpeg is by what it says, in seconds.
pub fn progress(said: &str) -> Option<f64> {
    ffmpeg::progress_seconds(said)
}
