//! The row of what has just come into the library, as it is told of. Runs in whoever's transaction it is.

use crate::store::images::{self, NewImage};
use crate::store::{Connection, Error};
use crate::wire::Image;

/// Writes a row and reads it in the same transaction: once that is committed, nothing may fail any more
/// and call undone what is done.
pub(super) fn insert(connection: &Connection, row: &NewImage) -> Result<Image, Error> {
    let id = images::insert(connection, row)?;
    read(connection, id)
}

pub(super) fn read(connection: &Connection, id: i64) -> Result<Image, Error> {
    let gone = || Error::Damaged { what: format!("image {id} is gone again") };
    images::get(connection, id)?.ok_or_else(gone)
}
