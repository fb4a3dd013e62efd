//! Lands an imported file: its name and its row, or the file of an image that had lost its own. Runs in
//! the thread `import`, and on any thread that imports one file.
//!
//! The name is noted as pending in the database; then the copy is renamed, the directory flushed, and
//! in one transaction the row written and the note removed. Files that are ready at the same time are
//! committed together, so that they wait for the disk once.

use std::io;

use super::Error;
use super::context::ImportContext;
use super::disk::{self, Copy, flush, rename, stamp, sync_directory};
use super::name::{Name, Reserved};
use super::task::{self, Imported, Landed, Prepared, Ready};
use crate::paths::flush_directory;
use crate::store::images::{self, NewImage};
use crate::store::watched::{self, WatchedFile};
use crate::store::{self, Connection, edits, pending_files};
use crate::wire::{Event, GalleryDomain, Image};

/// A file that is about to get its name, or has it.
struct Placed<'a> {
    ready: Ready,
    reserved: Reserved<'a>,
}

/// The result of a file that is no longer committed with the others.
type Ended = Box<Landed>;

impl ImportContext {
    pub(super) fn land(&self, ready: Ready) -> Landed {
        let Ready { mut copy, name, mut row, note, seen } = ready;
        let seen = seen.as_ref();
        let reserved = self.rename_to_free(&mut copy, &name, None)?;
        row.settle(&reserved.name, &reserved.path);
        // The name must not be forgotten after the row is remembered.
        let landed = sync_directory(&self.directory).and_then(|()| self.insert(&mut row, seen));
        self.settle(copy, reserved, landed).map(|imported| imported.noted(note))
    }

    /// Lands what was prepared, in this order. What becomes of one file does not hang on the others.
    pub(super) fn land_run(&self, run: Vec<Prepared>) -> Vec<Landed> {
        let (mut landed, mut copies) = (Vec::with_capacity(run.len()), Vec::new());
        for prepared in run {
            if let Prepared::Copy(ready) = prepared {
                copies.push(*ready);
                continue;
            }
            landed.extend(self.land_all(std::mem::take(&mut copies)));
            match prepared {
                Prepared::Done(imported) => landed.push(Ok(*imported)),
                Prepared::InPlace(ready) => landed.push(self.land_in_place(*ready)),
                Prepared::Copy(_) => {}
            }
        }
        landed.extend(self.land_all(copies));
        landed
    }

    pub(super) fn land_one(&self, prepared: Prepared) -> Landed {
        self.land_run(vec![prepared]).pop().unwrap_or(Err(Error::Ended))
    }

    /// Lands several copies together.
    pub(super) fn land_all(&self, all: Vec<Ready>) -> Vec<Landed> {
        let reserved: Vec<_> = all.into_iter().map(|ready| self.reserve(ready)).collect();
        let mut placed = reserved.iter().flatten();
        let noted =
            self.store.note(|c| placed.try_for_each(|one| mark(c, &one.ready.copy, &one.reserved)));
        let is_noted = noted.is_ok();
        let mut landed = Vec::with_capacity(reserved.len());
        let (mut placed, mut places) = (Vec::new(), Vec::new());
        for (place, reserved) in reserved.into_iter().enumerate() {
            match reserved.and_then(|reserved| self.name(reserved, is_noted)) {
                Ok(one) => {
                    placed.push(one);
                    places.push(place);
                    landed.push(None);
                }
                Err(ended) => landed.push(Some(*ended)),
            }
        }
        for (place, ended) in places.into_iter().zip(self.write_rows(placed)) {
            landed[place] = Some(ended);
        }
        landed.into_iter().map(|ended| ended.unwrap_or(Err(Error::Ended))).collect()
    }

    fn reserve(&self, mut ready: Ready) -> Result<Placed<'_>, Ended> {
        let reserved = self.names.reserve(&ready.name, &self.directory, &self.store, None);
        let reserved = reserved.map_err(|error| Box::new(Err(error)))?;
        ready.row.settle(&reserved.name, &reserved.path);
        Ok(Placed { ready, reserved })
    }

    /// Gives the name that is noted. Where that does not go, it is landed alone, and told why if that
    /// does not go either.
    fn name<'a>(&'a self, placed: Placed<'a>, is_noted: bool) -> Result<Placed<'a>, Ended> {
        let Placed { mut ready, reserved } = placed;
        if is_noted {
            if rename(&ready.copy.path, &reserved.path).is_ok() {
                ready.copy.path.clone_from(&reserved.path);
                return Ok(Placed { ready, reserved });
            }
            // Whatever is there is not ours.
            let unmarked = self.store.note(|c| pending_files::unmark(c, &reserved.path));
            unmarked.map_err(|error| Box::new(Err(Error::from(error))))?;
        }
        drop(reserved);
        Err(Box::new(self.land(ready)))
    }

    fn write_rows(&self, mut placed: Vec<Placed<'_>>) -> Vec<Landed> {
        if placed.is_empty() {
            return Vec::new();
        }
        // The names must not be forgotten after the rows are remembered. Not tried again: a disk tells
        // once that it has lost something.
        if let Err(error) = flush_directory(&self.directory) {
            let failed = || Error::file("flush", &self.directory)(again(&error));
            let give_up =
                |one: Placed<'_>| self.settle(one.ready.copy, one.reserved, Err(failed()));
            return placed.into_iter().map(give_up).collect();
        }
        let written = self.store.write(|c| -> Result<Vec<_>, Error> {
            let one = |one: &mut Placed<'_>| insert(c, &mut one.ready.row, one.ready.seen.as_ref());
            placed.iter_mut().map(one).collect()
        });
        let mut written = written.ok().map(Vec::into_iter);
        let settle = |one: Placed<'_>| {
            let Ready { copy, mut row, note, seen, .. } = one.ready;
            let landed = match &mut written {
                Some(written) => written.next().ok_or(Error::Ended),
                // All of them or none: which one it was is seen where each is alone.
                None => self.insert(&mut row, seen.as_ref()),
            };
            self.settle(copy, one.reserved, landed).map(|imported| imported.noted(note))
        };
        placed.into_iter().map(settle).collect()
    }

    /// The end of it, whichever: the copy stays where its row was written.
    fn settle(&self, mut copy: Copy, reserved: Reserved<'_>, landed: Landed) -> Landed {
        copy.kept = matches!(&landed, Ok(imported) if !imported.duplicate);
        if !copy.kept {
            self.discard(copy, &reserved);
        }
        landed.map(|imported| self.complete(imported))
    }

    /// Writes the row, or finds that the same content has landed by now.
    fn insert(&self, row: &mut NewImage, seen: Option<&WatchedFile>) -> Landed {
        self.store.write(|transaction| insert(transaction, row, seen))
    }

    /// Gives a copy a name, and a row that `write` makes its own: all of it or nothing.
    pub(super) fn land_as<T>(
        &self,
        (mut copy, name, mut row): (Copy, &Name, NewImage),
        own: Option<&str>,
        write: impl FnOnce(&Connection, &NewImage) -> Result<T, Error>,
    ) -> Result<(T, Reserved<'_>), Error> {
        let reserved = self.rename_to_free(&mut copy, name, own)?;
        row.settle(&reserved.name, &reserved.path);
        // The name must not be forgotten after the row is remembered.
        let written = sync_directory(&self.directory)
            .and_then(|()| self.store.write(|transaction| write(transaction, &row)));
        copy.kept = written.is_ok();
        if !copy.kept {
            self.discard(copy, &reserved);
        }
        Ok((written?, reserved))
    }

    /// Moves a copy to the first free name; what its image is called already, `own`, is free to it. From
    /// then on only its row, or the removal of the note, decides whether it stays.
    pub(super) fn rename_to_free(
        &self,
        copy: &mut Copy,
        name: &Name,
        mut own: Option<&str>,
    ) -> Result<Reserved<'_>, Error> {
        loop {
            let reserved = self.names.reserve(name, &self.directory, &self.store, own)?;
            self.store.note(|c| mark(c, copy, &reserved))?;
            match rename(&copy.path, &reserved.path) {
                Ok(()) => {
                    copy.path.clone_from(&reserved.path);
                    return Ok(reserved);
                }
                Err(error) => {
                    // Whatever is there is not ours.
                    self.store.note(|c| pending_files::unmark(c, &reserved.path))?;
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return Err(Error::file("rename", &copy.path)(error));
                    }
                    // The file with that name is not the image's.
                    own = None;
                }
            }
        }
    }
}

/// Notes that a copy is about to have its name.
fn mark(c: &Connection, copy: &Copy, reserved: &Reserved<'_>) -> Result<(), store::Error> {
    let seen = copy.path.symlink_metadata().map(|meta| stamp(&meta));
    pending_files::mark(c, &reserved.path, seen.as_ref().ok())
}

fn insert(transaction: &Connection, row: &mut NewImage, seen: Option<&WatchedFile>) -> Landed {
    let note = |image: &Image| {
        let note = seen.map(|seen| WatchedFile { image_id: Some(image.id), ..seen.clone() });
        note.map_or(Ok(()), |note| watched::note(transaction, &note))
    };
    if let Some(image) = images::by_checksum(transaction, &row.checksum)? {
        note(&image)?;
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
    note(&image)?;
    Ok(Imported::new(image, false))
}

/// The same error once more.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

impl ImportContext {
    /// Gives a copy to the image that has its content: where its file was, or, where that is no place in
    /// the library's directory, in this one.
    pub(super) fn restore_file(
        &self,
        mut copy: Copy,
        name: &Name,
        imported: Imported,
    ) -> Result<Imported, Error> {
        let image = &imported.image;
        if !imported.has_lost_its_file() {
            return Ok(imported);
        }
        flush(&copy)?;
        let is_here = !image.in_place && image.path.parent() == Some(&self.directory);
        let former = is_here.then(|| Name::as_is(&image.path));
        let own = former.as_ref().map(|name| name.stem.as_str());
        own.inspect(|own| self.names.look_anew(own));
        let reserved = self.rename_to_free(&mut copy, former.as_ref().unwrap_or(name), own)?;
        disk::sync_directory(&self.directory)?;
        copy.kept = self.store.write(|c| -> Result<_, Error> {
            // Another worker may have had a copy of it, too.
            let is_lost = !is_here || reserved.path == image.path || disk::is_gone(&image.path);
            let is_so = is_lost && is_as_it_was(images::get(c, image.id)?.as_ref(), image);
            if is_so {
                edits::take_home(c, image.id, &reserved.path)?;
                pending_files::unmark(c, &reserved.path)?;
                self.store.count_given_back(c);
            }
            Ok(is_so)
        })?;
        match copy.kept {
            true => {
                log::info!("found the missing file of {}: {}", image.name, copy.path.display());
                self.bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Images });
            }
            false => self.discard(copy, &reserved),
        }
        self.imported(image.id, true)
    }

    /// Removes a copy that has a name but no row: first the file, then its note, then the name is free.
    /// A file that cannot be removed stays noted, and the next start tries again.
    fn discard(&self, copy: Copy, reserved: &Reserved<'_>) {
        drop(copy);
        if disk::is_gone(&reserved.path) {
            self.store.note(|c| pending_files::unmark(c, &reserved.path)).ok();
        }
    }
}

/// Whether an image has the file still that it was seen to have lost, and the content.
pub(super) fn is_as_it_was(now: Option<&Image>, seen: &Image) -> bool {
    now.is_some_and(|now| (&now.path, &now.checksum) == (&seen.path, &seen.checksum))
}
