//! Why the library did not do what was asked.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::{error, io};

use crate::error_chain::causes;
use crate::thread::panic_text;
use crate::wire::own_path;
use crate::{decode, store, transcode};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no image with ID {id}")]
    NoImage { id: i64 },
    /// Its row is there, its file is not.
    #[error("the file of image {id} is missing")]
    FileGone { id: i64 },
    /// Another file or thing than the one that was seen lies there, or none: it stays.
    #[error("{} is not the file that murald knows", own_path(.path).display())]
    NotKnown { path: PathBuf },
    /// No image that was deleted has left a file there.
    #[error("no deleted image has a file at {}", .path.display())]
    NotKept { path: PathBuf },
    /// A web package is needed.
    #[error(
        "image {id} is not an HTML wallpaper; wallpaper_config_overrides and web_capabilities do \
         not apply"
    )]
    NotWeb { id: i64 },
    /// A value that a web package does not allow for a property: "it ...".
    #[error("wallpaper_config_overrides.{key}: {why}")]
    BadOverride { key: String, why: String },
    /// An image cannot be called so.
    #[error("cannot use the name {name:?}: {why}")]
    BadName { name: String, why: &'static str },
    /// As many batches as are ever kept wait already.
    #[error("too many imports are waiting; try again later")]
    Busy,
    /// The file is on a disk that does not answer.
    #[error("the disk of {} does not answer", .path.display())]
    NoAnswer { path: PathBuf },
    /// The directory of the library is missing, though images are in it.
    #[error(
        "{} is missing: mount its disk, or run `murald library purge-missing`", .path.display()
    )]
    Unmounted { path: PathBuf },
    /// No batch of this id runs or waits.
    #[error("no import {0:?} is running")]
    NoBatch(String),
    /// The import has ended with the daemon.
    #[error("the daemon is shutting down")]
    Ended,
    /// The file was given up: its batch was cancelled, or the daemon ends.
    #[error("the import was cancelled")]
    Stopped,
    /// A picture's file has more bytes than any that is taken.
    #[error("{} MiB are too large for a picture", .bytes >> 20)]
    TooLong { path: PathBuf, bytes: u64 },
    /// `action` completes "cannot ... the file".
    #[error("cannot {action} {}", .path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A pipe, a socket, a device.
    #[error("{} is neither a file nor a directory", .path.display())]
    NotFile { path: PathBuf },
    /// A directory that is named like a picture and holds nothing.
    #[error("{} is an empty directory, not a picture", .path.display())]
    EmptyDirectory { path: PathBuf },
    #[error("the name {} is not valid UTF-8", .path.display())]
    Name { path: PathBuf },
    /// A directory that is no package, or one that is not imported: "it ...".
    #[error("cannot import the package {}: {what}", .path.display())]
    Package {
        path: PathBuf,
        what: String,
        /// It is a package of a kind that nothing here can show.
        of_no_kind: bool,
    },
    #[error("cannot import {}", .path.display())]
    Media { path: PathBuf, source: decode::Error },
    /// A panic outside of the decoders.
    #[error("internal error, please report it: {what}")]
    Mistake { what: String },
    /// A video is needed.
    #[error("{name} ({id}) is not a video")]
    NotVideo { id: i64, name: String },
    /// Such a part cannot be cut out of a video.
    #[error("{why}")]
    BadLoop { why: String },
    /// The loop of a video is another image already.
    #[error("the loop already exists as image {id}")]
    Same { id: i64 },
    #[error("ffmpeg failed on {}", .path.display())]
    Transcode { path: PathBuf, source: transcode::Error },
    /// Nothing was moved there.
    #[error("no trash directory available; nothing was deleted")]
    Trash { why: String },
    /// A directory cannot be imported in place: it is watched instead.
    #[error("{} is a directory; only files can be imported in place", .path.display())]
    DirectoryInPlace { path: PathBuf },
    /// Its file is not ours to replace.
    #[error("image {id} is in place; murald does not replace your file")]
    InPlace { id: i64 },
    /// Nothing is to be done about a file of a watched directory now.
    #[error("nothing to do")]
    LeftAlone,
    #[error(transparent)]
    Folder(store::folders::Refusal),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    pub(super) fn file(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }

    /// The failure of a job that was to decode, copy or read `path`.
    pub(super) fn decoding(path: &Path) -> impl FnOnce(decode::Error) -> Self + use<> {
        use decode::Error as Why;
        let path = path.to_owned();
        move |source| match source {
            Why::Read(io) => Self::File { action: "read", path, source: io.error() },
            Why::Copy(io) => Self::File { action: "copy", path, source: io.error() },
            Why::Write { path, io } => {
                Self::File { action: "write", path: path.into(), source: io.error() }
            }
            Why::Directory | Why::NotFile => Self::NotFile { path },
            Why::TooLong { bytes } => Self::TooLong { path, bytes },
            Why::Silent => Self::NoAnswer { path },
            Why::Stopped => Self::Stopped,
            source => Self::Media { path, source },
        }
    }

    /// The failure of a program that was to read `path`.
    pub(super) fn transcoding(path: &Path) -> impl FnOnce(transcode::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| match source {
            transcode::Error::Write { path, source } => {
                Self::File { action: "write", path, source }
            }
            source => Self::Transcode { path, source },
        }
    }

    /// The same failure about the file that a copy was made of.
    pub(super) fn about(self, copy: &Path, file: &Path) -> Self {
        match self {
            Self::Media { path, source } if path == copy => {
                Self::Media { path: file.to_owned(), source }
            }
            other => other,
        }
    }

    pub(super) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        Self::Mistake { what: panic_text(panic).to_owned() }
    }

    /// Whether there was nothing to do.
    pub(super) fn is_left_alone(&self) -> bool {
        matches!(self, Self::LeftAlone)
    }

    /// Whether a file's content is nothing that the library has a place for.
    pub(super) fn is_of_no_kind(&self) -> bool {
        matches!(
            self,
            Self::Media { source: decode::Error::Unknown(_), .. }
                | Self::Transcode { source: transcode::Error::NoPicture, .. }
                | Self::Package { of_no_kind: true, .. }
        )
    }

    /// Whether a file was looked for and is not there.
    pub fn is_missing_file(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The failure and its reason without the path of the file, for callers that show the path.
    pub fn reason(&self) -> String {
        let mut text = match self {
            Self::File { action: action @ ("read" | "list" | "copy"), .. } => {
                format!("cannot {action} it")
            }
            // Something of ours: the path is news.
            Self::File { .. } => self.to_string(),
            Self::NotFile { .. } => "it is neither a file nor a directory".to_owned(),
            Self::EmptyDirectory { .. } => "it is an empty directory, not a picture".to_owned(),
            Self::Package { what, .. } => what.clone(),
            Self::Name { .. } => "its name is not valid UTF-8".to_owned(),
            Self::Media { source, .. } => source.to_string(),
            Self::Transcode { source, .. } => source.to_string(),
            _ => self.to_string(),
        };
        let of: &dyn error::Error = match self {
            // Its own words are above.
            Self::Media { source, .. } => source,
            Self::Transcode { source, .. } => source,
            _ => self,
        };
        causes(of).for_each(|cause| text.push_str(&format!(": {cause}")));
        text
    }
}

impl From<store::folders::Refusal> for Error {
    fn from(refusal: store::folders::Refusal) -> Self {
        match refusal {
            store::folders::Refusal::Store(error) => Self::Store(error),
            refusal => Self::Folder(refusal),
        }
    }
}
