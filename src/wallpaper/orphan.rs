//! Removes images whose row or file is gone, and everything that refers to them.

use std::path::Path;

use crate::error_chain::chain;
use crate::events::EventBus;
use crate::paths::{Presence, presence};
use crate::store::images;
use crate::store::purge::{self, Purged};
use crate::store::{self, Store};
use crate::wire::{Event, GalleryDomain, Image, OrphanReason};

use super::Error;

/// Whether the file of an image is gone for good. If the whole directory is missing, the file may come
/// back, since the disk may not be mounted.
pub(super) fn is_gone(image: &Image) -> bool {
    let has_directory = || {
        image
            .home()
            .parent()
            .is_some_and(|home| !file_is_missing(home))
    };
    // The user made a symbolic link, and the disk that it points to may be unmounted.
    presence(&image.path) == Presence::Missing && has_directory() && !image.path.is_symlink()
}

/// Whether the file of an image in the library is missing. A plain colour gets its file when it is
/// shown.
pub(super) fn lacks_file(image: &Image) -> bool {
    image.library_id().is_some() && file_is_missing(&image.path)
}

/// Whether a file cannot be found now, possibly only because its disk does not answer.
pub(super) fn file_is_missing(path: &Path) -> bool {
    presence(path) != Presence::There
}

/// Whether the library's directory is empty although it should have several images, because its disk is
/// not mounted.
fn library_is_unmounted(store: &Store, path: &Path) -> Result<bool, store::Error> {
    let directory = path
        .parent()
        .and_then(|directory| std::fs::read_dir(directory).ok());
    let is_empty = directory.is_some_and(|mut entries| entries.next().is_none());
    Ok(is_empty && store.read(images::count)? > 1)
}

/// A missing image, looked for outside of any transaction: otherwise every writer would wait for its
/// disk.
pub(super) struct MissingImage {
    image_id: i64,
    row: Option<Image>,
    returned_files: u64,
}

impl MissingImage {
    /// Looks for an image; `None` if it is not gone.
    pub(super) fn look(store: &Store, image_id: i64) -> Result<Option<Self>, store::Error> {
        let returned_files = store.returned_files();
        let row = store.read(|connection| images::get(connection, image_id))?;
        if let Some(image) = &row
            // Images used in place are removed by the watcher of their directory.
            && (image.in_place || !is_gone(image) || library_is_unmounted(store, image.home())?)
        {
            return Ok(None);
        }
        Ok(Some(Self {
            image_id,
            row,
            returned_files,
        }))
    }

    /// Removes the image's row and all references to it, unless the image has changed since it was
    /// looked for.
    pub(super) fn purge(&self, store: &Store) -> Result<Option<Purged>, store::Error> {
        store.write(|transaction| {
            let row = images::get(transaction, self.image_id)?;
            // An image that was renamed, rewritten or restored is no longer the one that was missing.
            match row == self.row && store.returned_files() == self.returned_files {
                true => purge::lost(transaction, self.image_id).map(Some),
                false => Ok(None),
            }
        })
    }
}

/// Removes an image's row and all references to it in one transaction, and publishes what was removed.
/// Returns false if the image is not gone.
pub(super) fn purge(
    store: &Store,
    bus: &EventBus,
    image_id: i64,
    reason: OrphanReason,
) -> Result<bool, store::Error> {
    if reason == OrphanReason::FileMissing && store.keeps_rows() {
        return Ok(false);
    }
    let (purged, had_row) = loop {
        let Some(seen) = MissingImage::look(store, image_id)? else {
            return Ok(false);
        };
        if let Some(purged) = seen.purge(store)? {
            break (purged, seen.row.is_some());
        }
    };
    if purged == Purged::default() && !had_row {
        return Ok(true);
    }
    log::warn!("removed image {image_id} ({reason}): {purged:?}");
    bus.publish(&Event::ImageOrphanPurged {
        image_id,
        reason,
        monitor_states_purged: purged.monitor_states,
        history_entries_purged: purged.history_entries,
        playlists_affected: purged.playlists,
    });
    let images = had_row.then_some(GalleryDomain::Images);
    for domain in images.into_iter().chain(purged.domains()) {
        bus.publish(&Event::GalleryChanged { domain });
    }
    Ok(true)
}

/// Removes an image that a request found missing.
pub(super) fn purge_if_gone(store: &Store, bus: &EventBus, error: &Error) {
    let (id, reason) = match error {
        Error::NoImage { id } => (*id, OrphanReason::RowMissing),
        Error::FileGone { id, .. } => (*id, OrphanReason::FileMissing),
        _ => return,
    };
    if let Err(source) = purge(store, bus, id, reason) {
        log::error!("cannot remove image {id}: {}", chain(&source));
    }
}
