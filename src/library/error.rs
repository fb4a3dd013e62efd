//! The errors of the library.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::{error, io};

use crate::error_chain::with_causes;
use crate::thread::panic_text;
use crate::{decode, store, transcode};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no image with ID {id}")]
    NoImage { id: i64 },
    /// The image has a row, but its file is missing.
    #[error("the file of image {id} is missing")]
    FileGone { id: i64 },
    /// The path has another file than the one that was seen, or none. It is not removed.
    #[error("{} is no longer the file of the image", .path.display())]
    NotKnown { path: PathBuf },
    /// No image that was deleted has left a file there.
    #[error("no deleted image has a file at {}", .path.display())]
    NotKept { path: PathBuf },
    /// The request needs an image that is a web package.
    #[error(
        "image {id} is not an HTML wallpaper; wallpaper_config_overrides and web_capabilities do \
         not apply"
    )]
    NotWeb { id: i64 },
    /// A value for a property that a web package does not declare.
    #[error("wallpaper_config_overrides.{key}: the package does not declare it")]
    Undeclared { key: String },
    /// The name is not allowed for an image.
    #[error("cannot use the name {name:?}: {why}")]
    BadName { name: String, why: &'static str },
    /// Too many requests wait for the thread `library`, or it did not answer in time.
    #[error("the library is busy; try again later")]
    Busy,
    /// The file is on a disk that does not answer.
    #[error("the disk of {} does not answer", .path.display())]
    NoAnswer { path: PathBuf },
    /// The directory of the library is missing or empty, though images are in it.
    #[error(
        "{} is missing or empty: mount its disk, or run `murald library purge-missing`", .path.display()
    )]
    Unmounted { path: PathBuf },
    /// No batch of this id runs or waits.
    #[error("no import {0:?} is running")]
    NoBatch(String),
    /// The thread that does the work has ended with the daemon.
    #[error("the daemon is shutting down")]
    Ended,
    /// The file was given up, as its batch was cancelled or the daemon is exiting.
    #[error("the import was cancelled")]
    Stopped,
    /// The file is larger than any picture that murald accepts.
    #[error("{} MiB is too large for an image", .bytes >> 20)]
    TooLong { path: PathBuf, bytes: u64 },
    /// `action` completes "cannot ... the file".
    #[error("cannot {action} {}", .path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A pipe, a socket or a device.
    #[error("{} is neither a file nor a directory", .path.display())]
    NotFile { path: PathBuf },
    /// An empty directory with the extension of a picture.
    #[error("{} is an empty directory, not a picture", .path.display())]
    EmptyDirectory { path: PathBuf },
    #[error("the name {} is not valid UTF-8", .path.display())]
    Name { path: PathBuf },
    /// The directory is not a package, or is one that cannot be imported.
    #[error("cannot import the package {}: {what}", .path.display())]
    Package {
        path: PathBuf,
        what: String,
        /// Whether it is a package of a kind that murald cannot show.
        unsupported: bool,
    },
    #[error("cannot import {}", .path.display())]
    Media {
        path: PathBuf,
        source: decode::Error,
    },
    /// A panic outside of the decoders.
    #[error("internal error, please report it: {what}")]
    Mistake { what: String },
    /// The request needs an image that is a video.
    #[error("{name} ({id}) is not a video")]
    NotVideo { id: i64, name: String },
    /// The part to cut out is not within the video, or is too short.
    #[error("{why}")]
    BadLoop { why: String },
    /// The loop of a video is another image already.
    #[error("the loop already exists as image {id}")]
    Same { id: i64 },
    #[error("ffmpeg failed on {}", .path.display())]
    Transcode {
        path: PathBuf,
        source: transcode::Error,
    },
    /// A directory cannot be imported in place: it is watched instead.
    #[error("{} is a directory; only files can be imported in place", .path.display())]
    DirectoryInPlace { path: PathBuf },
    /// The image is in place, so murald does not replace its file.
    #[error("image {id} is in place; murald does not replace your file")]
    InPlace { id: i64 },
    /// There is nothing to do for the file, or not now.
    #[error("nothing to do")]
    NothingToDo,
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
        move |source| Self::File {
            action,
            path,
            source,
        }
    }

    /// The failure of a job that was to decode, copy or read `path`.
    pub(super) fn decoding(path: &Path) -> impl FnOnce(decode::Error) -> Self + use<> {
        use decode::Error as Why;
        let path = path.to_owned();
        move |source| match source {
            Why::Read(io) => Self::File {
                action: "read",
                path,
                source: io.error(),
            },
            Why::Copy(io) => Self::File {
                action: "copy",
                path,
                source: io.error(),
            },
            Why::Write { path, io } => Self::File {
                action: "write",
                path: path.into(),
                source: io.error(),
            },
            Why::Directory | Why::NotFile => Self::NotFile { path },
            Why::TooLong { bytes } => Self::TooLong { path, bytes },
            Why::Package(what) => Self::Package {
                path,
                what,
                unsupported: false,
            },
            Why::Silent => Self::NoAnswer { path },
            Why::Stopped => Self::Stopped,
            source => Self::Media { path, source },
        }
    }

    /// The failure of a program that was to read `path`.
    pub(super) fn transcoding(path: &Path) -> impl FnOnce(transcode::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| match source {
            transcode::Error::Write { path, source } => Self::File {
                action: "write",
                path,
                source,
            },
            source => Self::Transcode { path, source },
        }
    }

    /// The same failure, reported for the source `file` instead of its copy.
    pub(super) fn about(self, copy: &Path, file: &Path) -> Self {
        match self {
            Self::Media { path, source } if path == copy => Self::Media {
                path: file.to_owned(),
                source,
            },
            Self::Transcode { path, source } if path == copy => Self::Transcode {
                path: file.to_owned(),
                source,
            },
            other => other,
        }
    }

    pub(super) fn from_panic(panic: &(dyn Any + Send)) -> Self {
        Self::Mistake {
            what: panic_text(panic).to_owned(),
        }
    }

    /// Whether the database cannot be written now.
    pub(super) fn is_storage(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_storage())
    }

    /// Whether the file is of a kind that the library does not support.
    pub(super) fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::Media {
                source: decode::Error::Unknown(_),
                ..
            } | Self::Transcode {
                source: transcode::Error::NoPicture,
                ..
            } | Self::Package {
                unsupported: true,
                ..
            }
        )
    }

    /// Whether a file was looked for and is not there.
    pub fn is_missing_file(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The failure and its reason without the path of the file, for callers that show the path.
    pub fn reason(&self) -> String {
        let of: &dyn error::Error = match self {
            Self::Media { source, .. } => source,
            Self::Transcode { source, .. } => source,
            _ => self,
        };
        let text = match self {
            Self::File { path, .. } if self.is_missing_file() && path.is_symlink() => {
                return "it is a link to a file that does not exist".to_owned();
            }
            Self::File {
                action: action @ ("read" | "list" | "copy"),
                ..
            } => {
                format!("cannot {action} it")
            }
            // One of murald's own files: the caller does not know its path.
            Self::File { .. } => self.to_string(),
            Self::NotFile { .. } => "it is neither a file nor a directory".to_owned(),
            Self::EmptyDirectory { .. } => "it is an empty directory, not a picture".to_owned(),
            Self::Package { what, .. } => what.clone(),
            Self::Name { .. } => "its name is not valid UTF-8".to_owned(),
            // The message has the reason in murald's words; SQLite's would repeat it.
            Self::Store(error) if error.is_storage() => return error.to_string(),
            _ => of.to_string(),
        };
        with_causes(text, of)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_names_a_full_disk_once() {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let text = "database or disk is full".to_owned();
        let full = rusqlite::Error::SqliteFailure(code, Some(text));
        let error = Error::from(store::Error::from(full));
        assert_eq!(
            error.reason(),
            "the database cannot be written: its disk is full"
        );
    }
}
