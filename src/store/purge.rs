//! Rows of the library that go, with every reference to them.
//!
//! Functions over a connection, in whoever's transaction it is. They remove no file: what is to go
//! from the disk is noted in [`super::pending_files`], and cleared by the caller.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use super::{Error, assignments, history, images, watched};
use crate::wire::{GalleryDomain, Image};

/// References to an image that were removed with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Purged {
    pub monitor_states: usize,
    pub history_entries: usize,
    pub playlists: usize,
}

impl Purged {
    /// The collections beside the images that have changed.
    pub(crate) fn domains(&self) -> impl Iterator<Item = GalleryDomain> + use<> {
        let counts = [
            (self.playlists, GalleryDomain::Playlists),
            (self.history_entries, GalleryDomain::History),
        ];
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, domain)| domain)
    }
}

impl AddAssign for Purged {
    fn add_assign(&mut self, more: Self) {
        self.monitor_states += more.monitor_states;
        self.history_entries += more.history_entries;
        self.playlists += more.playlists;
    }
}

/// Removes an image's row, if it is there, with every reference to it. The preview that was made of
/// it is pending then; its file is the caller's.
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
    // A row that is missing already takes nothing with it.
    connection.prepare_cached("DELETE FROM playlist_image WHERE image_id = ?1")?.execute([id])?;
    let purged = Purged {
        monitor_states: assignments::purge_image(connection, id)?,
        history_entries: history::purge_image(connection, id)?,
        playlists: playlists.unsigned_abs() as usize,
    };
    connection.prepare_cached("DELETE FROM image WHERE id = ?1")?.execute([id])?;
    Ok(purged)
}

/// The same for an image whose file has gone: the files of its content in watched directories are not
/// dismissed, but imported again if they are found.
pub(crate) fn lost(connection: &Connection, id: i64) -> Result<Purged, Error> {
    watched::forget_image(connection, id)?;
    one(connection, id)
}

/// Whether rows without files are kept, over restarts too: the disk of their files may be unmounted.
pub(crate) fn is_guarded(connection: &Connection) -> Result<bool, Error> {
    Ok(connection.prepare_cached("SELECT 1 FROM library_guard")?.exists([])?)
}

pub(crate) fn set_guarded(connection: &Connection, on: bool) -> Result<(), Error> {
    connection.execute("DELETE FROM library_guard", [])?;
    connection.execute("INSERT INTO library_guard SELECT 1 WHERE ?1", [on])?;
    Ok(())
}

/// Images whose rows were removed, and what referred to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gone {
    pub images: Vec<Image>,
    pub references: Purged,
    /// Rows that cannot be read, and their files, if they are the library's.
    pub unreadable: Vec<(i64, Option<PathBuf>)>,
    /// Files in place go, too.
    pub with_files: bool,
}

impl Gone {
    /// The rows [`delete`] would remove.
    pub(crate) fn would_be(
        connection: &Connection,
        ids: &[i64],
        with_files: bool,
    ) -> Result<Self, Error> {
        let ids: Vec<i64> = BTreeSet::from_iter(ids.iter().copied()).into_iter().collect();
        let images = images::by_ids(connection, &ids)?;
        Ok(Self { images, with_files, ..Self::default() })
    }

    /// Whether the file of an image goes with it.
    pub(crate) fn takes(&self, image: &Image) -> bool {
        self.with_files || !image.in_place
    }
}

/// Removes rows with every reference to them. What they leave on the disk is the caller's to note as
/// pending in the same transaction, so that a kill before it is removed leaks nothing.
pub(crate) fn delete(
    connection: &Connection,
    ids: &[i64],
    with_files: bool,
) -> Result<Gone, Error> {
    let mut gone = Gone::would_be(connection, ids, with_files)?;
    for image in &gone.images {
        gone.references += one(connection, image.id)?;
    }
    for &id in BTreeSet::from_iter(ids) {
        let Some(file) = unreadable(connection, id)? else { continue };
        gone.references += one(connection, id)?;
        gone.unreadable.push((id, file));
    }
    Ok(gone)
}

/// The file of a row that is there still, and so cannot be read: none where it is in place, or may be a
/// package.
fn unreadable(connection: &Connection, id: i64) -> Result<Option<Option<PathBuf>>, Error> {
    let file = connection
        .prepare_cached(
            "SELECT iif(in_place OR web_meta IS NOT NULL, NULL, path) FROM image WHERE id = ?1",
        )?
        .query_row([id], |row| row.get::<_, Option<String>>(0))
        .optional()?;
    Ok(file.map(|file| file.map(PathBuf::from)))
}

/// An image's own paths, thumbnails apart: its file or package unless in place, and its preview.
pub(crate) fn on_disk(image: &Image) -> impl Iterator<Item = &Path> {
    own_file(image).chain(preview(image))
}

/// The preview that was made of it. A package's own lies in it.
pub(crate) fn preview(image: &Image) -> Option<&Path> {
    image.preview_path.as_deref().filter(|_| image.web_meta.is_none())
}

/// The removable file or package: never one in place.
fn own_file(image: &Image) -> impl Iterator<Item = &Path> {
    (!image.in_place).then(|| image.home()).into_iter()
}
