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
    let is_of_library = image.library_id().is_some();
    is_of_library && (image.is_absent() || file_is_missing(&image.path))
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

/// Removes an image's row and all references to it in one transaction, and publishes what was removed.
/// Returns false if the image is not gone.
pub(super) fn purge(
    store: &Store,
    bus: &EventBus,
    image_id: i64,
    reason: OrphanReason,
) -> Result<bool, store::Error> {
    let row = store.read(|c| images::get(c, image_id))?;
    if let Some(image) = &row {
        // Images used in place are removed by the watcher of their directory.
        if image.in_place {
            return Ok(false);
        }
        let mark = |is_missing| store.write(|c| images::set_missing(c, &[image_id], is_missing));
        let was_marked = store.missing().contains(&image_id);
        // Before the disk is read: a thread that puts the file back removes the mark.
        mark(true)?;
        if !is_gone(image) || library_is_unmounted(store, image.home())? {
            if !was_marked || !file_is_missing(&image.path) {
                mark(false)?;
            }
            return Ok(false);
        }
    }
    let purged = store.write(|c| {
        let is_gone = row.is_none() || images::missing(c)?.contains(&image_id);
        is_gone.then(|| purge::lost(c, image_id)).transpose()
    })?;
    let Some(purged) = purged else {
        return Ok(false);
    };
    if purged == Purged::default() && row.is_none() {
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
    let images = row.map(|_| GalleryDomain::Images);
    for domain in images.into_iter().chain(purged.domains()) {
        bus.publish(&Event::GalleryChanged { domain });
    }
    Ok(true)
}

/// Marks a copy whose file a request did not find.
pub(super) fn mark_missing(store: &Store, error: &Error) {
    let Error::FileGone { id, .. } = error else {
        return;
    };
    let marked = store.read(|c| images::get(c, *id)).and_then(|image| {
        match image.filter(|image| !image.in_place && is_gone(image)) {
            Some(image) if !library_is_unmounted(store, image.home())? => {
                store.write(|c| images::set_missing(c, &[*id], true))
            }
            _ => Ok(()),
        }
    });
    if let Err(source) = marked {
        log::error!("cannot mark image {id} as missing: {}", chain(&source));
    }
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
