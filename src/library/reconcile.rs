//! Cleans up once after each start what the last run has left, and marks the images whose files are
//! missing. Runs on the thread `remove`.
//!
//! Requests are served at the same time. Only two kinds of file are removed: temporary ones, and those
//! that the database notes as pending ([`leftovers`]). Other files without a row belong to the user and
//! are left alone; no row is removed.
//!
//! Pending notes are read before the first request is served, so that notes of this run are not among
//! them. The database may come from another machine: outside murald's directories, only the exact file
//! of a note is removed.

use std::path::Path;

use super::Error;
use super::context::ImportContext;
use super::departed::AT_ONCE;
use super::disk::{self, is_gone, lacks_directory, stamp};
use super::edit::undo_renames;
use super::file_removal::{self, ExpectedFile, flush_directories};
use crate::memory;
use crate::store::pending_files::{self, Pending};
use crate::store::{self, images};

pub(super) fn run(context: &ImportContext, leftovers: &[Pending]) {
    if let Err(error) = reconcile(context, leftovers) {
        log::error!("cannot scan the library: {}", error.reason());
    }
    // The rows of all images were in memory.
    memory::trim();
}

fn reconcile(context: &ImportContext, leftovers: &[Pending]) -> Result<(), Error> {
    let store = &context.store;
    // Only for an empty library: a new directory in place of an unmounted one would look as if its
    // files had been deleted.
    if store.read(images::count)? == 0 {
        disk::make_directory(&context.directory)?;
    }
    for some in leftovers.chunks(AT_ONCE) {
        clear(context, some)?;
    }
    context.mark_missing()?;
    // One read for each thumbnail: a long read would keep SQLite from truncating its log.
    let is_known = |hex: &str| store.read(|c| images::has_checksum(c, hex)).unwrap_or(true);
    context.thumbnails.sweep(is_known);
    Ok(())
}

/// Undoes an unfinished rename of the last run, and reads its pending notes.
pub(super) fn leftovers(context: &ImportContext) -> Vec<Pending> {
    let pending = undo_renames(context)
        .and_then(|()| context.store.read(pending_files::list).map_err(Error::from));
    let failed =
        |error: &Error| log::error!("cannot clean up after the last run: {}", error.reason());
    pending.inspect_err(failed).unwrap_or_default()
}

/// Removes the files of these notes, and then the notes.
fn clear(context: &ImportContext, pending: &[Pending]) -> Result<(), Error> {
    let mut going = Vec::new();
    let mut kept: Vec<(&Path, bool)> = Vec::new();
    for note in pending.iter().filter(|note| !lacks_directory(&note.path)) {
        // A file that has a row is kept, in spite of its note.
        let has_row = context.store.read(|c| images::has_path(c, &note.path))?;
        // A missing file is not looked for again: another may get its name until then.
        match left(context, note).filter(|_| !has_row && !is_gone(&note.path)) {
            Some(known) => {
                let path = note.path.clone();
                log::info!("removing {}, which belongs to no image", path.display());
                going.push((note.trash, (path, known)));
            }
            None => kept.push((&note.path, has_row)),
        }
    }
    for trash in [false, true] {
        let some = going.extract_if(.., |(is_trash, _)| *is_trash == trash);
        file_removal::clear(context, some.map(|(_, file)| file), trash);
    }
    // They may have been removed a moment before the last run was killed.
    flush_directories(kept.iter().map(|(path, _)| *path))?;
    Ok(context.store.note(|c| {
        kept.iter().try_for_each(|(path, had_row)| {
            // The row may have been deleted since; then the note belongs to that deletion.
            if *had_row && !images::has_path(c, path)? {
                return Ok::<_, store::Error>(());
            }
            pending_files::unmark(c, path)
        })
    })?)
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
