//! Removes images with everything that refers to them, and their files.
//!
//! Every file in place is compared with what murald knows ([`ExpectedFile`]) before any row is removed.
//! One transaction removes the rows and notes the files as pending. Then the files are removed or moved
//! to the trash, and the notes last. After a kill or a power failure in between, the next start reads
//! the notes and does the same; each note identifies one file, so no other file of that name is removed.
//! A file that cannot be removed stays where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::disk;
use super::file_removal::{ExpectedFile, Outcome, clear, clear_own};
use super::{Error, Library};
use crate::store::purge::{self, Gone};
use crate::store::{self, Connection, folders, pending_files, watched};
use crate::wire::{DeleteImages, GalleryDomain};

/// A file to remove.
type Going = (PathBuf, ExpectedFile);

/// The files of images in place.
type InPlace = BTreeMap<i64, Vec<Going>>;

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
        let (removed, ()) = self.take_out(Which::These(&asked.ids), files, |_| Ok(()))?;
        Ok(removed)
    }

    /// Removes rows, then their files. `then` is called at the end of the transaction.
    pub(super) fn take_out<T>(
        &self,
        which: Which<'_>,
        files: Files,
        then: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<(Removed, T), Error> {
        let mut known = InPlace::new();
        if files.in_place {
            let gone = self
                .store
                .read(|c| Gone::would_be(c, &which.ids(c)?, files.in_place))?;
            known = self.known(&gone)?;
        }
        let (gone, leaving, done) = self.store.write(|c| -> Result<_, Error> {
            let gone = purge::delete(c, &which.ids(c)?, files.in_place)?;
            let leaving = going(&gone, &known)?;
            self.leave(c, &leaving, files.trash)?;
            Ok((gone, leaving, then(c)?))
        })?;
        let removed = Removed {
            images: gone.count(),
            files: self.discard(&gone, leaving, files.trash),
        };
        Ok((removed, done))
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

    /// Notes the files as pending, at the end of the transaction: no new file may have such a path, or
    /// it might be removed instead. Fails if a file is no longer the one that was seen.
    fn leave(&self, c: &Connection, going: &[Going], trash: bool) -> Result<(), Error> {
        for (path, known) in going {
            // A file elsewhere that is not in place is not removed.
            let is_meant = matches!(known, ExpectedFile::This(_)) || self.context.is_ours(path);
            if let Some(stamp) = known.look(path)?.filter(|_| is_meant) {
                pending_files::mark_removed(c, path, &stamp, trash)?;
            }
        }
        Ok(())
    }

    /// Removes the files, thumbnails and previews after the transaction, and publishes the changes.
    fn discard(&self, gone: &Gone, files: Vec<Going>, trash: bool) -> Outcome {
        let Gone {
            images, references, ..
        } = gone;
        images
            .iter()
            .for_each(|image| self.thumbnails.remove(image));
        let outcome = clear(&self.context, files, trash);
        clear_own(&self.context, images.iter().filter_map(purge::preview));
        if gone.count() > 0 {
            self.changed(GalleryDomain::Images);
            references.domains().for_each(|domain| self.changed(domain));
        }
        outcome
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
        let outcome = clear(&self.context, going, trash);
        let mut removed = outcome.removed.iter();
        self.store
            .note(|c| removed.try_for_each(|path| watched::forget(c, path)))?;
        Ok(outcome)
    }
}
