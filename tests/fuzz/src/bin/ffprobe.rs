//! What ffprobe and ffmpeg say: sizes are such as can be made.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::transcode::fuzz::{facts, progress};
use murald_fuzz::text;

fuzz_target!(|data: &[u8]| {
    if let Some((width, height, seconds)) = facts(data) {
        assert!((1..=65_535).contains(&width) && (1..=65_535).contains(&height));
        assert!(seconds.is_finite() && seconds >= 0.0);
    }
    assert!(progress(text(data)).is_none_or(|seconds| seconds >= 0.0));
});
