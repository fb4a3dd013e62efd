//! What has come into the library, as it is told of, and what is about to: copied and described, with
//! nothing left to do but to land. Its row is written and read in whoever's transaction it is.

use super::Error;
use super::disk::Copy;
use super::name::Name;
use crate::paths::{Presence, presence};
use crate::store::images::{self, NewImage};
use crate::store::{self, Connection};
use crate::wire::Image;

/// A picture that is in the library now.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) image: Image,
    /// It was there before.
    pub(super) duplicate: bool,
}

impl Imported {
    /// Whether the image's file is not there, on a disk that answers. A package is more than one file.
    pub(super) fn has_lost_its_file(&self) -> bool {
        self.image.web_meta.is_none() && presence(&self.image.path) == Presence::Missing
    }
}

/// A file on the disk under a temporary name, and the row that it is to have.
pub(super) struct Ready {
    pub(super) copy: Copy,
    pub(super) name: Name,
    pub(super) row: NewImage,
}

pub(super) type Landed = Result<Imported, Error>;

/// Writes a row and reads it in the same transaction: once that is committed, nothing may fail any more
/// and call undone what is done.
pub(super) fn insert(connection: &Connection, row: &NewImage) -> Result<Image, store::Error> {
    let id = images::insert(connection, row)?;
    read(connection, id)
}

pub(super) fn read(connection: &Connection, id: i64) -> Result<Image, store::Error> {
    let gone = || store::Error::Damaged { what: format!("image {id} is gone again") };
    images::get(connection, id)?.ok_or_else(gone)
}
