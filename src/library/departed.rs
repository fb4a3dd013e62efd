//! Removes images whose files are gone: their rows, all references to these, and their thumbnails and
//! previews.
//!
//! Rows are read and removed in transactions; disks are looked at outside of these, since every writer
//! would wait for them.

use super::Error;
use super::context::ImportContext;
use super::file_removal::clear_own;
use crate::store::purge::{self, Purged};
use crate::store::{self, Connection, images};
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

/// Removes those images that are still marked as missing, with every reference to them, and publishes
/// the changes. Returns how many were removed.
pub(super) fn purge(context: &ImportContext, ids: &[i64]) -> Result<usize, Error> {
    let mut count = 0;
    for some in ids.chunks(AT_ONCE) {
        let gone = context.store.write(|c| -> Result<_, Error> {
            let (mut gone, missing) = (Departed::default(), images::missing(c)?);
            let still: Vec<i64> = some
                .iter()
                .copied()
                .filter(|id| missing.contains(id))
                .collect();
            for image in images::by_ids(c, &still)? {
                gone.end(c, image)?;
            }
            Ok(gone)
        })?;
        count += gone.images.len();
        for (image, purged) in &gone.images {
            log::warn!(
                "{} is missing; removed image {}",
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
