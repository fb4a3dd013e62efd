//! The language between the daemon and a process that decodes: jobs one way, replies the other, each a
//! line of JSON. Pure.
//!
//! A process that has read a hostile picture may reply anything, so a reply is checked like a client's
//! request.

use std::error;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::color::Rgb;
use crate::digest::Checksum;
use crate::error_chain::causes;
use crate::media::{self, Cut, Note, Shown, Traits};
use crate::wire::Format;

/// Bytes of a reply; a longer one is none of ours.
pub(super) const REPLY_MAX: usize = 64 << 10;

/// One task, with the file that it is about.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) path: OsString,
    pub(super) task: Task,
    /// How it is meant, if another program has written it.
    pub(super) shown: Option<Shown>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    Meta,
    Look,
    Checksum,
    Description,
    Copy { to: OsString },
    Thumbnail { fits: (u32, u32), to: Option<OsString> },
    Still { fits: (u32, u32), to: OsString },
    Slices { cut: Cut, to: Vec<OsString> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply<T> {
    /// The job gets on.
    Progress,
    Done(T),
    Failed(Error),
}

/// A file before any of it is copied.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Looked {
    pub(crate) format: Format,
    pub(crate) meta: FileMeta,
    /// Or why it cannot be decoded here.
    pub(crate) header: Result<Header, Error>,
}

/// The properties of a picture, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) animated: bool,
    /// It is stored as it is shown.
    pub(crate) upright: bool,
    /// Programs that ignore orientations and colour profiles show it as it is meant.
    pub(crate) plain: bool,
    /// It may be transparent.
    pub(crate) alpha: bool,
    pub(crate) note: Option<Note>,
}

/// A file that was read to its end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hashed {
    pub(crate) checksum: Checksum,
    /// The metadata of the hashed file.
    pub(crate) meta: FileMeta,
}

/// A picture that was decoded, and its thumbnail written.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Drawn {
    pub(crate) format: Format,
    pub(crate) header: Header,
    pub(crate) colors: Vec<Rgb>,
}

/// Tells whether an open file is the same and unchanged. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileMeta {
    pub(crate) size: u64,
    pub(crate) modified: i64,
    pub(crate) changed: i64,
    pub(crate) inode: u64,
    pub(crate) device: u64,
}

impl FileMeta {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        let nanoseconds =
            |seconds: i64, more| seconds.saturating_mul(1_000_000_000).saturating_add(more);
        Ok(Self {
            size: meta.len(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
            device: meta.dev(),
        })
    }
}

/// Why there is no result. The texts are for people and name no path: the caller knows it.
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
    /// A pipe, a socket, a device.
    #[error("it is not a regular file")]
    NotFile,
    /// Its content is of no kind that murald knows.
    #[error("{0}")]
    Unknown(String),
    /// Only ffmpeg decodes it: this format at all, or what is special about the file.
    #[error("{said}")]
    NeedsTranscoder { format: Format, special: bool, traits: Traits, said: String },
    #[error("{} MiB are too large for a picture", .bytes >> 20)]
    TooLong { bytes: u64 },
    /// The decoder refuses it.
    #[error("{0}")]
    Picture(String),
    /// The decoder gave up in a way that it should not.
    #[error("the decoder crashed: {0}")]
    Broke(String),
    #[error("decoding it takes more memory than murald gives to a picture")]
    Memory,
    #[error("decoding it takes more processor time than murald gives to a picture")]
    Time,
    /// Another process ended it: mostly the kernel, for want of memory.
    #[error("the process that decoded it was killed")]
    Killed,
    #[error("its disk does not answer")]
    Silent,
    /// Nobody wants it any more.
    #[error("it was cancelled")]
    Stopped,
    #[error("cannot start a process to decode it: {0}")]
    NoProcess(String),
}

/// An error of the kernel's on its way through JSON.
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
        Self { code: error.raw_os_error(), said: error.to_string() }
    }
}

impl std::fmt::Display for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.said)
    }
}

impl Error {
    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Write { path: path.into(), io: error.into() }
    }
}

impl From<media::Error> for Error {
    fn from(error: media::Error) -> Self {
        let mut said = error.to_string();
        causes(&error as &dyn error::Error).for_each(|cause| said.push_str(&format!(": {cause}")));
        match error {
            media::Error::NeedsTranscoder { format, why, traits } => {
                Self::NeedsTranscoder { format, special: why.is_some(), traits, said }
            }
            media::Error::Unknown => Self::Unknown(said),
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
    fn any_path_arrives_as_it_is() {
        let path = OsString::from_vec(b"/a b\n\xff\".png".to_vec());
        let line =
            serde_json::to_string(&Job { path: path.clone(), task: Task::Look, shown: None })
                .unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Job>(&line).unwrap().path, path);
    }

    #[test]
    fn a_kernels_error_keeps_its_number() {
        let error = Error::Read(io::Error::from_raw_os_error(2).into());
        let read: Error = serde_json::from_str(&serde_json::to_string(&error).unwrap()).unwrap();
        let Error::Read(io) = &read else { panic!("{read}") };
        assert_eq!(io.error().kind(), io::ErrorKind::NotFound);
    }
}
