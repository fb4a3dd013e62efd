//! Output of ffprobe and ffmpeg: sizes and times are in range.

use crate::input::text;
use murald::internals::parsers::transcode::{facts, progress};

pub(crate) fn run(data: &[u8]) {
    if let Some((width, height, seconds)) = facts(data) {
        assert!((1..=65_535).contains(&width) && (1..=65_535).contains(&height));
        assert!(seconds.is_finite() && seconds >= 0.0);
    }
    assert!(progress(text(data)).is_none_or(|seconds| seconds >= 0.0));
}
