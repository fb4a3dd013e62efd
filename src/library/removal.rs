//! Images on their way out. Runs on the thread that asks.
//!
//! One transaction removes the rows with every reference to them, and notes as pending what they leave
//! on the disk: files, packages, previews. Then the disk is cleared, and the notes go last. After a
//! kill or a power loss in between, the next start reads the notes and goes on. What is to be in the
//! trash is there before the transaction ends, and nothing is noted of it: whoever takes it out again has
//! it back. A note says which file it was: the next start removes no other of its name.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rustix::fs::Access;
use rustix::io::Errno;

use super::disk::{self, remove, stamp, sync_directory};
use super::name::Reserved;
use super::trash::Trashed;
use super::{Error, Library};
use crate::store::purge::{self, Gone};
use crate::store::{Connection, Store, pending_files};
use crate::wire::{DeleteImages, GalleryDomain, Image};

/// Images without rows, whose files are still there, or in the trash.
pub(super) struct Leaving<'a> {
    gone: Gone,
    trashed: bool,
    /// Nobody else's until the files are gone: they would be taken for those.
    _names: Vec<Reserved<'a>>,
}

impl Library {
    /// Removes images with their files, thumbnails and every reference to them; returns how many
    /// there were, and of how many the files stay: they are in place.
    pub fn delete(&self, asked: &DeleteImages) -> Result<(usize, usize), Error> {
        let mut trashed = Trashed::default();
        self.can_remove()?;
        if asked.takes_files() {
            let going = self.store.read(|c| Gone::would_be(c, &asked.ids, true))?;
            homes(&going).try_for_each(disk::answers)?;
        }
        if asked.trash {
            // Before the transaction: it may take a while, and no other writer is to wait for it.
            let going = self.store.read(|c| Gone::would_be(c, &asked.ids, asked.takes_files()))?;
            for path in homes(&going) {
                // Each by itself: others rename and delete in between.
                let _turn = self.context.names.turn();
                trashed.take(path)?;
            }
        }
        let turn = asked.trash.then(|| self.context.names.turn());
        let leaving = self.store.write(|c| -> Result<_, Error> {
            let mut leaving =
                self.leaving(c, purge::delete(c, &asked.ids, asked.takes_files())?)?;
            if asked.trash {
                // One that was renamed in between is still there.
                for path in homes(&leaving.gone) {
                    trashed.take(path)?;
                    pending_files::unmark(c, path)?;
                }
                leaving.trashed = true;
            }
            Ok(leaving)
        })?;
        drop(turn);
        trashed.keep();
        let Gone { images, .. } = &leaving.gone;
        let kept = images.iter().filter(|image| !leaving.gone.takes(image)).count();
        Ok((self.discard(&leaving), kept))
    }

    /// Before any transaction that ends with a look at the library's directory: every writer would
    /// wait for a disk that hangs.
    pub(super) fn can_remove(&self) -> Result<(), Error> {
        disk::answers_in(&self.context.directory)
    }

    /// For the end of the transaction: until others see that the rows are gone, the names are taken
    /// anyway. Fails where the files could not follow, and the rows are to stay with them.
    pub(super) fn leaving(&self, c: &Connection, gone: Gone) -> Result<Leaving<'_>, Error> {
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

/// What cannot be removed stays noted: the next start tries again.
fn is_removed(path: &Path) -> bool {
    match remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            log::warn!("cannot remove {}: {error}", path.display());
            false
        }
        _ => true,
    }
}
