//! Folders: the library's side of the tree. Runs on the thread that asks.

use super::removal::{Files, Which};
use super::{Error, Library};
use crate::store::folders::{self, FolderChange, Refusal};
use crate::wire::{Event, Folder, GalleryDomain};

/// What a deleted folder took with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    pub images: usize,
    pub folders: usize,
}

impl Library {
    pub fn create_folder(&self, name: &str, parent: Option<i64>) -> Result<Folder, Refusal> {
        let folder = self.store.write(|c| {
            let id = folders::insert(c, name, parent)?;
            folders::get(c, id)?.ok_or(Refusal::NoFolder { id })
        })?;
        self.changed(GalleryDomain::Folders);
        Ok(folder)
    }

    pub fn change_folder(&self, id: i64, change: &FolderChange) -> Result<Folder, Refusal> {
        let (changed, folder) = self.store.write(|c| -> Result<_, Refusal> {
            let changed = folders::update(c, id, change)?;
            Ok((changed, folders::get(c, id)?.ok_or(Refusal::NoFolder { id })?))
        })?;
        if changed {
            self.changed(GalleryDomain::Folders);
        }
        Ok(folder)
    }

    /// Removes a folder; what is in it goes to its parent.
    pub fn dissolve_folder(&self, id: i64) -> Result<Deleted, Refusal> {
        let images = self.store.write(|c| folders::dissolve(c, id))?;
        if images > 0 {
            self.changed(GalleryDomain::Images);
        }
        self.changed(GalleryDomain::Folders);
        Ok(Deleted { images: 0, folders: 1 })
    }

    /// Removes a folder with all folders and images below it, and their files: into the trash, or for
    /// good. Files in place stay.
    pub fn delete_folder(&self, id: i64, trash: bool) -> Result<Deleted, Error> {
        let files = Files { in_place: false, trash };
        let (leaving, folders) = self.take_out(Which::In(id), files, |c| {
            if !folders::exists(c, id)? {
                return Err(Error::Folder(Refusal::NoFolder { id }));
            }
            Ok(folders::remove(c, id)?)
        })?;
        let images = self.discard(&leaving);
        self.changed(GalleryDomain::Folders);
        Ok(Deleted { images, folders })
    }

    /// Puts images into a folder, or with none at the root; returns how many there were.
    pub fn move_images(&self, images: &[i64], folder: Option<i64>) -> Result<usize, Refusal> {
        let moved = self.store.write(|c| folders::move_images(c, images, folder))?;
        if moved.came > 0 {
            self.changed(GalleryDomain::Images);
        }
        Ok(moved.there)
    }

    pub(super) fn changed(&self, domain: GalleryDomain) {
        self.bus.publish(&Event::GalleryChanged { domain });
    }
}
