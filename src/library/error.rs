//! Why the library did not do what was asked.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::{error, fmt, io};

use crate::error_chain::causes;
use crate::thread::panic_text;
use crate::wire::own_path;
use crate::{media, store, transcode};

#[derive(Debug)]
pub enum Error {
    NoImage {
        id: i64,
    },
    /// Its row is there, its file is not.
    FileGone {
        id: i64,
    },
    /// Another file or thing than the one that was seen lies there, or none: it stays.
    NotKnown {
        path: PathBuf,
    },
    /// No image that was deleted has left a file there.
    NotKept {
        path: PathBuf,
    },
    /// A web package is needed.
    NotWeb {
        id: i64,
    },
    /// A value that a web package does not allow for a property: "it ...".
    BadOverride {
        key: String,
        why: String,
    },
    /// An image cannot be called so.
    BadName {
        name: String,
        why: &'static str,
    },
    /// As many batches as are ever kept wait already.
    Busy,
    /// The file is on a disk that does not answer.
    NoAnswer {
        path: PathBuf,
    },
    /// No batch of this id runs or waits.
    NoBatch(String),
    /// The import has ended with the daemon.
    Ended,
    /// The file was given up: its batch was cancelled, or the daemon ends.
    Stopped,
    /// A picture's file has more bytes than any that is taken.
    TooLong {
        path: PathBuf,
        bytes: u64,
    },
    /// `action` completes "cannot ... the file".
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A pipe, a socket, a device.
    NotFile {
        path: PathBuf,
    },
    /// A directory that is named like a picture and holds nothing.
    EmptyDirectory {
        path: PathBuf,
    },
    Name {
        path: PathBuf,
    },
    /// A directory that is no package, or one that is not imported: "it ...".
    Package {
        path: PathBuf,
        what: String,
        /// It is a package of a kind that nothing here can show.
        of_no_kind: bool,
    },
    Media {
        path: PathBuf,
        source: media::Error,
    },
    /// A decoder gave up in a way that it should not.
    Decoder {
        path: PathBuf,
        what: String,
    },
    /// A panic outside of the decoders.
    Mistake {
        what: String,
    },
    /// A video is needed.
    NotVideo {
        id: i64,
    },
    /// Such a part cannot be cut out of a video.
    BadLoop {
        why: String,
    },
    /// The loop of a video is another image already.
    Same {
        id: i64,
    },
    Transcode {
        path: PathBuf,
        source: transcode::Error,
    },
    /// Nothing was moved there.
    Trash {
        why: String,
    },
    /// A directory cannot be imported in place: it is watched instead.
    DirectoryInPlace {
        path: PathBuf,
    },
    /// Its file is not ours to replace.
    InPlace {
        id: i64,
    },
    /// Nothing is to be done about a file of a watched directory now.
    LeftAlone,
    Folder(store::folders::Refusal),
    Store(store::Error),
}

impl Error {
    pub(super) fn file(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }

    pub(super) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        Self::Mistake { what: panic_text(panic).to_owned() }
    }

    /// Whether it was given up because nobody wanted it any more.
    pub(super) fn is_stopped(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::Media { source, .. } => matches!(source, media::Error::Stopped),
            _ => false,
        }
    }

    /// Whether there was nothing to do.
    pub(super) fn is_left_alone(&self) -> bool {
        matches!(self, Self::LeftAlone)
    }

    /// Whether a file's content is nothing that the library has a place for.
    pub(super) fn is_of_no_kind(&self) -> bool {
        matches!(
            self,
            Self::Media { source: media::Error::Unknown, .. }
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
            Self::Decoder { what, .. } => format!("its content broke the decoder: {what}"),
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoImage { id } => write!(f, "there is no image {id}"),
            Self::FileGone { id } => write!(f, "the file of image {id} is gone"),
            Self::NotKnown { path } => {
                write!(f, "{} is not the file that murald knows", own_path(path).display())
            }
            Self::NotKept { path } => {
                write!(f, "no deleted image has left its file at {}", path.display())
            }
            Self::NotWeb { id } => write!(
                f,
                "image {id} is not a web wallpaper: wallpaper_config_overrides and web_capabilities \
                 are for those alone"
            ),
            Self::BadOverride { key, why } => {
                write!(f, "wallpaper_config_overrides cannot have {key:?} so: {why}")
            }
            Self::BadName { name, why } => write!(f, "the name {name:?} cannot be used: {why}"),
            Self::Busy => write!(f, "too many imports are waiting: try again later"),
            Self::NoAnswer { path } => {
                write!(f, "the disk of {} does not answer: try again when it does", path.display())
            }
            Self::NoBatch(id) => write!(f, "no import {id:?} is running"),
            Self::Ended => write!(f, "the daemon is shutting down"),
            Self::Stopped => write!(f, "the import was stopped"),
            Self::TooLong { bytes, .. } => {
                write!(f, "it has {} MiB, more than murald takes of a picture", bytes >> 20)
            }
            Self::File { action, path, .. } => write!(f, "cannot {action} {}", path.display()),
            Self::NotFile { path } => {
                write!(f, "{} is neither a file nor a directory", path.display())
            }
            Self::Package { path, what, .. } => {
                write!(f, "{} cannot be imported as a package: {what}", path.display())
            }
            Self::EmptyDirectory { path } => {
                write!(f, "{} is an empty directory, not a picture", path.display())
            }
            Self::Name { path } => write!(f, "the name {} is not valid UTF-8", path.display()),
            Self::Media { path, .. } => write!(f, "{} cannot be taken", path.display()),
            Self::Decoder { path, what } => {
                write!(f, "{} broke the decoder: {what}", path.display())
            }
            Self::Mistake { what } => write!(f, "a mistake of murald: {what}"),
            Self::NotVideo { id } => write!(f, "image {id} is not a video"),
            Self::BadLoop { why } => f.write_str(why),
            Self::Same { id } => {
                write!(f, "the loop is the same as image {id}, which is in the library already")
            }
            Self::Transcode { path, .. } => {
                write!(f, "ffmpeg could not do its work on {}", path.display())
            }
            Self::Trash { .. } => write!(f, "there is no trash to be had; nothing was deleted"),
            Self::DirectoryInPlace { path } => {
                write!(f, "{} is a directory: only files are taken in place", path.display())
            }
            Self::InPlace { id } => {
                write!(f, "image {id} is in place: its file is yours, and is not replaced")
            }
            Self::LeftAlone => write!(f, "there is nothing to do about it"),
            Self::Folder(refusal) => refusal.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Media { source, .. } => Some(source),
            Self::Transcode { source, .. } => Some(source),
            Self::Folder(refusal) => refusal.source(),
            Self::Store(error) => error.source(),
            _ => None,
        }
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

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}
