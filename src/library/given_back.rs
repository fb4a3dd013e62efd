//! An image that has lost its file gets it again when its content is imported once more, with all that
//! its row has kept. Runs in the import workers.

use std::io;
use std::path::Path;

use super::Error;
use super::disk::{self, Copy, flush};
use super::import_file::ImportContext;
use super::landed::Imported;
use super::name::Name;
use crate::store::{edits, images, pending_files};
use crate::wire::{Event, GalleryDomain, Image};

impl ImportContext {
    /// Gives a copy to the image that has its content: where its file was, or, where that is no place in
    /// the library's directory, in this one.
    pub(super) fn give_back(
        &self,
        copy: Copy,
        name: &Name,
        imported: Imported,
    ) -> Result<Imported, Error> {
        let image = &imported.image;
        if !imported.has_lost_its_file() {
            return Ok(imported);
        }
        flush(&copy)?;
        match !image.in_place && image.path.parent() == Some(&self.directory) {
            true => self.put_back(copy, image)?,
            false => self.take_home(copy, name, image)?,
        }
        self.imported(image.id, true)
    }

    fn put_back(&self, mut copy: Copy, image: &Image) -> Result<(), Error> {
        // As a writer: until its end the image is neither renamed nor deleted.
        copy.kept = self.store.write(|c| {
            if !is_as_it_was(images::get(c, image.id)?.as_ref(), image) {
                return Ok(false);
            }
            match disk::rename(&copy.path, &image.path) {
                Ok(()) => {
                    self.store.count_given_back(c);
                    Ok(true)
                }
                // Another worker had a copy of it, too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(Error::file("rename", &copy.path)(error)),
            }
        })?;
        if copy.kept {
            self.tell_given_back(image, &image.path);
        }
        disk::sync_directory(&self.directory)
    }

    fn take_home(&self, mut copy: Copy, name: &Name, image: &Image) -> Result<(), Error> {
        let reserved = self.rename_to_free(&mut copy, name, None)?;
        disk::sync_directory(&self.directory)?;
        copy.kept = self.store.write(|c| -> Result<_, Error> {
            let is_so = is_as_it_was(images::get(c, image.id)?.as_ref(), image);
            if is_so {
                edits::take_home(c, image.id, &reserved.path)?;
                pending_files::unmark(c, &reserved.path)?;
            }
            Ok(is_so)
        })?;
        if copy.kept {
            self.tell_given_back(image, &reserved.path);
            return Ok(());
        }
        drop(copy);
        self.store.note(|c| pending_files::unmark(c, &reserved.path)).ok();
        Ok(())
    }

    fn tell_given_back(&self, image: &Image, path: &Path) {
        log::info!("{} had lost its file, and has {} now", image.name, path.display());
        self.bus.publish(&Event::GalleryChanged { domain: GalleryDomain::Images });
    }
}

/// Whether an image has the file still that it was seen to have lost, and the content.
fn is_as_it_was(now: Option<&Image>, seen: &Image) -> bool {
    now.is_some_and(|now| (&now.path, &now.checksum) == (&seen.path, &seen.checksum))
}
