//! Why a backend does not show what it should.

use std::fmt;
use std::path::{Path, PathBuf};

/// The kind decides what the reconciler does next; the text is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The backend or its server does not start or does not answer: worth another try later.
    Unavailable(String),
    /// The backend runs and will not show this.
    Refused(String),
    /// The backend has no memory for what it should show here: another may have some.
    NoMemory(String),
    /// This file cannot be read.
    File { path: PathBuf, why: String },
    /// Told to stop before it was done.
    Cancelled,
}

impl Error {
    /// What it needs lies on a disk that hangs.
    pub(crate) fn no_answer(path: &Path) -> Self {
        Self::Unavailable(format!("the disk of {} does not answer", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(text) | Self::Refused(text) | Self::NoMemory(text) => {
                f.write_str(text)
            }
            Self::File { path, why } => write!(f, "cannot show {}: {why}", path.display()),
            Self::Cancelled => f.write_str("cancelled before it was shown"),
        }
    }
}

impl std::error::Error for Error {}
