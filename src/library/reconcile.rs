//! Cleans up once after each start what the last run has left, and marks the images whose files are
//! missing. Runs on the thread `remove`.
//!
//! Requests are served at the same time. Only two kinds of file are removed: temporary ones, and those
//! that the database notes as pending ([`Leftovers`]). Other files without a row belong to the user and
//! are left alone; no row is removed.
//!
//! Pending notes are read before the first request is served, so that notes of this run are not among
//! them. The database may come from another machine: outside murald's directories, only the exact file
//! of a note is removed.

use super::Error;
use super::context::ImportContext;
use super::departed::AT_ONCE;
use super::disk::{self, is_gone, lacks_directory, stamp};
use super::edit::undo_renames;
use super::file_removal::{ExpectedFile, flush_directories};
use crate::memory;
use crate::store::pending_files::{self, Pending};
use crate::store::{Connection, images};

pub(super) fn run(context: &ImportContext, leftovers: Leftovers) {
    if let Err(error) = reconcile(context, leftovers) {
        log::error!("cannot scan the library: {}", error.reason());
    }
    // The rows of all images were in memory.
    memory::trim();
}

fn reconcile(context: &ImportContext, leftovers: Leftovers) -> Result<(), Error> {
    let store = &context.store;
    // Only for an empty library: a new directory in place of an unmounted one would look as if its
    // files had been deleted.
    if store.read(images::count)? == 0 {
        disk::make_directory(&context.directory)?;
    }
    leftovers.clear(context)?;
    context.mark_missing()?;
    // One read for each thumbnail: a long read would keep SQLite from truncating its log.
    let is_known = |hex: &str| store.read(|c| images::has_checksum(c, hex)).unwrap_or(true);
    context.thumbnails.sweep(is_known);
    Ok(())
}

pub(super) struct Leftovers {
    pending: Vec<Pending>,
}

impl Leftovers {
    /// Undoes an unfinished rename of the last run, and reads the pending notes.
    pub(super) fn take(context: &ImportContext) -> Self {
        let pending = undo_renames(context)
            .and_then(|()| context.store.read(pending_files::list).map_err(Error::from))
            .inspect_err(|error| {
                log::error!("cannot clean up after the last run: {}", error.reason())
            });
        Self {
            pending: pending.unwrap_or_default(),
        }
    }

    /// Removes the files, and then their notes.
    pub(super) fn clear(self, context: &ImportContext) -> Result<(), Error> {
        self.pending
            .chunks(AT_ONCE)
            .try_for_each(|some| clear(context, some))
    }
}

fn clear(context: &ImportContext, pending: &[Pending]) -> Result<(), Error> {
    let mut removed = Vec::new();
    for note in pending.iter().filter(|note| !lacks_directory(&note.path)) {
        // A file that has a row is kept, in spite of its note.
        let has_row = context.store.read(|c| images::has_path(c, &note.path))?;
        if let Some(known) = left(context, note).filter(|_| !has_row && !is_gone(&note.path)) {
            if let Err(error) = known.remove(&note.path, note.trash) {
                log::warn!("cannot remove {}: {error}", note.path.display());
                // Retried at the next start, unless it belongs to the user.
                if context.is_ours(&note.path) {
                    continue;
                }
            } else {
                log::info!("removed {}, which belongs to no image", note.path.display());
            }
        }
        removed.push(note);
    }
    flush_directories(removed.iter().map(|note| &*note.path))?;
    let unmark = |c: &Connection, note: &Pending| {
        // The row may have been deleted since; then the note belongs to that deletion.
        let is_there = left(context, note).is_some() && !is_gone(&note.path);
        if is_there && !images::has_path(c, &note.path)? {
            Ok(())
        } else {
            pending_files::unmark(c, &note.path)
        }
    };
    Ok(context
        .store
        .note(|c| removed.iter().try_for_each(|note| unmark(c, note)))?)
}

/// The file that a note says to remove; `None` if another file has replaced it.
fn left(context: &ImportContext, note: &Pending) -> Option<ExpectedFile> {
    let ours = context.is_ours(&note.path);
    let Ok(meta) = note.path.symlink_metadata() else {
        return ours.then_some(ExpectedFile::File);
    };
    let now = stamp(&meta);
    // A half-removed package has a new modification time: only its inode number is compared.
    let is_it = match &note.stamp {
        Some(noted) => noted.inode == now.inode && (meta.is_dir() || noted.same_written(&now)),
        None => ours,
    };
    match (is_it, meta.is_dir()) {
        (true, true) if ours => Some(ExpectedFile::Package),
        (true, false) => Some(ExpectedFile::This(now)),
        _ => {
            log::info!(
                "not removing {}: another file has this name now",
                note.path.display()
            );
            None
        }
    }
}
