//! Writes the rows of watched files that were renamed, rewritten or added.
//!
//! Each change is in one transaction with the note of the file that was seen. The import workers write
//! rewritten files, and so does the thread that is about to show one (HTTP, reconciler); the thread
//! `watch` renames notes; other changes are written where files land. Never changes a watched file.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::Error;
use super::context::ImportContext;
use super::decode::Tools;
use super::landing::unchanged;
use super::name::{Name, Names};
use super::task::{
    self, Directory, Imported, InPlace, Landed, Pass, Prepared, ReadyInPlace, SeenFile, Which,
};
use crate::store::folders::{self, DEPTH_MAX};
use crate::store::watched::{self, Stamp, WatchedFile};
use crate::store::{self, Connection, edits, images};
use crate::sys::lock;
use crate::wire::{Image, own_path};

impl SeenFile {
    pub(super) fn note(
        &self,
        connection: &Connection,
        image: Option<i64>,
    ) -> Result<(), store::Error> {
        if let Some(id) = image {
            watched::displace(connection, &self.path, id)?;
        }
        let file = WatchedFile {
            path: self.path.clone(),
            image_id: image,
            checksum: Some(self.checksum),
            stamp: self.stamp,
        };
        watched::note(connection, &file)
    }

    pub(super) fn ready(self, change: InPlace) -> Prepared {
        Prepared::InPlace(Box::new(ReadyInPlace { seen: self, change }))
    }

    /// Fails with [`Error::NothingToDo`] if the file was written since it was read; it is imported after
    /// the writing has ended. A replacement with the same size and time passes: the note then differs
    /// from it. Never called in a transaction, since the file's disk may not answer.
    fn check(&self, tools: Tools<'_>) -> Result<(), Error> {
        if self.directory.ended.load(Ordering::Acquire) {
            return Err(Error::NothingToDo);
        }
        let now = tools
            .decoder
            .meta(&self.path)
            .map_err(|_| Error::NothingToDo)?;
        if Stamp::from(now).same_written(&self.stamp) {
            Ok(())
        } else {
            Err(Error::NothingToDo)
        }
    }
}

impl ImportContext {
    /// Writes the change of rows for a file in place, and its note. Fails if the change is out of date.
    pub(super) fn write_in_place(
        &self,
        c: &Connection,
        ready: &mut ReadyInPlace,
        names: &Names,
    ) -> Landed {
        let ReadyInPlace { seen, change } = ready;
        if seen.directory.ended.load(Ordering::Acquire) {
            return Err(Error::NothingToDo);
        }
        let is_named = matches!(seen.directory.which, Which::Named(_));
        let (id, duplicate) = match change {
            InPlace::New { row, .. } => match images::by_checksum(c, &row.checksum)? {
                Some(image) => (image.id, true),
                None => {
                    row.folder_id = self.folder(c, &seen.directory, &seen.path)?;
                    (images::insert(c, row)?, false)
                }
            },
            InPlace::Moved(image, pass) => {
                if !self.move_here(c, seen, image, names)? {
                    // Another file with this content came first.
                    if *pass == Pass::Moves {
                        return Err(Error::NothingToDo);
                    }
                    self.note_same(c, seen, image, false)?;
                }
                (image.id, is_named)
            }
            InPlace::Same(image) => {
                let known = watched::get(c, &seen.path)?;
                self.note_same(c, seen, image, known.is_none())?;
                let is_known = known.is_some_and(|known| known.image_id == Some(image.id));
                // A new path of an image changes the lists of its directory, so it is no duplicate.
                (image.id, is_named || is_known)
            }
        };
        seen.note(c, Some(id))?;
        Ok(Imported::new(task::read_image(c, id)?, duplicate))
    }

    /// Finishes a file after its transaction. A file whose change was out of date is looked at again.
    pub(super) fn settle_in_place(&self, ready: ReadyInPlace, landed: Landed) -> Landed {
        let ReadyInPlace { seen, change } = ready;
        let path = seen.path;
        if landed.as_ref().is_err_and(Error::is_nothing_to_do) {
            lock(&self.unknown_again).push(path.clone());
        }
        let note = match change {
            InPlace::New { note, .. } => note,
            _ => None,
        };
        match seen.directory.which {
            // Each file that a client named must be counted, as imported or failed.
            Which::Named(_) => match landed {
                Err(Error::NothingToDo) => {
                    let changed = io::Error::other("it changed during the import");
                    Err(Error::file("import", &path)(changed))
                }
                landed => landed.map(|imported| self.complete(imported.noted(note))),
            },
            // No client waits for other files.
            _ => landed,
        }
    }

    /// Gives the file to the image with its content, whose own file is missing, or was displaced by
    /// another file of the same run. False if the image has another file by now.
    fn move_here(
        &self,
        c: &Connection,
        seen: &SeenFile,
        image: &Image,
        names: &Names,
    ) -> Result<bool, Error> {
        let has_none = |now: &Image| now.path == image.path || own_path(&now.path) != now.path;
        let now = images::get(c, image.id)?;
        let now = now.filter(|now| now.checksum == image.checksum && has_none(now));
        let Some(now) = now else { return Ok(false) };
        self.give_file(c, &seen.directory, (&now, &seen.path), names)?;
        watched::forget_file(c, &now.path, now.id)?;
        log::debug!(
            "the file of {} is now {}",
            image.path.display(),
            seen.path.display()
        );
        Ok(true)
    }

    /// Changes the path of a note and of its image after the file, or a directory above it, was
    /// renamed.
    pub(super) fn rename_note(
        &self,
        c: &Connection,
        directory: &Directory,
        (file, now): &(WatchedFile, WatchedFile),
        names: &Names,
    ) -> Result<(), Error> {
        let id = watched::rename(c, file, now)?;
        if let Some(id) = id {
            watched::displace(c, &now.path, id)?;
            self.forget_others(c, id)?;
        }
        let image = id.map(|id| images::get(c, id)).transpose()?.flatten();
        // Another renamed file may have displaced it.
        match image.filter(|image| image.in_place && own_path(&image.path) == file.path) {
            Some(image) => self.give_file(c, directory, (&image, &now.path), names),
            None => Ok(()),
        }
    }

    /// Forgets the files of an image that have other content, so that they are read again: a file
    /// belongs to the image of its own content.
    pub(super) fn forget_others(&self, c: &Connection, image: i64) -> Result<(), Error> {
        let others = watched::forget_others(c, Some(image))?;
        lock(&self.unknown_again).extend(others);
        Ok(())
    }

    /// Gives a file to an image. The image's name and folder follow it, unless the owner has chosen
    /// others.
    fn give_file(
        &self,
        c: &Connection,
        directory: &Directory,
        (image, to): (&Image, &Path),
        names: &Names,
    ) -> Result<(), Error> {
        watched::displace(c, to, image.id)?;
        let from = own_path(&image.path);
        let [before, after] = [from, to].map(|path| Name::of(path, image.format));
        let (before, after) = (before?.stem, after?.stem);
        let follows = image.name == before && before != after;
        let is_free = follows && !names.is_given(&after) && !images::has_name(c, &after)?;
        edits::set_path(c, image.id, to, is_free.then_some(&*after))?;
        if from.starts_with(&directory.path)
            && from.parent() != to.parent()
            && folder_of(c, directory, from, &|_, _| Ok(None))? == image.folder_id
        {
            edits::set_folder(c, image.id, self.folder(c, directory, to)?)?;
        }
        Ok(())
    }

    /// Handles another file with the content of an image. When the file is first seen, a copy in no
    /// folder moves to the directory's folder, as it was imported from there before.
    fn note_same(
        &self,
        c: &Connection,
        seen: &SeenFile,
        image: &Image,
        is_first: bool,
    ) -> Result<(), Error> {
        let there = images::get(c, image.id)?;
        let there = there.filter(|now| now.checksum == image.checksum);
        let Some(now) = there else {
            return Err(Error::NothingToDo);
        };
        if is_first && seen.directory.folders && !now.in_place && now.folder_id.is_none() {
            edits::set_folder(c, now.id, self.folder(c, &seen.directory, &seen.path)?)?;
        }
        Ok(())
    }

    pub(super) fn rewrite(
        &self,
        seen: &SeenFile,
        old: &Image,
        tools: Tools<'_>,
    ) -> Result<Imported, Error> {
        let (_, row, _) = self.describe_in_place(&seen.path, seen.checksum, None, tools)?;
        seen.check(tools)?;
        let others = self.store.write(|c| -> Result<_, Error> {
            let now = unchanged(c, old)?;
            edits::rewrite(c, &now, &row)?;
            // Other files may still have the old content, and become an image of their own.
            watched::forget(c, &seen.path)?;
            let others = watched::of_image(c, now.id)?;
            others
                .iter()
                .try_for_each(|file| watched::forget(c, file))?;
            seen.note(c, Some(now.id))?;
            Ok(others)
        })?;
        lock(&self.unknown_again).extend(others);
        self.rewritten(old)
    }

    pub(super) fn add(&self, seen: SeenFile, tools: Tools<'_>) -> Result<Prepared, Error> {
        let (name, row, note) = self.describe_in_place(&seen.path, seen.checksum, None, tools)?;
        seen.check(tools)?;
        Ok(seen.ready(InPlace::New { name, row, note }))
    }

    /// The folder for the directory of a file, created if it is missing.
    fn folder(
        &self,
        c: &Connection,
        directory: &Directory,
        file: &Path,
    ) -> Result<Option<i64>, Error> {
        folder_of(c, directory, file, &|name, parent| {
            let id = folders::insert(c, name, parent)?;
            watched::own_folder(c, id)?;
            self.folders_made.store(true, Ordering::Relaxed);
            Ok(Some(id))
        })
    }
}

/// May create a folder of this name in a parent folder.
type Make<'a> = dyn Fn(&str, Option<i64>) -> Result<Option<i64>, Error> + 'a;

/// The folder of a file; `make` is called for one that is missing.
fn folder_of(
    c: &Connection,
    directory: &Directory,
    file: &Path,
    make: &Make<'_>,
) -> Result<Option<i64>, Error> {
    if let Which::Named(folder) = directory.which {
        return Ok(folder.filter(|&id| folders::exists(c, id).unwrap_or(false)));
    }
    if !directory.folders {
        return Ok(None);
    }
    let own = directory.path.file_name().unwrap_or_default();
    let inside = file
        .parent()
        .and_then(|parent| parent.strip_prefix(&directory.path).ok());
    let names = std::iter::once(own).chain(inside.into_iter().flat_map(Path::iter));
    let mut at = None;
    for name in names.take(DEPTH_MAX) {
        let name = folder_name(&name.to_string_lossy());
        let found = match watched::folder(c, &name, at)? {
            Some(id) => Some(id),
            None => make(&name, at)?,
        };
        let Some(id) = found else { return Ok(None) };
        at = Some(id);
    }
    Ok(at)
}

/// A directory's name, made valid for a folder.
fn folder_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_control() { '_' } else { c })
        .collect();
    match name.trim() {
        "" => "_".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_have_no_control_characters() {
        for (name, expected) in [("sea", "sea"), (" a\tb ", "a_b"), ("\n", "_"), ("  ", "_")] {
            assert_eq!(folder_name(name), expected);
        }
    }
}
