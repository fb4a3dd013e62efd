//! Why ffmpeg did not do what was asked.

use std::io;
use std::path::PathBuf;

use crate::process;

/// Says nothing of the path: whoever asked knows it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not on `PATH`.
    #[error("{program} is not installed; videos need ffmpeg and ffprobe")]
    Missing { program: &'static str },
    /// No installed program shows it right.
    #[error("{0}")]
    NotShown(String),
    /// As many jobs as are ever kept wait already.
    #[error("too many videos are waiting; try again later")]
    Busy,
    /// The daemon ends.
    #[error("the daemon is shutting down")]
    Ended,
    /// It could not be started, or did not come to an end.
    #[error("{program} did not finish")]
    Run { program: &'static str, source: process::Error },
    /// It ended with a failure: what it said last.
    #[error("{program} failed: {complaint}")]
    Failed { program: &'static str, complaint: String },
    /// The file that was to be written; the one that was read is not to blame.
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The output of ffprobe is not as expected.
    #[error("cannot parse the answer of ffprobe: {what}")]
    Answer { what: String },
    /// Sound or text only.
    #[error("contains no picture")]
    NoPicture,
    /// Its end is missing.
    #[error("truncated file")]
    Truncated,
    #[error("{width} × {height} pixels exceed the limit (512 MiB of pixels, 65535 per side)")]
    TooLarge { width: u32, height: u32 },
}
