//! Marks the copies whose files are missing. Their rows stay until the user removes them: a missing file
//! may be on an unmounted disk.
//!
//! Looking runs on the calling thread and waits for the library's disk. A thread that puts a file back
//! removes the mark of its image in the same transaction, so a mark says that the file was looked for in
//! vain after the image last got one.

use std::path::{Path, PathBuf};

use super::Error;
use super::context::ImportContext;
use super::disk::{self, is_gone};
use crate::store::images;

impl ImportContext {
    /// Looks for the files of all copies, and marks those that are missing.
    pub(super) fn mark_missing(&self) -> Result<(), Error> {
        let rows = self.store.read(images::files)?;
        let listed = disk::list(&self.directory, self.run)?;
        let is_lost = |path: &PathBuf| !listed.contains(path) && is_gone(path);
        let (lost, there): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|(_, path, _)| is_lost(path));
        let before = self.store.missing();
        let lost_ids: Vec<i64> = lost.iter().map(|(id, ..)| *id).collect();
        let back: Vec<i64> = there
            .iter()
            .map(|(id, ..)| *id)
            .filter(|id| before.contains(id))
            .collect();
        let is_new = lost_ids.iter().any(|id| !before.contains(id));
        if is_new || !back.is_empty() {
            self.store.note(|c| {
                images::set_missing(c, &lost_ids, true)?;
                images::set_missing(c, &back, false)
            })?;
        }
        if is_new {
            log::warn!(
                "the files of {} images are missing; is the disk mounted? \
                 `murald library purge-missing` removes the images",
                lost.len()
            );
            // One that was put back before it was marked.
            let back = lost.iter().filter(|(_, path, _)| !is_gone(path));
            let back: Vec<i64> = back.map(|(id, ..)| *id).collect();
            self.store.note(|c| images::set_missing(c, &back, false))?;
        }
        Ok(())
    }

    /// Fails if a directory is missing or empty although several images lie in it: its disk is more
    /// likely unmounted than emptied.
    pub(super) fn check_mounted(&self, directory: &Path) -> Result<(), Error> {
        if disk::is_bare(directory)
            && self
                .store
                .read(|c| images::has_several_below(c, directory))?
        {
            return Err(Error::Unmounted {
                path: directory.to_owned(),
            });
        }
        Ok(())
    }
}
