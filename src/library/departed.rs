//! Removes images whose files are gone: their rows, all references to these, and their thumbnails and
//! previews.
//!
//! Rows are read and removed in transactions; disks are looked at outside of these, since every writer
//! would wait for them.

use super::Error;
use super::context::ImportContext;
use super::disk::is_gone;
use super::file_removal::clear_own;
use super::landing::unchanged;
use crate::store::purge::{self, Purged};
use crate::store::{self, Connection, Store, images};
use crate::wire::{Event, GalleryDomain, Image, OrphanReason};

/// The number of rows that one transaction removes, so that other writers wait only tenths of a second.
pub(super) const AT_ONCE: usize = 500;

/// Images whose rows were removed, and the references that were removed with them.
#[derive(Default)]
pub(super) struct Departed {
    images: Vec<(Image, Purged)>,
    /// Playlist entries that were given to another image.
    pub(super) passed_on: usize,
    /// Images that were given another file.
    pub(super) moved: usize,
}

impl Departed {
    /// Calls `end` for each of `all`, with [`AT_ONCE`] per transaction, and publishes the changes.
    pub(super) fn each<T>(
        context: &ImportContext,
        all: &[T],
        end: impl Fn(&Connection, &T, &mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for some in all.chunks(AT_ONCE) {
            let mut ended = Self::default();
            context
                .store
                .write(|c| some.iter().try_for_each(|one| end(c, one, &mut ended)))?;
            ended.tell(context);
        }
        Ok(())
    }

    /// Removes a row, with every reference to it.
    pub(super) fn end(&mut self, c: &Connection, image: Image) -> Result<(), store::Error> {
        let purged = purge::lost(c, image.id)?;
        self.images.push((image, purged));
        Ok(())
    }

    /// Removes the thumbnails and previews of the images, and publishes the changes.
    pub(super) fn tell(self, context: &ImportContext) {
        let mut references = Purged {
            playlists: self.passed_on,
            ..Purged::default()
        };
        for (image, purged) in &self.images {
            context.thumbnails.remove(image);
            references += *purged;
        }
        clear_own(
            context,
            self.images
                .iter()
                .filter_map(|(image, _)| purge::preview(image)),
        );
        let images = (self.images.len() + self.moved > 0).then_some(GalleryDomain::Images);
        for domain in images.into_iter().chain(references.domains()) {
            context.bus.publish(&Event::GalleryChanged { domain });
        }
    }
}

/// Removes the rows of those images whose files are missing, with every reference to them, and
/// publishes the changes. Returns how many were removed.
pub(super) fn purge(context: &ImportContext, ids: &[i64]) -> Result<usize, Error> {
    let mut count = 0;
    for some in ids.chunks(AT_ONCE) {
        let gone = loop {
            if let Some(gone) = MissingRows::look(&context.store, some)?.purge(&context.store)? {
                break gone;
            }
        };
        count += gone.images.len();
        for (image, purged) in &gone.images {
            log::warn!(
                "{} was deleted; removed image {}",
                image.home().display(),
                image.id
            );
            context.bus.publish(&Event::ImageOrphanPurged {
                image_id: image.id,
                reason: OrphanReason::FileMissing,
                monitor_states_purged: purged.monitor_states,
                history_entries_purged: purged.history_entries,
                playlists_affected: purged.playlists,
            });
        }
        gone.tell(context);
    }
    Ok(count)
}

/// Rows whose files were missing when their disk was last read.
struct MissingRows {
    images: Vec<Image>,
    returned_files: u64,
}

impl MissingRows {
    fn look(store: &Store, ids: &[i64]) -> Result<Self, Error> {
        let returned_files = store.returned_files();
        let mut images = store.read(|c| images::by_ids(c, ids))?;
        images.retain(|image| is_gone(image.home()));
        Ok(Self {
            images,
            returned_files,
        })
    }

    /// Removes the rows that have not changed since then. `None` if a missing file has returned since,
    /// as it may belong to one of the rows.
    fn purge(self, store: &Store) -> Result<Option<Departed>, Error> {
        store.write(|c| {
            if store.returned_files() != self.returned_files {
                return Ok(None);
            }
            let mut gone = Departed::default();
            for image in self.images {
                match unchanged(c, &image) {
                    Ok(_) => gone.end(c, image)?,
                    // An image that was renamed or rewritten has a file.
                    Err(Error::NothingToDo) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(Some(gone))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::store::edits::move_into_library;
    use crate::store::images::NewImage;
    use crate::wire::Format;

    /// Inserts rows of files that do not exist.
    fn rows(store: &Store, directory: &Path, names: &[&str]) -> Vec<i64> {
        let row = |(at, name): (usize, &&str)| NewImage {
            name: (*name).to_owned(),
            path: directory.join(name),
            format: Format::Png,
            width: 4,
            height: 3,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: 1,
            checksum: [at as u8; 32],
            colors: Vec::new(),
            hue_group: 99,
            folder_id: None,
            source_path: "/from".into(),
            in_place: false,
            web: None,
        };
        let insert = |row: &NewImage| store.write(|c| images::insert(c, row)).unwrap();
        names
            .iter()
            .enumerate()
            .map(row)
            .map(|row| insert(&row))
            .collect()
    }

    #[test]
    fn rows_are_purged_by_an_earlier_look_without_access_to_the_disk() {
        let (directory, store) = store::tests::scratch();
        let ids = rows(
            &store,
            directory.path(),
            &["there", "gone", "renamed", "hangs"],
        );
        std::fs::write(directory.path().join("there"), "").unwrap();
        let look = || MissingRows::look(&store, &ids).unwrap();
        let purged = |seen: MissingRows| -> Option<Vec<i64>> {
            let gone = seen.purge(&store).unwrap();
            gone.map(|gone| gone.images.iter().map(|(image, _)| image.id).collect())
        };
        let seen = look();
        let count = store.write(|c| -> Result<(), store::Error> {
            store.count_returned(c);
            Ok(())
        });
        count.unwrap();
        assert_eq!(purged(seen), None, "it may be the file of one of them");
        let seen = look();
        store
            .write(|c| move_into_library(c, ids[2], &directory.path().join("other")))
            .unwrap();
        // A look now would find this file, or wait for its disk.
        std::fs::write(directory.path().join("hangs"), "").unwrap();
        assert_eq!(purged(seen), Some(vec![ids[1], ids[3]]));
    }
}
