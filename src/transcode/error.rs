//! Defines the errors of ffmpeg and similar programs.

use std::io;
use std::path::PathBuf;

use crate::process;

/// The error without the path, which the caller adds.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is not on `PATH`.
    #[error("{program} is not installed; videos need ffmpeg and ffprobe")]
    Missing { program: &'static str },
    /// No installed program decodes the file correctly.
    #[error("{0}")]
    NotShown(String),
    /// The queue is full.
    #[error("too many videos are waiting; try again later")]
    Busy,
    /// The daemon is shutting down.
    #[error("the daemon is shutting down")]
    Ended,
    /// The program could not be started, or did not exit by itself.
    #[error("{program} did not finish")]
    Run {
        program: &'static str,
        source: process::Error,
    },
    /// The program exited with a failure; `complaint` is the last line of its output.
    #[error("{program} failed: {complaint}")]
    Failed {
        program: &'static str,
        complaint: String,
    },
    /// The output file cannot be written; the input is not the cause.
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The output of ffprobe is not as expected.
    #[error("cannot parse the output of ffprobe: {what}")]
    Answer { what: String },
    /// The file has audio or text only.
    #[error("contains no picture")]
    NoPicture,
    /// The end of the file is missing.
    #[error("truncated file")]
    Truncated,
    #[error("{width} × {height} pixels exceed the limit (512 MiB of pixels, 65535 per side)")]
    TooLarge { width: u32, height: u32 },
}
