//! Deletes images with all references to them.
//!
//! The functions run in the caller's transaction and remove no files. Files to be removed are
//! recorded in [`super::pending_files`]; the caller removes them.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::path::Path;

use rusqlite::Connection;

use super::{Error, assignments, history, images, watched};
use crate::wire::{GalleryDomain, Image};

/// Numbers of references that were removed with images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Purged {
    pub monitor_states: usize,
    pub history_entries: usize,
    pub playlists: usize,
}

impl Purged {
    /// Returns the collections other than images that have changed.
    pub(crate) fn domains(&self) -> impl Iterator<Item = GalleryDomain> + use<> {
        let counts = [
            (self.playlists, GalleryDomain::Playlists),
            (self.history_entries, GalleryDomain::History),
        ];
        counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(_, domain)| domain)
    }
}

impl AddAssign for Purged {
    fn add_assign(&mut self, more: Self) {
        self.monitor_states += more.monitor_states;
        self.history_entries += more.history_entries;
        self.playlists += more.playlists;
    }
}

/// Deletes an image's row, if there is one, and all references to it. Its generated preview becomes
/// pending; the caller handles its file.
pub(crate) fn one(connection: &Connection, id: i64) -> Result<Purged, Error> {
    let playlists: i64 = connection
        .prepare_cached(
            "SELECT count(DISTINCT playlist_id) FROM playlist_image WHERE image_id = ?1",
        )?
        .query_row([id], |row| row.get(0))?;
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO pending_file (path) SELECT preview_path FROM image \
             WHERE id = ?1 AND preview_path IS NOT NULL AND web_meta IS NULL",
        )?
        .execute([id])?;
    // References are removed even if the image's row is missing already.
    connection
        .prepare_cached("DELETE FROM playlist_image WHERE image_id = ?1")?
        .execute([id])?;
    let purged = Purged {
        monitor_states: assignments::purge_image(connection, id)?,
        history_entries: history::purge_image(connection, id)?,
        playlists: playlists.unsigned_abs() as usize,
    };
    connection
        .prepare_cached("DELETE FROM image WHERE id = ?1")?
        .execute([id])?;
    Ok(purged)
}

/// Like [`one`], for an image whose file is missing. If its watched files return, they are imported
/// again, because they are not marked as dismissed.
pub(crate) fn lost(connection: &Connection, id: i64) -> Result<Purged, Error> {
    watched::forget_image(connection, id)?;
    one(connection, id)
}

/// Deleted images and what referred to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gone {
    pub images: Vec<Image>,
    pub references: Purged,
    /// Whether files used in place are removed too.
    pub with_files: bool,
}

impl Gone {
    /// Returns the images that [`delete`] would delete.
    pub(crate) fn would_be(
        connection: &Connection,
        ids: &[i64],
        with_files: bool,
    ) -> Result<Self, Error> {
        let ids: Vec<i64> = BTreeSet::from_iter(ids.iter().copied())
            .into_iter()
            .collect();
        let images = images::by_ids(connection, &ids)?;
        Ok(Self {
            images,
            with_files,
            ..Self::default()
        })
    }

    /// How many images there were.
    pub(crate) fn count(&self) -> usize {
        self.images.len()
    }

    /// Whether the image's file is removed too.
    pub(crate) fn takes(&self, image: &Image) -> bool {
        self.with_files || !image.in_place
    }
}

/// Deletes images with all references to them. The caller marks their files as pending in the same
/// transaction, so that files are removed at the next start if the daemon is killed before.
pub(crate) fn delete(
    connection: &Connection,
    ids: &[i64],
    with_files: bool,
) -> Result<Gone, Error> {
    let mut gone = Gone::would_be(connection, ids, with_files)?;
    for image in &gone.images {
        gone.references += one(connection, image.id)?;
    }
    Ok(gone)
}

/// Returns the image's file or package unless used in place, and its preview; not its thumbnails.
pub(crate) fn on_disk(image: &Image) -> impl Iterator<Item = &Path> {
    own_file(image).chain(preview(image))
}

/// Returns the preview generated from the image. The preview of a package is part of it.
pub(crate) fn preview(image: &Image) -> Option<&Path> {
    image
        .preview_path
        .as_deref()
        .filter(|_| image.web_meta.is_none())
}

/// Returns the file or package if it may be removed, that is, not used in place.
fn own_file(image: &Image) -> impl Iterator<Item = &Path> {
    (!image.in_place).then(|| image.home()).into_iter()
}
