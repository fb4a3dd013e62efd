//! What the last run noted in the database and did not finish: renames, and files on their way in or
//! out. The notes are taken before anybody is served, so that those of this run are never taken for
//! them; the files are removed later, by the thread `reconcile`.

use std::path::Path;

use super::Error;
use super::disk::{self, is_away, is_gone, is_removed, stamp};
use super::edit::undo_renames;
use super::import_file::ImportContext;
use crate::store::images;
use crate::store::pending_files::{self, Pending};

pub(super) struct Leftovers {
    pending: Vec<Pending>,
}

impl Leftovers {
    /// Undoes the rename that the last run may have had in hand, and takes the notes.
    pub(super) fn take(context: &ImportContext) -> Self {
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
            if context.store.read(|c| images::has_path(c, &note.path))? || is_another(note) {
                done.push(*note);
                continue;
            }
            let was_there = !is_gone(&note.path);
            if is_removed(&note.path) {
                if was_there {
                    log::info!("removed {}, which was half in the library", note.path.display());
                }
                done.push(*note);
            }
        }
        if done.is_empty() {
            return Ok(());
        }
        context.store.write(|c| {
            // Its row may have been deleted since, and then the note is that deletion's.
            let settled = |note: &Pending| {
                let there = note.path.exists() && !is_another(note);
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

/// Whether somebody has given the name to another file since.
fn is_another(note: &Pending) -> bool {
    let (Some(noted), Ok(meta)) = (&note.stamp, note.path.symlink_metadata()) else { return false };
    let now = stamp(&meta);
    // A package that is half removed was written since.
    let another = noted.inode != now.inode || !(meta.is_dir() || noted.same_written(&now));
    if another {
        log::info!("{} is not what was to be removed: it stays", note.path.display());
    }
    another
}

/// The name under which a file of the library is reserved.
fn stem(path: &Path) -> String {
    // A dot in a package's name is a part of it.
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}
