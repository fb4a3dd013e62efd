//! Why a backend does not show what it should.

use std::path::{Path, PathBuf};

/// The kind decides what the reconciler does next; the text is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The backend or its server does not start or does not answer: worth another try later.
    #[error("{0}")]
    Unavailable(String),
    /// The backend runs and will not show this.
    #[error("{0}")]
    Refused(String),
    /// The backend has no memory for what it should show here: another may have some.
    #[error("{0}")]
    NoMemory(String),
    /// This file cannot be read.
    #[error("cannot show {}: {why}", path.display())]
    File { path: PathBuf, why: String },
    /// Told to stop before it was done.
    #[error("cancelled before it was shown")]
    Cancelled,
}

impl Error {
    /// What it needs lies on a disk that hangs.
    pub(crate) fn no_answer(path: &Path) -> Self {
        Self::Unavailable(format!("the disk of {} does not answer", path.display()))
    }
}
