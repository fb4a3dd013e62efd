//! What the last run noted in the database and did not finish: renames, and files on their way in or
//! out. The notes are taken before anybody is served, so that those of this run are never taken for
//! them; the files are removed later, by the thread `reconcile`. The database may have come from
//! elsewhere: outside of our directories only a file that is noted to the letter is removed.

use std::path::Path;

use super::Error;
use super::disk::{self, is_away, is_gone, stamp};
use super::edit::undo_renames;
use super::import_file::ImportContext;
use super::known::Known;
use crate::store::pending_files::{self, Pending};
use crate::store::{elsewhere, images};

pub(super) struct Leftovers {
    pending: Vec<Pending>,
}

impl Leftovers {
    /// Undoes the rename that the last run may have had in hand, and takes the notes. Rows whose copies
    /// lie elsewhere have no files from here on.
    pub(super) fn take(context: &ImportContext) -> Self {
        confine(context);
        // Where it does not answer, all of this waits for the next start.
        let pending = disk::answers_in(&context.directory)
            .and_then(|()| undo_renames(context))
            .and_then(|()| context.store.read(pending_files::list).map_err(Error::from))
            .inspect_err(|error| log::error!("what the last run left stays: {}", error.reason()));
        Self { pending: pending.unwrap_or_default() }
    }

    /// Removes the files, and then their notes.
    pub(super) fn clear(self, context: &ImportContext) -> Result<(), Error> {
        // Held until the notes are gone: whoever gets the name after that notes it anew.
        let held: Vec<_> = (self.pending.iter().filter(|note| !is_away(&note.path)))
            .filter_map(|note| Some((note, context.names.try_hold(&stem(&note.path), &note.path)?)))
            .collect();
        let mut done = Vec::new();
        for (note, _) in &held {
            // A row is the stronger word.
            let has_row = context.store.read(|c| images::has_path(c, &note.path))?;
            let known = left(context, note).filter(|_| !has_row);
            let was_there = !is_gone(&note.path);
            match known.map(|known| known.is_removed(&note.path)) {
                Some(true) if was_there => {
                    log::info!("removed {}, which was half in the library", note.path.display());
                }
                Some(false) => continue,
                _ => {}
            }
            done.push(*note);
        }
        if done.is_empty() {
            return Ok(());
        }
        context.store.write(|c| {
            // Its row may have been deleted since, and then the note is that deletion's.
            let settled = |note: &Pending| {
                let there = left(context, note).is_some() && !is_gone(&note.path);
                Ok(!there || images::has_path(c, &note.path)?)
            };
            done.iter().try_for_each(|note| match settled(note) {
                Ok(true) => pending_files::unmark(c, &note.path),
                other => other.map(drop),
            })
        })?;
        Ok(())
    }
}

fn confine(context: &ImportContext) {
    let directory = &context.directory;
    let is_ours = |path: &Path| context.is_in_library(path);
    match context.store.write(|c| elsewhere::confine(c, directory, &is_ours)) {
        Ok(0) => {}
        Ok(away) => log::warn!(
            "{away} pictures of the library are not in {}: they are neither shown nor deleted",
            directory.display()
        ),
        Err(error) => log::error!("the library's paths cannot be checked: {error}"),
    }
}

/// What is to be removed of what a note speaks of; none where that is another file by now.
fn left(context: &ImportContext, note: &Pending) -> Option<Known> {
    let ours = context.is_ours(&note.path);
    let Ok(meta) = note.path.symlink_metadata() else { return ours.then_some(Known::File) };
    let now = stamp(&meta);
    // A package that is half removed was written since.
    let is_it = match &note.stamp {
        Some(noted) => noted.inode == now.inode && (meta.is_dir() || noted.same_written(&now)),
        None => ours,
    };
    match (is_it, meta.is_dir()) {
        (true, true) if ours => Some(Known::Package),
        (true, false) => Some(Known::This(now)),
        _ => {
            log::info!("{} is not what was to be removed: it stays", note.path.display());
            None
        }
    }
}

/// The name under which a file of the library is reserved.
fn stem(path: &Path) -> String {
    // A dot in a package's name is a part of it.
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}
