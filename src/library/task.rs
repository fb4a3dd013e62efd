//! The plain data of an import: what is done with a file, what the file is, and the result. Used by the
//! batch, the workers and the modules that send them files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Error;
use super::disk::Copy;
use super::name::Name;
use crate::decode::{self, Decoder, FileMeta, Header, Looked};
use crate::digest::Checksum;
use crate::media::Note;
use crate::paths::{Presence, presence};
use crate::store::images::{self, NewImage};
use crate::store::watched::{Stamp, WatchedFile};
use crate::store::{self, Connection};
use crate::transcode;
use crate::wire::{Format, Image, MediaType};

#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Copied into the library.
    Copy,
    /// Taken where it lies.
    InPlace,
    /// It lies in the library's directory already.
    Adopt,
    /// It lies in a directory that is watched.
    Watched(Arc<Directory>, Pass),
}

/// A watched directory, as its files are taken.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) in_place: bool,
    pub(super) folders: bool,
    pub(super) which: Which,
    /// It is watched no more: nothing is taken from it.
    pub(super) ended: AtomicBool,
}

/// Which files of a directory are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Which {
    /// All, but those that were deleted in murald and left on the disk.
    #[default]
    All,
    /// These, each of which was imported by its name, while it has an image.
    Only(BTreeSet<PathBuf>),
    /// One that somebody imports by its name now, into this folder.
    Named(Option<i64>),
}

impl Directory {
    /// That of one file in place.
    pub(super) fn of(file: &Path, which: Which) -> Self {
        let path = file.parent().unwrap_or(file).to_owned();
        Self { path, in_place: true, which, ..Self::default() }
    }

    /// Whether a file is one of those that are taken, as far as its path tells.
    pub(super) fn has(&self, file: &Path) -> bool {
        match &self.which {
            Which::Only(files) => files.contains(file),
            Which::All | Which::Named(_) => file.starts_with(&self.path),
        }
    }

    pub(super) fn is_as(&self, other: &Self) -> bool {
        (&self.path, self.in_place, self.folders, &self.which)
            == (&other.path, other.in_place, other.folders, &other.which)
    }
}

/// Files that were renamed find their images before any other takes their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// Only those whose content an image has that has lost its file.
    Moves,
    All,
}

/// A picture that is in the library now.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) image: Image,
    /// It was there before.
    pub(super) duplicate: bool,
    /// The defect of its file, if any.
    pub(super) note: Option<Note>,
}

impl Imported {
    pub(super) fn new(image: Image, duplicate: bool) -> Self {
        Self { image, duplicate, note: None }
    }

    pub(super) fn noted(self, note: Option<Note>) -> Self {
        Self { note: note.filter(|_| !self.duplicate), ..self }
    }
}

/// Whether an image's file is not there, on a disk that answers. A package is more than one file.
pub(super) fn has_lost_its_file(image: &Image) -> bool {
    image.web_meta.is_none() && presence(&image.path) == Presence::Missing
}

/// A file on the disk under a temporary name, and the row that it is to have.
pub(super) struct Ready {
    pub(super) copy: Copy,
    pub(super) name: Name,
    pub(super) row: NewImage,
    pub(super) note: Option<Note>,
    /// The file of a watched directory that it is a copy of.
    pub(super) seen: Option<WatchedFile>,
}

/// A file of its owner's as it was seen, before any of it was read.
pub(super) struct SeenFile {
    pub(super) path: PathBuf,
    pub(super) directory: Arc<Directory>,
    pub(super) stamp: Stamp,
    pub(super) checksum: Checksum,
}

/// A file that lies where it stays, and what it is to the library.
pub(super) struct ReadyInPlace {
    pub(super) seen: SeenFile,
    pub(super) change: InPlace,
}

/// The change of the rows for a file that stays where it is.
pub(super) enum InPlace {
    /// It gets a row.
    New { name: Name, row: NewImage, note: Option<Note> },
    /// It is the file of this image, which has lost its own.
    Moved(Image, Pass),
    /// It has the content of this image, which has a file. `is_known`: the note of the file names this
    /// image already.
    Same { image: Image, is_first: bool, is_known: bool },
}

/// The work left to do on a file.
pub(super) enum Prepared {
    Done(Box<Imported>),
    Copy(Box<Ready>),
    InPlace(Box<ReadyInPlace>),
}

impl From<Imported> for Prepared {
    fn from(imported: Imported) -> Self {
        Self::Done(Box::new(imported))
    }
}

pub(super) type Landed = Result<Imported, Error>;

/// Writes a row and reads it in the same transaction: once that is committed, nothing may fail any more
/// and call undone what is done.
pub(super) fn insert_image(connection: &Connection, row: &NewImage) -> Result<Image, store::Error> {
    let id = images::insert(connection, row)?;
    read_image(connection, id)
}

pub(super) fn read_image(connection: &Connection, id: i64) -> Result<Image, store::Error> {
    let gone = || store::Error::Damaged { what: format!("image {id} is gone again") };
    images::get(connection, id)?.ok_or_else(gone)
}

/// A file of a format that we know.
pub(super) struct Source {
    pub(super) format: Format,
    /// Its name in the library.
    pub(super) name: Name,
    pub(super) meta: FileMeta,
    /// Or why it cannot be decoded.
    pub(super) header: Result<Header, decode::Error>,
}

impl Source {
    /// Refuses a format that is not supported.
    pub(super) fn look_at(path: &Path, decoder: &Decoder) -> Result<Self, Error> {
        Self::of(path, decoder.look(path))
    }

    pub(super) fn of(path: &Path, looked: Result<Looked, decode::Error>) -> Result<Self, Error> {
        let Looked { format, meta, header } = looked.map_err(Error::decoding(path))?;
        if format.media_type() == MediaType::Video && !transcode::is_available() {
            return Err(header.err().map_or(Error::Ended, Error::decoding(path)));
        }
        Ok(Self { format, name: Name::of(path, format)?, meta, header })
    }

    pub(super) fn note(&self) -> Option<Note> {
        self.header.as_ref().ok()?.note
    }
}
