//! Lands an imported file: gives it a name and a row, or gives it to an image whose file is missing.
//! Runs on the thread `library`.
//!
//! The names are noted as pending in the database; then the copies are renamed, the directory flushed,
//! and in one transaction the rows written and the notes removed. Files that are ready at the same time
//! are committed together, so that they wait for the disk once.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crossbeam_channel::Sender;

use super::Error;
use super::context::ImportContext;
use super::disk::{self, Copy, rename, stamp, sync_directory};
use super::file_removal::{self, ExpectedFile, Removal};
use super::name::{FreeName, Name, Names};
use super::package;
use super::task::{self, Facts, Imported, Landed, Prepared, Ready, Which};
use super::watch::rows::{Effects, Rows};
use crate::paths::flush_directory;
use crate::store::edits::ImageChange;
use crate::store::images::{self, NewImage};
use crate::store::{self, Connection, Transaction, edits, pending_files, purge, watched};
use crate::wire::{Event, GalleryDomain, Image};

/// The files of the library's directory and their names. Only the thread `library` has it, so no other
/// thread adds or renames files.
pub(super) struct LibraryFiles {
    pub(super) context: Arc<ImportContext>,
    pub(super) names: Names,
    /// To the thread `remove`.
    pub(super) removals: Sender<Removal>,
}

/// A file at its final path that is about to get its row.
enum Placed {
    Copy(Box<Ready>, FreeName),
    InPlace(Box<Facts>, Effects),
}

/// A file with its name, or the result of a file for which no row is left to write.
type Named = Result<Placed, Box<Landed>>;

impl LibraryFiles {
    pub(super) fn new(context: Arc<ImportContext>, removals: Sender<Removal>) -> Self {
        Self {
            removals,
            context,
            names: Names::default(),
        }
    }

    pub(super) fn land_one(&mut self, prepared: Prepared) -> Landed {
        self.land_run(vec![prepared])
            .pop()
            .unwrap_or(Err(Error::Ended))
    }

    /// Lands the prepared files, in this order and in one transaction. If the transaction fails, each
    /// file is landed in one of its own, so that a failure concerns only its own file.
    pub(super) fn land_run(&mut self, run: Vec<Prepared>) -> Vec<Landed> {
        let mut placed: Vec<_> = run.into_iter().map(|one| self.name(one)).collect();
        self.rename_all(&mut placed);
        let is_copy = |one: &Placed| matches!(one, Placed::Copy(..));
        // Flushed before the commit, so that no row survives a power failure without its file. Not
        // retried: the kernel reports a write error only once.
        let flushed = if placed.iter().flatten().any(is_copy) {
            flush_directory(&self.context.directory)
        } else {
            Ok(())
        };
        let mut written = None;
        if flushed.is_ok() && placed.iter().any(Result::is_ok) {
            let rows = self.context.store.write(|c| -> Result<Vec<_>, Error> {
                placed
                    .iter_mut()
                    .flatten()
                    .map(|one| self.write_row(c, one))
                    .collect()
            });
            written = rows.ok().map(Vec::into_iter);
        }
        let settle = |one: Named| {
            let mut one = match one {
                Ok(one) => one,
                Err(ended) => return *ended,
            };
            let landed = match (&mut written, &flushed) {
                (Some(written), _) => written.next().ok_or(Error::Ended),
                (None, Err(error)) if is_copy(&one) => {
                    Err(Error::file("flush", &self.context.directory)(again(error)))
                }
                // The transaction failed for all files. Each one alone shows which was at fault.
                (None, _) => self.context.store.write(|c| self.write_row(c, &mut one)),
            };
            self.settle(one, landed)
        };
        let landed = placed.into_iter().map(settle).collect();
        self.names.landed();
        landed
    }

    /// Chooses the name of a copy, or of a new row in place.
    fn name(&mut self, prepared: Prepared) -> Named {
        match prepared {
            Prepared::Done(imported) => Err(Box::new(Ok(*imported))),
            Prepared::Restored {
                copy,
                name,
                imported,
            } => Err(Box::new(self.restore_file(copy, &name, *imported))),
            Prepared::Returned { path, image } => Err(Box::new(self.give_back(&image, &path))),
            Prepared::Replacement { id, ready } => {
                let Ready { copy, row, .. } = *ready;
                Err(Box::new(self.replace(id, copy, row)))
            }
            Prepared::Here { path, row, name } => Err(Box::new(self.keep(&path, &name, *row))),
            Prepared::Copy(ready) => {
                let free = self.give(&ready.name)?;
                Ok(Placed::Copy(ready, free))
            }
            Prepared::InPlace(mut facts) => {
                if let Some(new) = &mut facts.new {
                    new.row.settle(&self.give(&new.name)?.name, &facts.path);
                }
                Ok(Placed::InPlace(facts, Effects::default()))
            }
        }
    }

    fn give(&mut self, name: &Name) -> Result<FreeName, Box<Landed>> {
        let context = &self.context;
        let given = self.names.give(name, &context.directory, &context.store);
        given.map_err(|error| Box::new(Err(error)))
    }

    /// Renames the copies to their names, which are noted in one transaction.
    fn rename_all(&mut self, placed: &mut [Named]) {
        let noted = self.context.store.note(|c| -> Result<(), store::Error> {
            placed.iter().flatten().try_for_each(|one| match one {
                Placed::Copy(ready, free) => mark(c, &ready.copy, free),
                Placed::InPlace(..) => Ok(()),
            })
        });
        for one in placed {
            let Ok(Placed::Copy(ready, free)) = one else {
                continue;
            };
            let renamed = if noted.is_ok() {
                self.rename_noted(&mut ready.copy, free)
            } else {
                Ok(false)
            };
            let renamed = renamed.and_then(|renamed| {
                if !renamed {
                    *free = self.rename_to_free(&mut ready.copy, &ready.name, None)?;
                }
                Ok(())
            });
            match renamed {
                Ok(()) => ready.row.settle(&free.name, &free.path),
                Err(error) => *one = Err(Box::new(Err(error))),
            }
        }
    }

    /// Writes the row of a file; returns its image, if it has one.
    fn write_row(&self, c: &Connection, placed: &mut Placed) -> Result<Option<Imported>, Error> {
        match placed {
            Placed::Copy(ready, _) => insert(c, &mut ready.row).map(Some),
            Placed::InPlace(facts, _) if facts.directory.has_ended() => Ok(None),
            Placed::InPlace(facts, effects) => {
                let directory = Arc::clone(&facts.directory);
                Rows::new((&self.context, c, &self.names), &directory, effects).place(facts)
            }
        }
    }

    /// Finishes a file after its transaction. A copy is removed unless a new row was written for it.
    fn settle(&self, placed: Placed, landed: Result<Option<Imported>, Error>) -> Landed {
        match placed {
            Placed::Copy(ready, free) => {
                let Ready { mut copy, note, .. } = *ready;
                let landed = landed.and_then(|imported| imported.ok_or(Error::NothingToDo));
                copy.kept = matches!(&landed, Ok(imported) if !imported.duplicate);
                if !copy.kept {
                    self.discard(copy, &free);
                }
                landed.map(|imported| self.context.complete(imported.noted(note)))
            }
            Placed::InPlace(facts, effects) => self.settle_in_place(*facts, effects, landed),
        }
    }

    fn settle_in_place(
        &self,
        facts: Facts,
        effects: Effects,
        landed: Result<Option<Imported>, Error>,
    ) -> Landed {
        let is_named = matches!(facts.directory.which, Which::Named(_));
        let landed = landed?;
        effects.tell_after_batch(&self.context);
        let note = facts.new.and_then(|new| new.note);
        match (landed, facts.content) {
            (Some(imported), _) if is_named => Ok(self.context.complete(imported.noted(note))),
            // No client waits for other files.
            (Some(imported), _) => Ok(imported),
            (None, Err(error)) => Err(error),
            // Each file that a client named must be counted, as imported or failed.
            (None, Ok(_)) if is_named => {
                let changed = io::Error::other("it changed during the import");
                Err(Error::file("import", &facts.path)(changed))
            }
            (None, Ok(_)) => Err(Error::NothingToDo),
        }
    }

    /// Gives a copy a name, and calls `write` to point a row at it. The copy is removed if that fails.
    pub(super) fn land_as<T>(
        &mut self,
        mut copy: Copy,
        (name, own): (&Name, Option<&str>),
        write: impl FnOnce(&Transaction<'_>, &FreeName) -> Result<T, Error>,
    ) -> Result<(T, FreeName), Error> {
        let free = self.rename_to_free(&mut copy, name, own)?;
        // Flushed before the commit, so that no row survives a power failure without its file.
        let written = sync_directory(&self.context.directory)
            .and_then(|()| self.context.store.write(|c| write(c, &free)));
        copy.kept = written.is_ok();
        if !copy.kept {
            self.discard(copy, &free);
        }
        Ok((written?, free))
    }

    /// Renames a copy to the first free name; its image's present name, `own`, counts as free. From
    /// then on a row for the path keeps the file; without one, the next start removes it.
    fn rename_to_free(
        &mut self,
        copy: &mut Copy,
        name: &Name,
        mut own: Option<&str>,
    ) -> Result<FreeName, Error> {
        loop {
            let context = &self.context;
            let free = self
                .names
                .free(name, &context.directory, &context.store, own)?;
            context.store.note(|c| mark(c, copy, &free))?;
            if self.rename_noted(copy, &free)? {
                return Ok(free);
            }
            // The file with the image's own name belongs to somebody else.
            own = None;
        }
    }

    /// Renames a copy whose name is noted. False if a file has the name by now; it is not murald's.
    fn rename_noted(&self, copy: &mut Copy, free: &FreeName) -> Result<bool, Error> {
        let Err(error) = rename(&copy.path, &free.path) else {
            copy.path.clone_from(&free.path);
            return Ok(true);
        };
        self.context
            .store
            .note(|c| pending_files::unmark(c, &free.path))?;
        match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(false),
            _ => Err(Error::file("rename", &copy.path)(error)),
        }
    }
}

/// Notes that a copy is about to be renamed to the path.
fn mark(c: &Connection, copy: &Copy, free: &FreeName) -> Result<(), store::Error> {
    let seen = copy.path.symlink_metadata().map(|meta| stamp(&meta));
    pending_files::mark(c, &free.path, seen.as_ref().ok())
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
    let id = images::insert(transaction, row)?;
    // In the same transaction, so that no error after the commit can report the import as failed.
    Ok(Imported::new(task::read_image(transaction, id)?, false))
}

/// A copy of the error, which is not `Clone`.
fn again(error: &io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

impl LibraryFiles {
    /// Gives a flushed copy to the image with the same content, if the image's file is missing. The copy
    /// gets the missing file's name if that was in the library's directory, otherwise `name`.
    fn restore_file(
        &mut self,
        copy: Copy,
        name: &Name,
        imported: Imported,
    ) -> Result<Imported, Error> {
        let image = &imported.image;
        // A file in place is on a user's disk; a worker has missed it.
        if !image.in_place && !task::has_lost_its_file(image) {
            return Ok(imported);
        }
        let is_here = !image.in_place && image.path.parent() == Some(&self.context.directory);
        let former = is_here.then(|| Name::as_is(&image.path));
        let own = former.as_ref().map(|name| name.stem.as_str());
        let names = (former.as_ref().unwrap_or(name), own);
        let restored = self.land_as(copy, names, |c, free| {
            unchanged(c, image)?;
            edits::move_into_library(c, image.id, &free.path)?;
            pending_files::unmark(c, &free.path)?;
            Ok(())
        });
        match restored {
            Ok((_, free)) => {
                let path = free.path.display();
                log::info!("found the missing file of {}: {path}", image.name);
                self.context.bus.publish(&Event::GalleryChanged {
                    domain: GalleryDomain::Images,
                });
            }
            // The image was given another file in the meantime.
            Err(Error::NothingToDo) => {}
            Err(error) => return Err(error),
        }
        self.context.imported(image.id, true)
    }

    /// Replaces the copy of an image, a video or a page, by another one, which is flushed and has this
    /// row.
    pub(super) fn replace(&mut self, id: i64, copy: Copy, mut row: NewImage) -> Landed {
        let context = Arc::clone(&self.context);
        let find = |c: &Connection| images::get(c, id)?.ok_or(Error::NoImage { id });
        let own = keep_choices(&context.store.read(find)?, &mut row)?;
        // `from_title` leaves room for a number, as the name is in use until the old file is removed.
        let beside = Name::from_title(&own.stem, own.extension.clone());
        let equal = context.store.read(|c| watched::of_image(c, id))?;
        let (old, _) = self.land_as(copy, (&beside, None), |c, free| {
            row.settle(&free.name, &free.path);
            let old = find(c)?;
            if old.in_place {
                return Err(Error::InPlace { id });
            }
            edits::replace(c, &old, &row)?;
            Ok(old)
        })?;
        if old.web_meta.is_none() {
            equal.iter().for_each(|file| context.watched.look_at(file));
        }
        context.thumbnails.remove(&old);
        let home = (old.home().to_owned(), ExpectedFile::copy(&old));
        let preview = purge::preview(&old).map(|it| (it.to_owned(), ExpectedFile::File));
        file_removal::clear(&context, [home].into_iter().chain(preview), false);
        let now = context.store.read(find)?;
        if let Err(error) = self.rename(&now, &own, &ImageChange::default()) {
            log::warn!("image {id} was renamed to {}: {}", now.name, error.reason());
        }
        if old.web_meta.is_some() {
            context.tell_rewritten(id);
        }
        context.bus.publish(&Event::GalleryChanged {
            domain: GalleryDomain::Images,
        });
        context.imported(id, false)
    }

    /// Gives an image the file of its content that somebody put into the library's directory.
    fn give_back(&mut self, image: &Image, path: &Path) -> Landed {
        self.context.store.write(|c| -> Result<(), Error> {
            unchanged(c, image)?;
            Ok(edits::move_into_library(c, image.id, path)?)
        })?;
        self.context.imported(image.id, true)
    }

    /// Gives a row to a file or package that is already in the directory, under its own name if that is
    /// free. The row of an image whose file was rewritten there is updated.
    fn keep(&mut self, path: &Path, name: &Name, mut row: NewImage) -> Landed {
        let store = self.context.store.clone();
        if let Some(old) = store.read(|c| images::by_path(c, path))? {
            store.write(|c| -> Result<(), Error> {
                Ok(edits::rewrite(c, &unchanged(c, &old)?, &row)?)
            })?;
            return self.context.rewritten(&old);
        }
        if store.read(|c| pending_files::has(c, path))? {
            // The image was deleted a moment ago, and its file is about to be removed.
            return Err(Error::NotFile {
                path: path.to_owned(),
            });
        }
        let stem = &name.stem;
        let mut free = FreeName {
            name: stem.clone(),
            path: path.to_owned(),
        };
        let own = match row.web {
            Some(_) => path.file_name(),
            None => path.file_stem(),
        };
        if own != Some(OsStr::new(stem))
            || self.names.is_given(stem)
            || store.read(|c| images::has_name(c, stem))?
        {
            free = self
                .names
                .free(name, &self.context.directory, &store, None)?;
            rename(path, &free.path).map_err(Error::file("rename", path))?;
        }
        row.settle(&free.name, &free.path);
        let landed = store.write(|c| insert(c, &mut row))?;
        Ok(self.context.complete(landed))
    }

    /// Removes a copy that has a name but no row: first the file, then its note.
    /// A file that cannot be removed stays noted, and the next start tries again.
    fn discard(&self, copy: Copy, free: &FreeName) {
        drop(copy);
        if disk::is_gone(&free.path) {
            let store = &self.context.store;
            store.note(|c| pending_files::unmark(c, &free.path)).ok();
        }
    }
}

/// The name of an image whose copy is replaced by one with this row. A page keeps what the user has
/// chosen for it; its name follows its title, unless the user has chosen another one.
fn keep_choices(before: &Image, row: &mut NewImage) -> Result<Name, Error> {
    let mut name = Name {
        stem: before.name.clone(),
        extension: row.format.as_str().to_owned(),
    };
    let (Some(new), Some(old)) = (&mut row.web, &before.web_meta) else {
        return Ok(name);
    };
    name.extension.clear();
    let titles = [&old.title, &new.meta.title];
    let [old_title, title] = titles.map(|title| Name::from_title(title, String::new()).stem);
    if name.stem == old_title {
        name.stem = title;
    }
    new.keep_settings(before);
    if new.meta.capabilities != old.capabilities {
        // The user may have refused what the page asks for.
        new.meta.capabilities = old.capabilities;
        package::write_capabilities(&new.meta)?;
    }
    Ok(name)
}

/// The present row of an image. Fails with [`Error::NothingToDo`] if its path or its content is another
/// than in `seen`.
pub(super) fn unchanged(c: &Connection, seen: &Image) -> Result<Image, Error> {
    let now = images::get(c, seen.id)?;
    now.filter(|now| (&now.path, &now.checksum) == (&seen.path, &seen.checksum))
        .ok_or(Error::NothingToDo)
}
