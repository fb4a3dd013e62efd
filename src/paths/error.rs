//! Why a place cannot be named.

use std::io;
use std::path::PathBuf;

/// Bytes that the kernel takes in a path, in one name of it, and in the path of a socket.
pub(super) const PATH_MAX: usize = 4095;
pub(super) const NAME_MAX: usize = 255;
pub(super) const SOCKET_MAX: usize = 107;

/// Why a place cannot be named.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `HOME` nor the user database names a home directory.
    #[error("HOME is not set to an absolute path")]
    NoHome,
    /// The runtime directory under the system's temporary directory cannot be made or read.
    #[error("cannot create the runtime directory {}", path.display())]
    Runtime { path: PathBuf, source: io::Error },
    /// It belongs to somebody else, is a link, or others may write to it.
    #[error(
        "{} is not a directory that only this user can write to: remove it, or set XDG_RUNTIME_DIR",
        path.display()
    )]
    NotOurs { path: PathBuf },
    #[error("the variable {variable} in the path {written:?} is not set")]
    Unset { variable: String, written: String },
    /// `${` without its `}`, or with no name between.
    #[error("incomplete ${{NAME}} in the path {written:?}")]
    Brace { written: String },
    #[error("the path {written:?} is not absolute")]
    Relative { written: String },
    /// The kernel takes no more than `max` bytes: of a path, of a name in it or of a socket.
    #[error("the path {path:?} is too long (at most {max} bytes {})", part(*max))]
    TooLong { path: PathBuf, max: usize },
}

/// The part of a path that has this limit.
fn part(max: usize) -> &'static str {
    match max {
        SOCKET_MAX => "as the path of a socket",
        NAME_MAX => "in one of its names",
        _ => "in all",
    }
}
