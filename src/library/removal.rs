//! Images on their way out. Runs on the thread that asks.
//!
//! One transaction removes the rows with every reference to them, and notes as pending what they leave
//! on the disk: files, packages, previews. Then the disk is cleared, and the notes go last. After a
//! kill or a power loss in between, the next start reads the notes and goes on. What is to be in the
//! trash is there before the transaction ends, and nothing is noted of it: whoever takes it out
//! again has it back. A note says which file it was: the next start removes no other of its name.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::Access;
use rustix::io::Errno;

use super::disk::{self, is_removed, stamp, sync_directory};
use super::name::Reserved;
use super::trash::Trashed;
use super::{Error, Library};
use crate::store::purge::{self, Gone};
use crate::store::{self, Connection, Store, folders, images, pending_files};
use crate::wire::{DeleteImages, GalleryDomain, Image};

/// Images without rows, whose files are still there, or in the trash.
pub(super) struct Leaving<'a> {
    gone: Gone,
    trashed: bool,
    /// Nobody else's until the files are gone: they would be taken for those.
    _names: Vec<Reserved<'a>>,
}

/// Which images are to leave.
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

    /// Whether one that was among them is so still, if it is there.
    fn has(self, c: &Connection, image: i64) -> Result<bool, store::Error> {
        match self {
            Self::These(_) => Ok(true),
            Self::In(folder) => folders::is_below(c, image, folder),
        }
    }
}

/// Which files go with their rows, and where to.
#[derive(Clone, Copy)]
pub(super) struct Files {
    pub(super) in_place: bool,
    pub(super) trash: bool,
}

impl Library {
    /// Removes images with their files, thumbnails and every reference to them; returns how many
    /// there were, and of how many the files stay: they are in place.
    pub fn delete(&self, asked: &DeleteImages) -> Result<(usize, usize), Error> {
        let files = Files { in_place: asked.takes_files(), trash: asked.trash };
        let (leaving, ()) = self.take_out(Which::These(&asked.ids), files, |_| Ok(()))?;
        let Gone { images, .. } = &leaving.gone;
        let kept = images.iter().filter(|image| !leaving.gone.takes(image)).count();
        Ok((self.discard(&leaving), kept))
    }

    /// Removes rows, and has what goes into the trash there; the rest is for [`Self::discard`]. `then`
    /// ends the transaction.
    pub(super) fn take_out<T>(
        &self,
        which: Which<'_>,
        files: Files,
        then: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<(Leaving<'_>, T), Error> {
        self.can_remove()?;
        let mut trashed = Trashed::default();
        let mut going = Gone::default();
        if files.in_place || files.trash {
            going = self.store.read(|c| Gone::would_be(c, &which.ids(c)?, files.in_place))?;
        }
        if files.in_place {
            homes(&going).try_for_each(disk::answers)?;
        }
        if files.trash {
            self.trash(which, &going, &mut trashed)?;
        }
        let turn = files.trash.then(|| self.context.names.turn());
        let (leaving, back, then) = self.store.write(|c| -> Result<_, Error> {
            let gone = purge::delete(c, &which.ids(c)?, files.in_place)?;
            let mut leaving = self.leaving(c, gone)?;
            if files.trash {
                // One that was renamed in between is still there, or one that came into the folder.
                for path in homes(&leaving.gone) {
                    trashed.take(path)?;
                    pending_files::unmark(c, path)?;
                }
                leaving.trashed = true;
            }
            Ok((leaving, staying(c, &going)?, then(c)?))
        })?;
        trashed.keep_but(&back);
        drop(turn);
        Ok((leaving, then))
    }

    /// Before the transaction: it may take a while, and no other writer is to wait for it.
    fn trash(&self, which: Which<'_>, going: &Gone, trashed: &mut Trashed) -> Result<(), Error> {
        for image in going.images.iter().filter(|image| going.takes(image)) {
            // Each by itself: others rename, move and delete in between.
            let _turn = self.context.names.turn();
            if self.store.read(|c| which.has(c, image.id))? {
                trashed.take(image.home())?;
            }
        }
        Ok(())
    }

    /// Before any transaction that ends with a look at the library's directory: every writer would
    /// wait for a disk that hangs.
    fn can_remove(&self) -> Result<(), Error> {
        disk::answers_in(&self.context.directory)
    }

    /// For the end of the transaction: until others see that the rows are gone, the names are taken
    /// anyway. Fails where the files could not follow, and the rows are to stay with them.
    fn leaving(&self, c: &Connection, gone: Gone) -> Result<Leaving<'_>, Error> {
        let ours = gone.images.iter().filter(|image| gone.takes(image));
        let directories: BTreeSet<_> = ours.filter_map(|image| image.home().parent()).collect();
        for directory in directories {
            match rustix::fs::access(directory, Access::WRITE_OK) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => {
                    return Err(Error::file("remove files from", directory)(error.into()));
                }
            }
        }
        for path in homes(&gone) {
            if let Ok(meta) = path.symlink_metadata() {
                pending_files::mark(c, path, Some(&stamp(&meta)))?;
            }
        }
        let hold = |image: &Image| self.context.names.hold(&image.name, image.home());
        let names = gone.images.iter().map(hold).collect();
        Ok(Leaving { gone, trashed: false, _names: names })
    }

    /// The part after the transaction; returns how many images went.
    pub(super) fn discard(&self, leaving: &Leaving<'_>) -> usize {
        let Gone { images, references, unreadable, .. } = &leaving.gone;
        images.iter().for_each(|image| self.thumbnails.remove(image));
        match leaving.trashed {
            // What has such a name by now is another.
            true => clear(&self.store, images.iter().filter_map(purge::preview)),
            false => clear(&self.store, leaving.gone.on_disk()),
        }
        let count = images.len() + unreadable.len();
        if count > 0 {
            self.changed(GalleryDomain::Images);
            references.domains().for_each(|domain| self.changed(domain));
        }
        count
    }
}

/// Of those that were to go, the files of images that have left the folder meanwhile: only they have
/// rows still.
fn staying<'a>(c: &Connection, going: &'a Gone) -> Result<Vec<&'a Path>, Error> {
    let mut homes = Vec::new();
    for image in &going.images {
        if images::exists(c, image.id)? {
            homes.push(image.home());
        }
    }
    Ok(homes)
}

/// The files and packages that go, and may go into the trash.
fn homes(gone: &Gone) -> impl Iterator<Item = &Path> {
    let unreadable = gone.unreadable.iter().filter_map(Option::as_deref);
    gone.images.iter().filter(|image| gone.takes(image)).map(Image::home).chain(unreadable)
}

/// Removes files that are noted as pending, and then their notes. Their rows are gone, which is what was
/// asked for: where this fails the notes stay, and the next start goes on.
pub(super) fn clear<'a>(store: &Store, paths: impl Iterator<Item = &'a Path>) {
    if let Err(error) = try_clear(store, paths) {
        log::warn!("what was removed is noted until the next start: {}", error.reason());
    }
}

fn try_clear<'a>(store: &Store, paths: impl Iterator<Item = &'a Path>) -> Result<(), Error> {
    let removed: Vec<&Path> = paths.filter(|path| is_removed(path)).collect();
    // The notes must not be forgotten before the removals are remembered.
    let directories: BTreeSet<_> = removed.iter().filter_map(|path| path.parent()).collect();
    // A cache that was deleted has nothing to remember.
    for directory in directories.into_iter().filter(|directory| directory.is_dir()) {
        sync_directory(directory)?;
    }
    store.note(|c| removed.iter().try_for_each(|path| pending_files::unmark(c, path)))?;
    Ok(())
}
