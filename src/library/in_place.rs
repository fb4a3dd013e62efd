//! A file's way into the library where it lies: looked at and given a row, and never touched. Runs in
//! the import workers.

use std::io;
use std::path::Path;

use super::Error;
use super::disk::Copy;
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
        let imported = match self.take_named(source, folder, (turn, stop)) {
            Err(Error::LeftAlone) => {
                let error = io::Error::other("it is being written");
                return Err(Error::file("read", source)(error));
            }
            imported => imported?,
        };
        match !imported.image.in_place && imported.has_lost_its_file() {
            // What was copied is copied once more.
            true => self.import(source, folder, turn, stop),
            false => Ok(imported),
        }
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
