//! Images whose row or file is gone: what still refers to them is removed.

use std::path::Path;

use crate::events::Hub;
use crate::store::{self, Store};
use crate::wire::{Event, GalleryDomain, OrphanReason};

/// What a purge removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Purged {
    monitor_states: usize,
    history_entries: usize,
    playlists: usize,
    row: bool,
}

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
        Ok::<_, store::Error>(Purged {
            monitor_states: store::scene::purge_image(transaction, image_id)?,
            history_entries: store::history::purge_image(transaction, image_id)?,
            playlists: store::images::playlists_with(transaction, image_id)?,
            // Its place in playlists goes with the row.
            row: !store::images::delete(transaction, &[image_id])?.is_empty(),
        })
    })?;
    let nothing = Purged { monitor_states: 0, history_entries: 0, playlists: 0, row: false };
    if purged == nothing {
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
    if purged.row {
        hub.publish(&Event::GalleryChanged { domain: GalleryDomain::Images });
    }
    Ok(())
}
