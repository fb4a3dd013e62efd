//! The protocol between the daemon and a decoding process: jobs and replies, each a line of JSON.
//! Pure.
//!
//! A process that has read a hostile image may reply anything, so replies are validated like
//! requests of clients.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::color::Rgb;
use crate::digest::Checksum;
use crate::error_chain::chain;
use crate::media::{self, Cut, Note, Shown, Traits};
use crate::wire::Format;

/// Maximum length of a reply in bytes; a longer one is an error.
pub(super) const REPLY_MAX: usize = 4 << 20;

/// A task and the file to apply it to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) path: OsString,
    pub(super) task: Task,
    /// Overrides orientation and colours if another program has decoded the image.
    pub(super) shown: Option<Shown>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    Look,
    Checksum,
    Copy {
        to: OsString,
    },
    /// The manifest of the package at the path: the first of these files.
    Manifest {
        names: Vec<String>,
    },
    /// The names of these files in the package.
    Find {
        files: Vec<OsString>,
    },
    Package {
        to: Option<OsString>,
    },
    Thumbnail {
        fits: (u32, u32),
        to: Option<OsString>,
    },
    Still {
        fits: (u32, u32),
        fill: Rgb,
        to: OsString,
    },
    Slices {
        cut: Cut,
        to: Vec<OsString>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply<T> {
    /// The job is still running.
    Progress,
    Done(T),
    Failed(Error),
}

/// The format and headers of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Looked {
    pub(crate) format: Format,
    pub(crate) meta: Stamp,
    /// The headers, or the reason why murald cannot decode the file.
    pub(crate) header: Result<Header, Error>,
}

/// The properties of an image as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) animated: bool,
    /// The stored pixels are upright.
    pub(crate) upright: bool,
    /// Programs that ignore orientation and colour profiles show it correctly.
    pub(crate) plain: bool,
    /// It may have transparent pixels.
    pub(crate) alpha: bool,
    pub(crate) note: Option<Note>,
}

/// The result of hashing or copying a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hashed {
    pub(crate) checksum: Checksum,
    /// The metadata of the hashed file.
    pub(crate) meta: Stamp,
}

/// The checksum of a package's content, and the bytes of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Packed {
    pub(crate) checksum: Checksum,
    pub(crate) size: u64,
}

/// The result of decoding an image for a thumbnail.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Drawn {
    pub(crate) format: Format,
    pub(crate) header: Header,
    pub(crate) colors: Vec<Rgb>,
}

/// Attributes that show whether a file is the same and unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: i64,
    /// Time of the last change of the inode (ctime), including name and owner; as `modified`.
    pub(crate) changed: i64,
    pub(crate) inode: u64,
    pub(crate) device: u64,
}

impl Stamp {
    /// Whether the content is certainly the same. If not, the file must be read: it may have been
    /// replaced, or only its name, owner or inode number has changed. The device is ignored, as its
    /// number may change at a restart.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.same_written(other) && (self.changed, self.inode) == (other.changed, other.inode)
    }

    /// Whether size and modification time are the same; `cp -p` preserves both.
    pub(crate) fn same_written(&self, other: &Self) -> bool {
        (self.size, self.modified) == (other.size, other.modified)
    }

    /// Identifies the file, whatever its name is.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

pub(crate) fn stamp(meta: &Metadata) -> Stamp {
    let nanoseconds =
        |seconds: i64, rest| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stamp {
        size: meta.len(),
        modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
        changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        inode: meta.ino(),
        device: meta.dev(),
    }
}

/// Why there is no result. The messages are for users and omit the path, which the caller adds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Error {
    #[error("cannot be read: {0}")]
    Read(Io),
    #[error("cannot be copied: {0}")]
    Copy(Io),
    #[error("cannot write {}: {io}", Path::new(path).display())]
    Write { path: OsString, io: Io },
    #[error("it is a directory")]
    Directory,
    /// A pipe, socket or device.
    #[error("it is not a regular file")]
    NotFile,
    /// The content has no known format.
    #[error("{0}")]
    Unknown(String),
    /// Only another program, such as ffmpeg, can decode the format or this variety of it.
    #[error("{said}")]
    NeedsTranscoder {
        format: Format,
        special: bool,
        traits: Traits,
        said: String,
    },
    /// The directory is not a package that can be imported.
    #[error("{0}")]
    Package(String),
    #[error("{} MiB is too large for an image", .bytes >> 20)]
    TooLong { bytes: u64 },
    /// The decoder refuses the file.
    #[error("{0}")]
    Picture(String),
    /// The decoder crashed or replied nonsense; the log has the details.
    #[error("murald cannot decode this file")]
    Broke(String),
    #[error("decoding it needs more memory than murald allows for one image")]
    Memory,
    #[error("decoding it needs more processor time than murald allows for one image")]
    Time,
    /// Another process killed it: usually the kernel, when it runs out of memory.
    #[error("the process that was decoding it was killed")]
    Killed,
    #[error("its disk does not answer")]
    Silent,
    /// The job was cancelled.
    #[error("it was cancelled")]
    Stopped,
    #[error("cannot start a process for decoding it: {0}")]
    NoProcess(String),
}

/// An I/O error that can be sent as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    code: Option<i32>,
    said: String,
}

impl Io {
    pub(crate) fn error(&self) -> io::Error {
        match self.code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::other(self.said.clone()),
        }
    }
}

impl From<io::Error> for Io {
    fn from(error: io::Error) -> Self {
        Self {
            code: error.raw_os_error(),
            said: error.to_string(),
        }
    }
}

impl std::fmt::Display for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.said)
    }
}

impl Error {
    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Write {
            path: path.into(),
            io: error.into(),
        }
    }

    /// A copy failed. Only the destination, a file, can be full; the message names its directory.
    pub(super) fn copy(to: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::write(to.parent().unwrap_or(to))(error)
            }
            _ => Self::Copy(error.into()),
        }
    }
}

impl From<media::Error> for Error {
    fn from(error: media::Error) -> Self {
        let said = chain(&error);
        match error {
            media::Error::NeedsTranscoder {
                format,
                why,
                traits,
            } => Self::NeedsTranscoder {
                format,
                special: why.is_some(),
                traits,
                said,
            },
            media::Error::Unknown | media::Error::Empty => Self::Unknown(said),
            media::Error::Read(error) => Self::Read(error.into()),
            _ => Self::Picture(said),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn paths_are_sent_unchanged() {
        let path = OsString::from_vec(b"/a b\n\xff\".png".to_vec());
        let line = serde_json::to_string(&Job {
            path: path.clone(),
            task: Task::Look,
            shown: None,
        })
        .unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Job>(&line).unwrap().path, path);
    }

    #[test]
    fn io_error_keeps_its_code() {
        let error = Error::Read(io::Error::from_raw_os_error(2).into());
        let read: Error = serde_json::from_str(&serde_json::to_string(&error).unwrap()).unwrap();
        let Error::Read(io) = &read else {
            panic!("{read}")
        };
        assert_eq!(io.error().kind(), io::ErrorKind::NotFound);
    }
}
