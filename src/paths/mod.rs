//! Knows the places of files: the XDG base directories, and paths written by users. Also creates
//! directories and replaces files.
//!
//! Runs on the calling thread, and reads the environment only through [`Env`]. No function that
//! returns a path creates a directory, except the runtime directory that replaces a missing
//! `XDG_RUNTIME_DIR`.

mod dirs;
mod env;
mod presence;
mod replace;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

pub use dirs::Dirs;
pub(crate) use dirs::from_uri;
pub use env::Env;
pub(crate) use presence::{
    Presence, answers, hangs, late_answers, look_again, presence, presences,
};
pub(crate) use replace::{
    Replacement, TEMPORARY, flush_directory, make_directories, remove_leftover, remove_unused,
    replace,
};

/// Opens a regular file for reading; fails for other kinds without waiting for a pipe's writer or a
/// device. The check is of the opened file, so a later change of the path does not matter.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ))
    }
}

/// The kernel's limits in bytes on a path, on a name in it, and on the path of a socket.
const PATH_MAX: usize = 4095;
const NAME_MAX: usize = 255;
const SOCKET_MAX: usize = 107;

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither `HOME` nor the user database has a home directory.
    #[error("HOME is not set to an absolute path")]
    NoHome,
    /// The runtime directory in the system's temporary directory cannot be created or read.
    #[error("cannot create the runtime directory {}", path.display())]
    Runtime { path: PathBuf, source: io::Error },
    /// The directory belongs to another user, is a link, or others may write to it.
    #[error(
        "{} is not a directory that only this user can write to: remove it, or set XDG_RUNTIME_DIR",
        path.display()
    )]
    NotOurs { path: PathBuf },
    #[error("the variable {variable} in the path {written:?} is not set")]
    Unset { variable: String, written: String },
    /// `${` without `}`, or without a name.
    #[error("incomplete ${{NAME}} in the path {written:?}")]
    Brace { written: String },
    #[error("the path {written:?} is not absolute")]
    Relative { written: String },
    /// The kernel allows at most `max` bytes for a path, a name in it, or a socket.
    #[error("the path {path:?} is too long (at most {max} bytes {})", part(*max))]
    TooLong { path: PathBuf, max: usize },
}

/// Describes the part of a path that has this limit.
fn part(max: usize) -> &'static str {
    match max {
        SOCKET_MAX => "as the path of a socket",
        NAME_MAX => "in one component",
        _ => "in total",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn opening_special_files_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        for name in ["file", "link"] {
            assert!(open_regular(&at(name)).is_ok());
        }
        for other in [at("fifo"), "/dev/null".into(), directory.path().to_owned()] {
            let refused = open_regular(&other).unwrap_err();
            assert_eq!(
                refused.kind(),
                io::ErrorKind::InvalidInput,
                "{}",
                other.display()
            );
        }
        assert_eq!(
            open_regular(&at("none")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
