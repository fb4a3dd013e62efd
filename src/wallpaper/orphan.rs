//! Images whose row or file is gone: what still refers to them is removed.

use std::path::Path;

use crate::error_chain::chain;
use crate::events::EventBus;
use crate::paths::{Presence, presence};
use crate::store::images;
use crate::store::purge::{self, Purged};
use crate::store::{self, Store};
use crate::wire::{Event, GalleryDomain, Image, OrphanReason};

use super::Error;

/// Whether the file of an image is gone for good. A library whose whole directory is away (a disk
/// that is not mounted) is not: it may come back, and nothing of it is forgotten.
pub(super) fn is_gone(image: &Image) -> bool {
    let has_directory = || image.home().parent().is_some_and(|home| !file_is_missing(home));
    // A link is the owner's doing: the disk that it leads to may be unmounted.
    presence(&image.path) == Presence::Missing && has_directory() && !image.path.is_symlink()
}

/// The same of an image's; a plain colour gets its own when it is shown.
pub(super) fn lacks_file(image: &Image) -> bool {
    image.library_id().is_some() && file_is_missing(&image.path)
}

/// Whether nobody can be given a file: its disk may only not answer.
pub(super) fn file_is_missing(path: &Path) -> bool {
    presence(path) != Presence::There
}

/// Whether a whole library is missing that was not empty: its disk is not mounted at its directory.
fn library_is_away(store: &Store, path: &Path) -> Result<bool, store::Error> {
    let directory = path.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    let is_empty = directory.is_some_and(|mut entries| entries.next().is_none());
    Ok(is_empty && store.read(images::count)? > 1)
}

/// An image that is gone, as it was seen outside of any transaction: every writer would wait for its
/// disk.
pub(super) struct MissingImage {
    image_id: i64,
    row: Option<Image>,
    given_back: u64,
}

impl MissingImage {
    /// None if the image is not gone.
    pub(super) fn look(store: &Store, image_id: i64) -> Result<Option<Self>, store::Error> {
        let given_back = store.given_back();
        let row = store.read(|connection| images::get(connection, image_id))?;
        if let Some(image) = &row
            // Images in place leave when the watcher of their directory says so.
            && (image.in_place || !is_gone(image) || library_is_away(store, image.home())?)
        {
            return Ok(None);
        }
        Ok(Some(Self { image_id, row, given_back }))
    }

    /// Removes every reference to it, and its row, if it is as it was.
    pub(super) fn purge(&self, store: &Store) -> Result<Option<Purged>, store::Error> {
        store.write(|transaction| {
            let row = images::get(transaction, self.image_id)?;
            // An image that was renamed, written again or restored is another one.
            match row == self.row && store.given_back() == self.given_back {
                true => purge::lost(transaction, self.image_id).map(Some),
                false => Ok(None),
            }
        })
    }
}

/// Removes every reference to the image, and its row, in one transaction; tells of it if there was
/// anything to remove. False where the image is not gone after all.
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
        let Some(seen) = MissingImage::look(store, image_id)? else { return Ok(false) };
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

/// Removes what refers to an image that a request found missing.
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
