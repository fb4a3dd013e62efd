//! A file's way into the library where it lies: looked at and given a row, and never touched. Runs in
//! the import workers.

use std::path::Path;

use super::Error;
use super::disk::{self, Copy};
use super::import_file::ImportContext;
use super::landed::Imported;
use super::name::Name;
use super::source::Source;
use super::turn::Turn;
use crate::digest::Checksum;
use crate::media::Stop;
use crate::store::images::NewImage;

impl ImportContext {
    /// Gives a row to a file that stays where it is, unless its content is there already.
    pub(super) fn import_in_place(
        &self,
        source: &Path,
        folder: Option<i64>,
        turn: &Turn,
        stop: Stop<'_>,
    ) -> Result<Imported, Error> {
        // What is ours has its row, or gets it as everything there does.
        if source.starts_with(&self.directory) {
            return self.import(source, folder, turn, stop);
        }
        let mut file = disk::open(source)?;
        let checksum = disk::checksum(source, &mut file, stop)?;
        drop(file);
        if let Some(imported) = self.present(&checksum)? {
            return match imported.has_lost_its_file() {
                false => Ok(imported),
                // What was copied is copied once more.
                true if !imported.image.in_place => self.import(source, folder, turn, stop),
                true => self.find_at(source, imported),
            };
        }
        let (name, mut row) = self.describe_in_place(source, checksum, folder, stop)?;
        if !turn.wait() {
            return Err(Error::Stopped);
        }
        let reserved = self.names.reserve(&name, &self.directory, &self.store, None)?;
        row.settle(&reserved.name, source);
        self.insert(&mut row).map(|imported| self.complete(imported))
    }

    /// What a file holds that stays where it is, and what it would be called.
    pub(super) fn describe_in_place(
        &self,
        source: &Path,
        checksum: Checksum,
        folder: Option<i64>,
        stop: Stop<'_>,
    ) -> Result<(Name, NewImage), Error> {
        let Source { format, name, size, .. } = Source::look_at(source)?;
        self.check(source, format, size)?;
        let copy = Copy { path: source.to_owned(), kept: true, checksum, size };
        let mut row = self.describe(source, &copy, folder, stop)?;
        row.in_place = true;
        Ok((name, row))
    }
}
