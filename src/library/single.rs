//! One file or web package that is wanted at once, outside of any batch. Runs in the thread that asks,
//! which waits as long as copying and decoding take.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::turn::Turns;
use super::{Error, Library, disk};
use crate::store::images;
use crate::wire::{GalleryDomain, Image};

impl Library {
    /// The row of an image as its file is now, if there is one.
    pub(crate) fn image_now(&self, id: i64) -> Result<Option<Image>, Error> {
        let find = || self.store.read(|c| images::get(c, id));
        match find()? {
            Some(image) if image.in_place => {
                self.context.see_again(&image)?;
                Ok(find()?)
            }
            image => Ok(image),
        }
    }

    /// The image that a path means: the one that owns it or has its content, else a new one, in no
    /// folder.
    pub fn import_one(&self, source: &Path) -> Result<Image, Error> {
        disk::answers(source)?;
        disk::answers_in(&self.context.directory)?;
        let real = fs::canonicalize(source).map_err(Error::file("read", source))?;
        let find = || self.store.read(|c| images::by_path(c, &real));
        if let Some(image) = find()? {
            self.context.see_again(&image)?;
            if let Some(image) = find()? {
                return Ok(image);
            }
        }
        if real.is_dir() {
            return self.import_web(source, None);
        }
        let ended = || self.context.ended.load(Ordering::Relaxed);
        // A turn of its own: it lands when it is ready, whatever other imports do.
        let imported = self.context.import(source, None, &Turns::default().next(), &ended)?;
        if !imported.duplicate {
            self.changed(GalleryDomain::Images);
        }
        Ok(imported.image)
    }
}
