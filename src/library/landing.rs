//! Lands an imported file: gives it a name and a row, or gives it to an image whose file is missing.
//! Runs on the thread `import`, and on any thread that imports one file.
//!
//! The name is noted as pending in the database; then the copy is renamed, the directory flushed, and
//! in one transaction the row written and the note removed. Files that are ready at the same time are
//! committed together, so that they wait for the disk once.

use std::io;

use super::Error;
use super::context::ImportContext;
use super::disk::{self, Copy, flush, rename, stamp, sync_directory};
use super::name::{Name, Reserved};
use super::task::{self, Imported, InPlace, Landed, Prepared, Ready, ReadyInPlace};
use crate::paths::flush_directory;
use crate::store::images::{self, NewImage};
use crate::store::{self, Connection, Transaction, edits, pending_files};
use crate::wire::{Event, GalleryDomain, Image};

/// A file at its final path that is about to get its row.
enum Placed<'a> {
    Copy(Box<Ready>, Reserved<'a>),
    /// With the new name of its row, if any, which is reserved until the commit.
    InPlace(Box<ReadyInPlace>, Option<Reserved<'a>>),
}

impl ImportContext {
    pub(super) fn land_one(&self, prepared: Prepared) -> Landed {
        self.land_run(vec![prepared])
            .pop()
            .unwrap_or(Err(Error::Ended))
    }

    /// Lands the prepared files, in this order and in one transaction. If the transaction fails, each
    /// file is landed in one of its own, so that a failure concerns only its own file.
    pub(super) fn land_run(&self, run: Vec<Prepared>) -> Vec<Landed> {
        let mut placed: Vec<_> = run.into_iter().map(|one| self.give_place(one)).collect();
        let is_copy = |one: &Placed<'_>| matches!(one, Placed::Copy(..));
        // Flushed before the commit, so that no row survives a power failure without its file. Not
        // retried: the kernel reports a write error only once.
        let flushed = match placed.iter().flatten().any(is_copy) {
            true => flush_directory(&self.directory),
            false => Ok(()),
        };
        let mut written = None;
        if flushed.is_ok() && placed.iter().any(Result::is_ok) {
            let rows = self.store.write(|c| -> Result<Vec<_>, Error> {
                placed
                    .iter_mut()
                    .flatten()
                    .map(|one| self.write_row(c, one))
                    .collect()
            });
            written = rows.ok().map(Vec::into_iter);
        }
        let settle = |one: Result<Placed<'_>, Box<Landed>>| {
            let mut one = match one {
                Ok(one) => one,
                Err(ended) => return *ended,
            };
            let landed = match (&mut written, &flushed) {
                (Some(written), _) => written.next().ok_or(Error::Ended),
                (None, Err(error)) if is_copy(&one) => {
                    Err(Error::file("flush", &self.directory)(again(error)))
                }
                // The transaction failed for all files. Each one alone shows which was at fault.
                (None, _) => self.store.write(|c| self.write_row(c, &mut one)),
            };
            self.settle(one, landed)
        };
        placed.into_iter().map(settle).collect()
    }

    /// Renames a copy to its final name, or reserves a name for a new row in place. `Err` holds the
    /// result of a file for which no row is left to write.
    fn give_place(&self, prepared: Prepared) -> Result<Placed<'_>, Box<Landed>> {
        let ended = |error| Box::new(Err(error));
        match prepared {
            Prepared::Done(imported) => Err(Box::new(Ok(*imported))),
            Prepared::Copy(mut ready) => {
                let reserved = self.rename_to_free(&mut ready.copy, &ready.name, None);
                let reserved = reserved.map_err(ended)?;
                ready.row.settle(&reserved.name, &reserved.path);
                Ok(Placed::Copy(ready, reserved))
            }
            Prepared::InPlace(mut ready) => {
                let mut reserved = None;
                if let InPlace::New { name, row, .. } = &mut ready.change {
                    let free = self.names.reserve(name, &self.directory, &self.store, None);
                    let free = reserved.insert(free.map_err(ended)?);
                    row.settle(&free.name, &ready.seen.path);
                }
                Ok(Placed::InPlace(ready, reserved))
            }
        }
    }

    fn write_row<'a>(&'a self, c: &Connection, placed: &mut Placed<'a>) -> Landed {
        match placed {
            Placed::Copy(ready, _) => insert(c, &mut ready.row),
            Placed::InPlace(ready, name) => self.write_in_place(c, ready, name),
        }
    }

    /// Finishes a file after its transaction. A copy is removed unless a new row was written for it.
    fn settle(&self, placed: Placed<'_>, landed: Landed) -> Landed {
        match placed {
            Placed::Copy(ready, reserved) => {
                let Ready { mut copy, note, .. } = *ready;
                copy.kept = matches!(&landed, Ok(imported) if !imported.duplicate);
                if !copy.kept {
                    self.discard(copy, &reserved);
                }
                landed.map(|imported| self.complete(imported.noted(note)))
            }
            Placed::InPlace(ready, _name) => self.settle_in_place(*ready, landed),
        }
    }

    /// Gives a copy a name, and calls `write` to point a row at it. The copy is removed if that fails.
    pub(super) fn land_as<T>(
        &self,
        mut copy: Copy,
        (name, own): (&Name, Option<&str>),
        write: impl FnOnce(&Transaction<'_>, &Reserved<'_>) -> Result<T, Error>,
    ) -> Result<(T, Reserved<'_>), Error> {
        let reserved = self.rename_to_free(&mut copy, name, own)?;
        // Flushed before the commit, so that no row survives a power failure without its file.
        let written = sync_directory(&self.directory).and_then(|()| {
            self.store
                .write(|transaction| write(transaction, &reserved))
        });
        copy.kept = written.is_ok();
        if !copy.kept {
            self.discard(copy, &reserved);
        }
        Ok((written?, reserved))
    }

    /// Renames a copy to the first free name; its image's present name, `own`, counts as free. From
    /// then on a row for the path keeps the file; without one, the next start removes it.
    pub(super) fn rename_to_free(
        &self,
        copy: &mut Copy,
        name: &Name,
        mut own: Option<&str>,
    ) -> Result<Reserved<'_>, Error> {
        loop {
            let reserved = self
                .names
                .reserve(name, &self.directory, &self.store, own)?;
            self.store.note(|c| mark(c, copy, &reserved))?;
            match rename(&copy.path, &reserved.path) {
                Ok(()) => {
                    copy.path.clone_from(&reserved.path);
                    return Ok(reserved);
                }
                Err(error) => {
                    // A file at this path is not murald's.
                    self.store
                        .note(|c| pending_files::unmark(c, &reserved.path))?;
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return Err(Error::file("rename", &copy.path)(error));
                    }
                    // The file with the image's own name belongs to somebody else.
                    own = None;
                }
            }
        }
    }
}

/// Notes that a copy is about to be renamed to the reserved path.
fn mark(c: &Connection, copy: &Copy, reserved: &Reserved<'_>) -> Result<(), store::Error> {
    let seen = copy.path.symlink_metadata().map(|meta| stamp(&meta));
    pending_files::mark(c, &reserved.path, seen.as_ref().ok())
}

fn insert(transaction: &Connection, row: &mut NewImage) -> Landed {
    if let Some(image) = images::by_checksum(transaction, &row.checksum)? {
        return Ok(Imported::new(image, true));
    }
    // If the folder was deleted in between, its pictures go to the root.
    if let Some(folder) = row.folder_id
        && !store::folders::exists(transaction, folder)?
    {
        row.folder_id = None;
    }
    pending_files::unmark(transaction, row.home())?;
    let image = task::insert_image(transaction, row)?;
    Ok(Imported::new(image, false))
}

/// A copy of the error, which is not `Clone`.
fn again(error: &io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

impl ImportContext {
    /// Gives a copy to the image with the same content, if the image's file is missing. The copy gets
    /// the missing file's name if that was in the library's directory, otherwise `name`.
    pub(super) fn restore_file(
        &self,
        copy: Copy,
        name: &Name,
        imported: Imported,
    ) -> Result<Imported, Error> {
        let image = &imported.image;
        if !task::has_lost_its_file(image) {
            return Ok(imported);
        }
        flush(&copy)?;
        let is_here = !image.in_place && image.path.parent() == Some(&self.directory);
        let former = is_here.then(|| Name::as_is(&image.path));
        let own = former.as_ref().map(|name| name.stem.as_str());
        own.inspect(|own| self.names.look_anew(own));
        let names = (former.as_ref().unwrap_or(name), own);
        let restored = self.land_as(copy, names, |c, reserved| {
            // Another worker may have restored the file first.
            let is_lost = !is_here || reserved.path == image.path || disk::is_gone(&image.path);
            if !is_lost {
                return Err(Error::NothingToDo);
            }
            unchanged(c, image)?;
            edits::move_into_library(c, image.id, &reserved.path)?;
            pending_files::unmark(c, &reserved.path)?;
            Ok(())
        });
        match restored {
            Ok((_, reserved)) => {
                let path = reserved.path.display();
                log::info!("found the missing file of {}: {path}", image.name);
                self.bus.publish(&Event::GalleryChanged {
                    domain: GalleryDomain::Images,
                });
            }
            Err(Error::NothingToDo) => {}
            Err(error) => return Err(error),
        }
        self.imported(image.id, true)
    }

    /// Removes a copy that has a name but no row: first the file, then its note, then the name is free.
    /// A file that cannot be removed stays noted, and the next start tries again.
    fn discard(&self, copy: Copy, reserved: &Reserved<'_>) {
        drop(copy);
        if disk::is_gone(&reserved.path) {
            self.store
                .note(|c| pending_files::unmark(c, &reserved.path))
                .ok();
        }
    }
}

/// The present row of an image. Fails with [`Error::NothingToDo`] if its path or its content is another
/// than in `seen`.
pub(super) fn unchanged(c: &Connection, seen: &Image) -> Result<Image, Error> {
    let now = images::get(c, seen.id)?;
    now.filter(|now| (&now.path, &now.checksum) == (&seen.path, &seen.checksum))
        .ok_or(Error::NothingToDo)
}
