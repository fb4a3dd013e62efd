//! Why a place cannot be named.

use std::path::PathBuf;
use std::{fmt, io};

/// Bytes that the kernel takes in a path, in one name of it, and in the path of a socket.
pub(super) const PATH_MAX: usize = 4095;
pub(super) const NAME_MAX: usize = 255;
pub(super) const SOCKET_MAX: usize = 107;

/// Why a place cannot be named.
#[derive(Debug)]
pub enum Error {
    /// Neither `HOME` nor the user database names a home directory.
    NoHome,
    /// The runtime directory under the system's temporary directory cannot be made or read.
    Runtime {
        path: PathBuf,
        source: io::Error,
    },
    /// It belongs to somebody else, is a link, or others may write to it.
    NotOurs {
        path: PathBuf,
    },
    Unset {
        variable: String,
        written: String,
    },
    /// `${` without its `}`, or with no name between.
    Brace {
        written: String,
    },
    Relative {
        written: String,
    },
    /// The kernel takes no more than `max` bytes: of a path, of a name in it or of a socket.
    TooLong {
        path: PathBuf,
        max: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHome => write!(f, "HOME is not set to an absolute path"),
            Self::Runtime { path, .. } => {
                write!(f, "cannot make the runtime directory {}", path.display())
            }
            Self::NotOurs { path } => write!(
                f,
                "{} is not a directory that only this user can write to: \
                 remove it, or set XDG_RUNTIME_DIR",
                path.display()
            ),
            Self::Unset { variable, written } => {
                write!(f, "the variable {variable} in the path {written:?} is not set")
            }
            Self::Brace { written } => {
                write!(f, "the path {written:?} has a ${{ that is not followed by NAME}}")
            }
            Self::Relative { written } => write!(f, "the path {written:?} is not absolute"),
            Self::TooLong { path, max } => {
                let what = match *max {
                    SOCKET_MAX => "as the path of a socket",
                    NAME_MAX => "in one of its names",
                    _ => "in all",
                };
                write!(f, "the path {path:?} is too long: it may have {max} bytes {what}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime { source, .. } => Some(source),
            _ => None,
        }
    }
}
