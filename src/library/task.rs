//! The plain data of an import: what is done with a file, what the file is, and the result. Used by the
//! batch, the workers and the modules that send them files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Error;
use super::disk::Copy;
use super::name::Name;
use crate::config::Exclude;
use crate::decode::{self, Decoder, Header, Looked};
use crate::digest::Checksum;
use crate::media::Note;
use crate::paths::{Presence, presence};
use crate::store::images::{self, NewImage};
use crate::store::watched::Stamp;
use crate::store::{self, Connection};
use crate::transcode;
use crate::wire::{Format, Image, MediaType};

#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Copy the file into the library, unless it is in the library's directory already.
    Copy,
    /// Use the file in place.
    InPlace,
    /// Import a file of a watched directory.
    Watched(Arc<Directory>),
}

/// A watched directory, and how its files are imported.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) folders: bool,
    pub(super) exclude: Exclude,
    pub(super) which: Which,
    /// Set when the directory is no longer watched; its remaining files are skipped.
    pub(super) ended: AtomicBool,
}

/// The files of a directory that are imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Which {
    /// All files, except those that were deleted in murald but kept on the disk.
    #[default]
    All,
    /// Those that were imported by their paths, as long as they have images.
    Only,
    /// One file that is now imported by its path, into this folder.
    Named(Option<i64>),
}

impl Directory {
    /// The directory of a single file in place.
    pub(super) fn from_file(file: &Path, which: Which) -> Self {
        let path = file.parent().unwrap_or(file).to_owned();
        Self {
            path,
            which,
            ..Self::default()
        }
    }

    /// Whether the settings are the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        let settings = |one: &Self| (one.path.clone(), one.folders, one.which.clone());
        settings(self) == settings(other) && self.exclude == other.exclude
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// The image of a file that was imported.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) image: Image,
    /// The image existed before.
    pub(super) duplicate: bool,
    /// The defect of its file, if any.
    pub(super) note: Option<Note>,
}

impl Imported {
    pub(super) fn new(image: Image, duplicate: bool) -> Self {
        Self {
            image,
            duplicate,
            note: None,
        }
    }

    pub(super) fn noted(self, note: Option<Note>) -> Self {
        Self {
            note: note.filter(|_| !self.duplicate),
            ..self
        }
    }
}

/// Whether an image's file is missing, on a disk that answers. False for packages, which are more than
/// one file.
pub(super) fn has_lost_its_file(image: &Image) -> bool {
    image.web_meta.is_none() && presence(&image.path) == Presence::Missing
}

/// A copy under a temporary name, and the row that it will get.
pub(super) struct Ready {
    pub(super) copy: Copy,
    pub(super) name: Name,
    pub(super) row: NewImage,
    pub(super) note: Option<Note>,
}

/// What was read from a file that belongs to its owner and stays where it is.
pub(super) struct Facts {
    pub(super) path: PathBuf,
    pub(super) directory: Arc<Directory>,
    /// As it was when the file was read.
    pub(super) stamp: Stamp,
    /// The checksum, or why the file cannot be used.
    pub(super) content: Result<Checksum, Error>,
    /// Its row, unless an image has the content.
    pub(super) new: Option<NewFile>,
}

impl Facts {
    pub(super) fn new(
        path: PathBuf,
        directory: Arc<Directory>,
        stamp: Stamp,
        content: Result<Checksum, Error>,
    ) -> Self {
        Self {
            path,
            directory,
            stamp,
            content,
            new: None,
        }
    }
}

/// The row of a file that stays where it is.
pub(super) struct NewFile {
    pub(super) name: Name,
    pub(super) row: NewImage,
    pub(super) note: Option<Note>,
}

/// The work left to do on a file.
pub(super) enum Prepared {
    Done(Box<Imported>),
    Copy(Box<Ready>),
    InPlace(Box<Facts>),
    /// The copy of a page that has changed, for the image of the page.
    Replacement {
        id: i64,
        ready: Box<Ready>,
    },
    /// A flushed copy for the image with the same content, whose file is missing.
    Restored {
        copy: Copy,
        name: Name,
        imported: Box<Imported>,
    },
    /// A file in the library's directory that has the content of an image.
    Returned {
        path: PathBuf,
        image: Box<Image>,
    },
    /// A file or package in the library's directory, and its new row.
    Here {
        path: PathBuf,
        row: Box<NewImage>,
        name: Name,
    },
}

impl From<Imported> for Prepared {
    fn from(imported: Imported) -> Self {
        Self::Done(Box::new(imported))
    }
}

pub(super) type Landed = Result<Imported, Error>;

pub(super) fn read_image(connection: &Connection, id: i64) -> Result<Image, store::Error> {
    let gone = || store::Error::Damaged {
        what: format!("image {id} is missing after it was written"),
    };
    images::get(connection, id)?.ok_or_else(gone)
}

/// A source file in a known format.
pub(super) struct Source {
    pub(super) format: Format,
    /// Its name in the library.
    pub(super) name: Name,
    pub(super) meta: Stamp,
    /// The picture's header, or why the file cannot be decoded.
    pub(super) header: Result<Header, decode::Error>,
}

impl Source {
    /// Refuses a format that is not supported.
    pub(super) fn look_at(path: &Path, decoder: &Decoder) -> Result<Self, Error> {
        Self::from_looked(path, decoder.look(path))
    }

    pub(super) fn from_looked(
        path: &Path,
        looked: Result<Looked, decode::Error>,
    ) -> Result<Self, Error> {
        let Looked {
            format,
            meta,
            header,
        } = looked.map_err(Error::decoding(path))?;
        if format.media_type() == MediaType::Video && !transcode::is_available() {
            return Err(header.err().map_or(Error::Ended, Error::decoding(path)));
        }
        Ok(Self {
            format,
            name: Name::from_path(path, format)?,
            meta,
            header,
        })
    }

    pub(super) fn note(&self) -> Option<Note> {
        self.header.as_ref().ok()?.note
    }
}
