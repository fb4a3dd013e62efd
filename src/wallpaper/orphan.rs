//! Images whose row or file is gone: what still refers to them is removed.

use std::path::Path;

use crate::events::Hub;
use crate::store::images::{self, Purged};
use crate::store::{self, Store};
use crate::wire::{Event, GalleryDomain, OrphanReason};

/// Whether the file of an image is gone for good. A library whose whole directory is away (a disk
/// that is not mounted) is not: it may come back, and nothing of it is forgotten.
pub(super) fn file_is_gone(path: &Path) -> bool {
    file_is_missing(path) && path.parent().is_some_and(|directory| !file_is_missing(directory))
}

pub(super) fn file_is_missing(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    matches!(found, Err(error) if error.kind() == std::io::ErrorKind::NotFound)
}

/// Removes every reference to the image, and its row, in one transaction; tells of it if there was
/// anything to remove.
pub(super) fn purge(
    store: &Store,
    hub: &Hub,
    image_id: i64,
    reason: OrphanReason,
) -> Result<(), store::Error> {
    let purged = store.write(|transaction| {
        let row = images::get(transaction, image_id)?;
        // Looked at again where nobody can rename it meanwhile.
        if row.as_ref().is_some_and(|image| !file_is_gone(&image.path)) {
            return Ok(None);
        }
        let purged = images::purge(transaction, image_id)?;
        Ok::<_, store::Error>(Some((purged, row.is_some())))
    })?;
    let Some((purged, had_row)) = purged else { return Ok(()) };
    if purged == Purged::default() && !had_row {
        return Ok(());
    }
    log::warn!("image {image_id} is purged ({reason}): {purged:?}");
    hub.publish(&Event::ImageOrphanPurged {
        image_id,
        reason,
        monitor_states_purged: purged.monitor_states,
        history_entries_purged: purged.history_entries,
        playlists_affected: purged.playlists,
    });
    if had_row {
        hub.publish(&Event::GalleryChanged { domain: GalleryDomain::Images });
    }
    Ok(())
}
