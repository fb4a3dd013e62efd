//! Deletes images: their rows, files, thumbnails and references. Runs on the calling thread.
//!
//! Every file is compared with what murald knows ([`ExpectedFile`]) before any file is removed. One
//! transaction removes the rows and notes the files as pending. Then the files are removed, and the
//! notes last. After a kill or a power failure in between, the next start reads the notes and removes
//! the files; each note identifies one file, so no other file of that name is removed. Files for the
//! trash are moved there before the transaction ends, and have no notes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;

use super::disk;
use super::file_removal::{ExpectedFile, Going, Trashed, clear};
use super::name::Reserved;
use super::{Error, Library};
use crate::store::purge::{self, Gone};
use crate::store::{self, Connection, folders, images, pending_files, watched};
use crate::wire::{DeleteImages, GalleryDomain, Image};

/// Files that are still to be removed after their rows, and the reserved names of their images. Until
/// then no new file may have such a name, or it might be removed instead.
type Leaving<'a> = (Vec<(PathBuf, ExpectedFile)>, Vec<Reserved<'a>>);

/// The files of images in place.
type InPlace = BTreeMap<i64, Vec<(PathBuf, ExpectedFile)>>;

/// The images to delete.
#[derive(Clone, Copy)]
pub(super) enum Which<'a> {
    These(&'a [i64]),
    /// All in a folder and in those inside it.
    In(i64),
}

impl Which<'_> {
    fn ids(self, c: &Connection) -> Result<Vec<i64>, store::Error> {
        match self {
            Self::These(ids) => Ok(ids.to_vec()),
            Self::In(folder) => folders::images_below(c, folder),
        }
    }

    /// Whether an image is still among them.
    fn has(self, c: &Connection, image: i64) -> Result<bool, store::Error> {
        match self {
            Self::These(_) => images::exists(c, image),
            Self::In(folder) => folders::is_below(c, image, folder),
        }
    }
}

/// Which files are removed with their rows, and whether they go to the trash.
#[derive(Clone, Copy)]
pub(super) struct Files {
    pub(super) in_place: bool,
    pub(super) trash: bool,
}

impl Library {
    /// Removes images with their files, thumbnails and every reference to them. Returns how many there
    /// were, and how many of their files are kept because they are in place.
    pub fn delete(&self, asked: &DeleteImages) -> Result<(usize, usize), Error> {
        let files = Files {
            in_place: asked.takes_files(),
            trash: asked.trash,
        };
        let (gone, ()) = self.take_out(Which::These(&asked.ids), files, |_| Ok(()))?;
        let kept = gone
            .images
            .iter()
            .filter(|image| !gone.takes(image))
            .count();
        Ok((gone.count(), kept))
    }

    /// Removes rows, then their files. `then` is called at the end of the transaction.
    pub(super) fn take_out<T>(
        &self,
        which: Which<'_>,
        files: Files,
        then: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<(Gone, T), Error> {
        let mut trashed = Trashed::new(&self.context);
        let mut known = BTreeMap::new();
        if files.in_place || files.trash {
            let gone = self
                .store
                .read(|c| Gone::would_be(c, &which.ids(c)?, files.in_place))?;
            known = self.known(&gone)?;
            if files.trash {
                self.trash(which, &gone, &known, &mut trashed)?;
            }
        }
        // Declared below `trashed`, whose drop takes this lock, too.
        let turn = files.trash.then(|| self.context.names.turn());
        let (gone, leaving, done) = self.store.write(|c| -> Result<_, Error> {
            let gone = purge::delete(c, &which.ids(c)?, files.in_place)?;
            let mut going = going(&gone, &known)?;
            if files.trash {
                // A file that was renamed or moved into the folder since the first pass still exists.
                going.drain(..).try_for_each(|going| trashed.take(&going))?;
            }
            let leaving = self.leaving(c, &gone, going)?;
            Ok((gone, leaving, then(c)?))
        })?;
        drop(turn);
        drop(trashed);
        self.discard(&gone, leaving);
        Ok((gone, done))
    }

    /// The files in place to remove; fails if one is not the file that was seen. Called before anything
    /// is moved, and outside the transaction, as it may take a while.
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

    /// Moves the files to the trash. Called before the transaction, so that other writers need not wait.
    fn trash(
        &self,
        which: Which<'_>,
        gone: &Gone,
        known: &InPlace,
        trashed: &mut Trashed<'_>,
    ) -> Result<(), Error> {
        for going in going(gone, known)? {
            // Locked for each file, so that other threads can rename, move and delete in between.
            let _turn = self.context.names.turn();
            if self.store.read(|c| which.has(c, going.0))? {
                trashed.take(&going)?;
            }
        }
        Ok(())
    }

    /// Notes the files as pending and reserves their names, at the end of the transaction. Fails if the
    /// files could not be removed, so that the rows stay with them.
    fn leaving(
        &self,
        c: &Connection,
        gone: &Gone,
        going: Vec<Going>,
    ) -> Result<Leaving<'_>, Error> {
        let directories: BTreeSet<_> = going
            .iter()
            .filter_map(|(_, path, _)| path.parent())
            .collect();
        for directory in directories {
            match rustix::fs::access(directory, Access::WRITE_OK) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => {
                    return Err(Error::file("remove files from", directory)(error.into()));
                }
            }
        }
        let mut files = Vec::with_capacity(going.len());
        for (_, path, known) in going {
            if let Some(stamp) = known.look(&path)? {
                pending_files::mark(c, &path, Some(&stamp))?;
            }
            files.push((path, known));
        }
        let hold = |image: &Image| self.context.names.hold(&image.name, image.home());
        Ok((files, gone.images.iter().map(hold).collect()))
    }

    /// Removes the files, thumbnails and previews after the transaction, and publishes the changes.
    fn discard(&self, gone: &Gone, (files, _names): Leaving<'_>) {
        let Gone {
            images, references, ..
        } = gone;
        images
            .iter()
            .for_each(|image| self.thumbnails.remove(image));
        // Waits until no other deletion is restoring a file from the trash.
        let turn = self.context.names.turn();
        let files = files.iter().map(|(path, known)| (&**path, *known));
        let previews = images
            .iter()
            .filter_map(purge::preview)
            .map(|path| (path, ExpectedFile::File));
        clear(&self.context, files.chain(previews));
        drop(turn);
        if gone.count() > 0 {
            self.changed(GalleryDomain::Images);
            references.domains().for_each(|domain| self.changed(domain));
        }
    }
}

/// The files to remove with these images; an error if one in place was moved since it was compared.
fn going(gone: &Gone, known: &InPlace) -> Result<Vec<Going>, Error> {
    let mut going = Vec::new();
    for image in gone.images.iter().filter(|image| gone.takes(image)) {
        if !image.in_place {
            going.push((image.id, image.home().to_owned(), ExpectedFile::copy(image)));
            continue;
        }
        let files = known
            .get(&image.id)
            .filter(|files| files.iter().any(|(path, _)| *path == image.path));
        let files = files.ok_or_else(|| Error::NotKnown {
            path: image.path.clone(),
        })?;
        going.extend(
            files
                .iter()
                .map(|(path, known)| (image.id, path.clone(), *known)),
        );
    }
    let copy = |(id, file): &(i64, Option<PathBuf>)| Some((*id, file.clone()?, ExpectedFile::File));
    going.extend(gone.unreadable.iter().filter_map(copy));
    Ok(going)
}

impl Library {
    /// Removes files that stayed on the disk when their images were deleted, each with the others of the
    /// same content. Every file is compared with what murald knows before any is removed. Returns how
    /// many there were.
    pub(crate) fn remove_kept(&self, paths: &[PathBuf], trash: bool) -> Result<usize, Error> {
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
            Ok((
                NOBODY,
                file.path.clone(),
                ExpectedFile::kept(&self.context, file)?,
            ))
        };
        let going = files
            .values()
            .map(known)
            .collect::<Result<Vec<Going>, Error>>()?;
        let mut trashed = Trashed::new(&self.context);
        let turn = self.context.names.turn();
        for one @ (_, path, known) in &going {
            match trash {
                true => trashed.take(one)?,
                false if known.is_removed(path) => {}
                false => return Err(not_removed(path)),
            }
            self.store.note(|c| watched::forget(c, path))?;
        }
        drop(turn);
        Ok(going.len())
    }
}

/// Not the id of any image, so that no file is restored from the trash.
const NOBODY: i64 = 0;

fn not_removed(path: &Path) -> Error {
    Error::file("remove", path)(std::io::Error::other("the log says why"))
}
