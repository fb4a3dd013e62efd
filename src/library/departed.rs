//! Removes images whose files or rows are gone: their rows, all references to these, and their
//! thumbnails and previews.
//!
//! Rows are read and removed in transactions; disks are looked at outside of these, since every writer
//! would wait for them.

use super::Error;
use super::context::ImportContext;
use super::disk::{is_gone, lacks_directory};
use super::file_removal::clear_own;
use crate::paths::{Presence, presence};
use crate::store::purge::{self, Purged};
use crate::store::{self, Connection, images};
use crate::wire::{Event, GalleryDomain, Image, OrphanReason};

/// The number of rows that one transaction removes, so that other writers wait only tenths of a second.
pub(super) const AT_ONCE: usize = 500;

/// Images whose rows were removed, and the references that were removed with them.
#[derive(Default)]
pub(super) struct Departed {
    images: Vec<(Image, Purged)>,
    /// The references to images that had no row.
    references: Vec<(i64, Purged)>,
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

    /// Publishes that the images were removed because their files or rows are missing.
    fn tell_purged(&self, context: &ImportContext) {
        let publish = |image_id, reason, purged: &Purged| {
            log::warn!("removed image {image_id} ({reason}): {purged:?}");
            context.bus.publish(&Event::ImageOrphanPurged {
                image_id,
                reason,
                monitor_states_purged: purged.monitor_states,
                history_entries_purged: purged.history_entries,
                playlists_affected: purged.playlists,
            });
        };
        for (image, purged) in &self.images {
            publish(image.id, OrphanReason::FileMissing, purged);
        }
        for (id, purged) in &self.references {
            if *purged != Purged::default() {
                publish(*id, OrphanReason::RowMissing, purged);
            }
        }
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
        for (_, purged) in &self.references {
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

/// Removes those images that are still marked as missing, and the references to those without a row, and
/// publishes the changes. Returns how many images were removed.
pub(super) fn purge(context: &ImportContext, ids: &[i64]) -> Result<usize, Error> {
    let mut count = 0;
    for some in ids.chunks(AT_ONCE) {
        let gone = context.store.write(|c| -> Result<_, Error> {
            let mut gone = Departed::default();
            let missing = images::missing(c)?;
            for &id in some {
                match images::get(c, id)? {
                    Some(image) if missing.contains(&id) => gone.end(c, image)?,
                    None => gone.references.push((id, purge::lost(c, id)?)),
                    Some(_) => {}
                }
            }
            Ok(gone)
        })?;
        count += gone.images.len();
        gone.tell_purged(context);
        gone.tell(context);
    }
    Ok(count)
}

/// Marks a copy whose file a request did not find. If the user named the image, removes it, or what
/// refers to an image without a row. Runs on the thread `library`.
pub(super) fn lost(context: &ImportContext, id: i64, is_named: bool) -> Result<(), Error> {
    if let Some(image) = context.store.read(|c| images::get(c, id))? {
        // The threads of watched directories remove images in place. The disk that a link points to may
        // be unmounted.
        let is_lost = presence(&image.path) == Presence::Missing && is_gone(&image.path);
        if image.in_place || !is_lost || lacks_directory(image.home()) {
            return Ok(());
        }
        context.check_mounted(image.home().parent().unwrap_or(&context.directory))?;
        context
            .store
            .write(|c| images::set_missing(c, &[id], true))?;
    }
    if is_named {
        purge(context, &[id])?;
    }
    Ok(())
}
