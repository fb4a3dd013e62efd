//! Why ffmpeg did not do what was asked.

use std::{error, fmt};

use crate::process;

/// Says nothing of the path: whoever asked knows it.
#[derive(Debug)]
pub enum Error {
    /// It is not on `PATH`.
    Missing {
        program: &'static str,
    },
    /// As many jobs as are ever kept wait already.
    Busy,
    /// The daemon ends.
    Ended,
    /// It could not be started, or did not come to an end.
    Run {
        program: &'static str,
        source: process::Error,
    },
    /// It ended with a failure: what it said last.
    Failed {
        program: &'static str,
        complaint: String,
    },
    /// What ffprobe says of the file is not what it should.
    Answer {
        what: String,
    },
    /// Sound or text only.
    NoPicture,
    /// Its end is missing.
    Truncated,
    TooLarge {
        width: u32,
        height: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { program } => {
                write!(f, "{program} is not installed: video needs ffmpeg and ffprobe")
            }
            Self::Busy => f.write_str("too many videos are waiting: try again later"),
            Self::Ended => f.write_str("the daemon is shutting down"),
            Self::Run { program, .. } => write!(f, "{program} did not come to its end"),
            Self::Failed { program, complaint } => write!(f, "{program} failed: {complaint}"),
            Self::Answer { what } => write!(f, "ffprobe's answer is not understood: {what}"),
            Self::NoPicture => f.write_str("there is no picture in it"),
            Self::Truncated => f.write_str("it is cut off: its end is missing"),
            Self::TooLarge { width, height } => write!(
                f,
                "{width} × {height} pixels are more than murald decodes (512 MiB of pixels, \
                 65535 a side)"
            ),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Run { source, .. } => Some(source),
            _ => None,
        }
    }
}
