//! Removes images with everything that refers to them, and their files.
//!
//! Every file in place is compared with what murald knows ([`ExpectedFile`]) before any row is removed.
//! One transaction on the thread `library` removes the rows and notes the files as pending. Then the
//! thread `remove` removes the files or moves them to the trash, and the notes last. After a kill or a
//! power failure in between, the next start reads the notes and does the same; each note identifies one
//! file, so no other file of that name is removed. A file that cannot be removed stays where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::batch::Reply;
use super::disk;
use super::file_removal::{ExpectedFile, Outcome, Removal, clear_own};
use super::landing::LibraryFiles;
use super::{Error, Library};
use crate::store::purge::{self, Gone};
use crate::store::{self, Connection, folders, pending_files, watched};
use crate::wire::{DeleteImages, Event, GalleryDomain};

/// A file to remove.
type Going = (PathBuf, ExpectedFile);

/// The files of images in place.
type InPlace = BTreeMap<i64, Vec<Going>>;

/// The images to delete.
#[derive(Clone)]
pub(super) enum Which {
    These(Vec<i64>),
    /// All in a folder and in those inside it.
    In(i64),
}

impl Which {
    fn ids(&self, c: &Connection) -> Result<Vec<i64>, store::Error> {
        match self {
            Self::These(ids) => Ok(ids.clone()),
            Self::In(folder) => folders::images_below(c, *folder),
        }
    }
}

/// Which files are removed with their rows, and whether they go to the trash.
#[derive(Clone, Copy)]
pub(super) struct Files {
    pub(super) in_place: bool,
    pub(super) trash: bool,
}

/// What a deletion did.
#[derive(Default)]
pub struct Removed {
    pub images: usize,
    pub files: Outcome,
}

impl Library {
    /// Removes images with their files, thumbnails and every reference to them.
    pub fn delete(&self, asked: &DeleteImages) -> Result<Removed, Error> {
        let files = Files {
            in_place: asked.takes_files(),
            trash: asked.trash,
        };
        let (removed, ()) = self.take_out(Which::These(asked.ids.clone()), files, |_| Ok(()))?;
        Ok(removed)
    }

    /// Removes rows, then their files. `then` is called at the end of the transaction.
    pub(super) fn take_out<T: Send + 'static>(
        &self,
        which: Which,
        files: Files,
        then: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<(Removed, T), Error> {
        let mut known = InPlace::new();
        if files.in_place {
            let gone = self
                .store
                .read(|c| Gone::would_be(c, &which.ids(c)?, files.in_place))?;
            known = self.known(&gone)?;
        }
        self.owner.hand(move |library, reply| {
            match library.take_rows(&which, files, &known, then) {
                Ok((images, going, done)) => library.remove(
                    going,
                    files.trash,
                    Box::new(move |outcome| {
                        reply(outcome.map(|files| (Removed { images, files }, done)));
                    }),
                ),
                Err(error) => reply(Err(error)),
            }
        })
    }

    /// The files in place to remove; fails if one is not the file that was seen. Called outside the
    /// transaction, as it may take a while.
    fn known(&self, gone: &Gone) -> Result<InPlace, Error> {
        let mut known = InPlace::new();
        for image in gone
            .images
            .iter()
            .filter(|image| image.in_place && gone.takes(image))
        {
            let mut files =
                BTreeSet::from_iter(self.store.read(|c| watched::of_image(c, image.id))?);
            files.insert(image.path.clone());
            for path in files {
                disk::answers(&path)?;
                let file = ExpectedFile::in_place(&self.context, image, &path)?;
                known.entry(image.id).or_default().push((path, file));
            }
        }
        Ok(known)
    }
}

impl LibraryFiles {
    /// Removes rows and notes their files; returns the number of images and the files to remove.
    fn take_rows<T>(
        &self,
        which: &Which,
        files: Files,
        known: &InPlace,
        then: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<(usize, Vec<Going>, T), Error> {
        // Only this thread sends removals, so there is still room after the transaction.
        if self.removals.is_full() {
            return Err(Error::Busy);
        }
        let (gone, going, done) = self.context.store.write(|c| -> Result<_, Error> {
            let gone = purge::delete(c, &which.ids(c)?, files.in_place)?;
            let going = going(&gone, known)?;
            self.note(c, &going, files.trash)?;
            Ok((gone, going, then(c)?))
        })?;
        let context = &self.context;
        let images = &gone.images;
        images
            .iter()
            .for_each(|image| context.thumbnails.remove(image));
        clear_own(context, images.iter().filter_map(purge::preview));
        let domain = (gone.count() > 0).then_some(GalleryDomain::Images);
        for domain in domain.into_iter().chain(gone.references.domains()) {
            context.bus.publish(&Event::GalleryChanged { domain });
        }
        Ok((gone.count(), going, done))
    }

    /// Notes the files as pending, at the end of the transaction: no new file may have such a path, or
    /// it might be removed instead.
    fn note(&self, c: &Connection, going: &[Going], trash: bool) -> Result<(), Error> {
        for (path, known) in going {
            let stamp = match known {
                // Compared again when it is removed: this thread reads no user's disk.
                ExpectedFile::This(stamp) => Some(*stamp),
                // A file elsewhere that is not in place is not removed.
                _ if !self.context.is_ours(path) => None,
                known => known.look(path)?,
            };
            if let Some(stamp) = stamp {
                pending_files::mark_removed(c, path, &stamp, trash)?;
            }
        }
        Ok(())
    }

    /// Has the thread `remove` remove files, and reply.
    fn remove(&self, files: Vec<Going>, trash: bool, reply: Reply<Outcome>) {
        if files.is_empty() {
            return reply(Ok(Outcome::default()));
        }
        let sent = self.removals.try_send(Removal {
            files,
            trash,
            reply,
        });
        if let Err(error) = sent {
            (error.into_inner().reply)(Err(Error::Busy));
        }
    }
}

/// The files to remove with these images; an error if one in place was moved since it was compared.
fn going(gone: &Gone, known: &InPlace) -> Result<Vec<Going>, Error> {
    let mut going = Vec::new();
    for image in gone.images.iter().filter(|image| gone.takes(image)) {
        if !image.in_place {
            going.push((image.home().to_owned(), ExpectedFile::copy(image)));
            continue;
        }
        let files = known
            .get(&image.id)
            .filter(|files| files.iter().any(|(path, _)| *path == image.path));
        let files = files.ok_or_else(|| Error::NotKnown {
            path: image.path.clone(),
        })?;
        going.extend(files.iter().cloned());
    }
    Ok(going)
}

impl Library {
    /// Removes files that stayed on the disk when their images were deleted, each with the others of the
    /// same content. Every file is compared with what murald knows before any is removed.
    pub(crate) fn remove_kept(&self, paths: &[PathBuf], trash: bool) -> Result<Outcome, Error> {
        let mut files = BTreeMap::new();
        for path in paths {
            let kept = self.store.read(|c| watched::kept(c, path))?;
            if kept.is_empty() {
                return Err(Error::NotKept { path: path.clone() });
            }
            files.extend(kept.into_iter().map(|file| (file.path.clone(), file)));
        }
        let known = |file: &watched::WatchedFile| {
            disk::answers(&file.path)?;
            Ok((file.path.clone(), ExpectedFile::kept(&self.context, file)?))
        };
        let going = files
            .values()
            .map(known)
            .collect::<Result<Vec<Going>, Error>>()?;
        let remove = move |library: &mut LibraryFiles, reply| library.remove(going, trash, reply);
        let outcome = self.owner.hand(remove)?;
        let mut removed = outcome.removed.iter();
        self.store
            .note(|c| removed.try_for_each(|path| watched::forget(c, path)))?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossbeam_channel::bounded;

    use super::*;
    use crate::library::tests::{Scene, png};
    use crate::store::images;

    /// Otherwise their files would stay until the next start.
    #[test]
    fn images_are_not_deleted_while_too_many_removals_wait() {
        let (scene, (removals, waiting)) = (Scene::new(), bounded(1));
        let alive = scene.start();
        alive.reconciled();
        let context = Arc::clone(alive.context());
        let file = scene.source("a.png", png(1));
        let prepared = context.prepare(&file, None, context.tools()).unwrap();
        let mut library = LibraryFiles::new(Arc::clone(&context), removals);
        let image = library.land_one(prepared).unwrap().image;
        let files = Files {
            in_place: false,
            trash: false,
        };
        let which = Which::These(vec![image.id]);
        library.remove(vec![], false, Box::new(|outcome| assert!(outcome.is_ok())));
        let going = vec![(image.path.clone(), ExpectedFile::File)];
        library.remove(going, false, Box::new(|_| ()));
        let delete =
            |library: &LibraryFiles| library.take_rows(&which, files, &InPlace::new(), |_| Ok(()));
        assert!(matches!(delete(&library), Err(Error::Busy)));
        assert_eq!(context.store.read(images::count).unwrap(), 1);
        assert_eq!(waiting.recv().unwrap().files.len(), 1);
        let (count, going, ()) = delete(&library).unwrap();
        assert_eq!((count, going), (1, vec![(image.path, ExpectedFile::File)]));
    }
}
