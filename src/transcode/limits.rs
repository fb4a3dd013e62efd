//! What ffmpeg may take.

use std::time::Duration;

/// How long ffmpeg may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a look at a file.
    pub look: Duration,
    /// For a single frame.
    pub frame: Duration,
    /// While it writes a video: without a word of how far it is.
    pub silence: Duration,
    /// Bytes of its address space, and of what it writes.
    pub memory: u64,
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let (memory, output) = (2 << 30, 2 << 30);
        Self { look: seconds(20), frame: seconds(40), silence: seconds(120), memory, output }
    }
}
