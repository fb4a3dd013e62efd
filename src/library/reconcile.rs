//! The thread `reconcile`: compares the library's directory with its rows once after each start, and
//! undoes the unfinished changes of the last run.
//!
//! Requests are served at the same time, so each row is read again in the transaction that changes it.
//! Only two kinds of file are removed: temporary ones, and those that the database notes as pending
//! ([`Leftovers`]). A file without a row was put there by its owner, or survived a lost database: it is
//! adopted, never deleted. A file that was renamed or rewritten keeps its row. [`guard`](super::guard)
//! decides about rows without files.
//!
//! Pending notes are read before the first request is served, so that notes of this run are not among
//! them. The database may come from another machine: outside murald's directories, only the exact file
//! of a note is removed.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TryRecvError};

use super::Error;
use super::context::ImportContext;
use super::departed::{AT_ONCE, purge};
use super::disk::{self, is_gone, lacks_directory, stamp};
use super::edit::undo_renames;
use super::file_removal::{ExpectedFile, flush_directories};
use super::guard::{Files, Row, judge};
use super::import::Message;
use super::name::Name;
use super::package::looks_like_package;
use super::walk::looks_like_picture;
use super::watch::Watching;
use crate::digest::Checksum;
use crate::memory;
use crate::store::edits::{self, Rename};
use crate::store::pending_files::{self, Pending};
use crate::store::{Connection, elsewhere, images, watched};

pub(super) struct Reconciler {
    pub(super) context: Arc<ImportContext>,
    pub(super) leftovers: Leftovers,
    /// Receives the files to adopt.
    pub(super) importer: Sender<Message>,
    pub(super) watching: Watching,
    /// Disconnected when the daemon exits.
    pub(super) end: Receiver<()>,
}

impl Reconciler {
    /// The body of the thread.
    pub(super) fn run(self) {
        let importer = self.importer.clone();
        match self.reconcile() {
            Ok(files) if files.is_empty() => {}
            Ok(files) => {
                log::info!(
                    "found {} new files in the library; importing them",
                    files.len()
                );
                // The send fails only if the daemon is exiting.
                importer.send(Message::Adopt { files }).ok();
            }
            Err(error) => {
                log::error!("cannot scan the library: {}", error.reason());
            }
        }
        // The rows of all images were in memory.
        memory::trim();
    }

    /// Returns the files to be adopted.
    fn reconcile(self) -> Result<Vec<PathBuf>, Error> {
        let (context, store) = (&*self.context, &self.context.store);
        // Only for an empty library: a new directory in place of an unmounted one would look as if its
        // files had been deleted.
        if store.read(images::count)? == 0 {
            disk::make_directory(&context.directory)?;
        }
        self.leftovers.clear(context)?;
        let goes_on = || self.end.try_recv() != Err(TryRecvError::Disconnected);
        let follow = |rows: &mut [_], files: &[_]| follow_owner(context, rows, files, goes_on);
        let verdict = context.guard.look(follow)?;
        if purge(context, &verdict.purge)? > 0 {
            // The original of a purged copy may still be in a watched directory.
            self.watching.scan();
        }
        // One read for each thumbnail: a long read would keep SQLite from truncating its log.
        let is_known = |hex: &str| store.read(|c| images::has_checksum(c, hex)).unwrap_or(true);
        context.thumbnails.sweep(is_known);
        // Finds files that their owner has rewritten, whose rows describe the old content. A rewritten
        // file of the same size is not noticed.
        let mut rewritten = store.read(images::sizes)?;
        rewritten.retain(|(path, size)| path.metadata().is_ok_and(|meta| meta.len() != *size));
        let fit = |path: &PathBuf| looks_like_picture(path) || looks_like_package(path);
        let is_ours = |path: &Path| {
            store.read(|c| {
                Ok::<_, Error>(images::has_path(c, path)? || pending_files::has(c, path)?)
            })
        };
        // Skips files that got a row or a pending note after the rows were read.
        let strangers = verdict.adopt.into_iter().filter(fit);
        strangers
            .filter_map(|path| {
                is_ours(&path)
                    .map(|ours| (!ours).then_some(path))
                    .transpose()
            })
            .chain(rewritten.into_iter().map(|(path, _)| Ok(path)))
            .collect()
    }
}

/// Gives rows with missing files the files that their owner has renamed, found by their content.
fn follow_owner(
    context: &ImportContext,
    rows: &mut [Row],
    files: &[PathBuf],
    goes_on: impl Fn() -> bool,
) -> Result<(), Error> {
    let verdict = judge(rows, &Files::seen(&context.directory, rows, files), false);
    let missing: HashSet<i64> = verdict.missing().into_iter().collect();
    let lost = rows
        .iter()
        .enumerate()
        .filter(|(_, (id, ..))| missing.contains(id));
    let lost: HashMap<Checksum, usize> = lost.map(|(at, (.., checksum))| (*checksum, at)).collect();
    let strangers = verdict.adopt.iter().filter(|_| !lost.is_empty());
    for path in strangers.filter(|path| path.is_file() && looks_like_picture(path)) {
        if !goes_on() {
            return Ok(());
        }
        // A file that cannot be read is reported when it is adopted.
        let size = path.metadata().map(|meta| meta.len()).unwrap_or_default();
        if !context.store.read(|c| images::has_size(c, size))? {
            continue;
        }
        let Ok(hashed) = context.imports.checksum(path) else {
            continue;
        };
        let Some((id, home, _)) = lost.get(&hashed.checksum).map(|&at| &mut rows[at]) else {
            continue;
        };
        // If two files have the content, the first gets the row.
        if is_gone(home) && renamed(context, *id, home, path)? {
            home.clone_from(path);
        }
    }
    Ok(())
}

/// Gives a row the present name of its file, if that is a valid and free name for a picture.
fn renamed(context: &ImportContext, id: i64, from: &Path, to: &Path) -> Result<bool, Error> {
    let Some(image) = context.store.read(|c| images::get(c, id))? else {
        return Ok(false);
    };
    let name = Name::of(to, image.format)?;
    let fits = to
        .file_name()
        .is_some_and(|own| own == &*name.file(&name.stem));
    // Another thread may be about to use the name for another picture.
    let Some(_held) = context.names.try_hold(&name.stem, to) else {
        return Ok(false);
    };
    let done = context.store.write(|c| -> Result<_, Error> {
        // Read again: clients may have renamed or deleted the image, or restored its file.
        let Some(image) = images::get(c, id)?.filter(|now| now.path == from && is_gone(from))
        else {
            return Ok(false);
        };
        let free = name.stem == image.name || !images::has_name(c, &name.stem)?;
        if !fits || !free || image.web_meta.is_some() {
            return Ok(false);
        }
        let moved = Rename {
            image_id: id,
            from: image.path.clone(),
            to: to.to_owned(),
        };
        edits::finish_rename(c, &image, &moved, &name.stem)?;
        context.store.count_returned(c);
        Ok(true)
    })?;
    if done {
        log::info!("{} was renamed to {}", from.display(), to.display());
    }
    Ok(done)
}

pub(super) struct Leftovers {
    pending: Vec<Pending>,
}

impl Leftovers {
    /// Forgets files with other content than their images, so that the first scan reads them. Undoes an
    /// unfinished rename of the last run, and reads the pending notes. Before that, marks rows
    /// whose copies are outside the library's directory, so that nothing touches those files.
    pub(super) fn take(context: &ImportContext) -> Self {
        confine(context);
        let pending = context
            .store
            .note(|c| watched::forget_others(c, None).map(drop))
            .map_err(Error::from)
            .and_then(|()| undo_renames(context))
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
    let (mut removed, mut held) = (Vec::new(), HashMap::new());
    for note in pending.iter().filter(|note| !lacks_directory(&note.path)) {
        // The name stays reserved until the note is removed, or the note of a new file with this name
        // might be removed instead.
        let stem = stem(&note.path);
        if let Entry::Vacant(place) = held.entry(stem) {
            let Some(name) = context.names.try_hold(place.key(), &note.path) else {
                continue;
            };
            place.insert(name);
        }
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
        match is_there && !images::has_path(c, &note.path)? {
            true => Ok(()),
            false => pending_files::unmark(c, &note.path),
        }
    };
    Ok(context
        .store
        .note(|c| removed.iter().try_for_each(|note| unmark(c, note)))?)
}

fn confine(context: &ImportContext) {
    let directory = &context.directory;
    let is_ours = |path: &Path| context.is_in_library(path);
    match context
        .store
        .write(|c| elsewhere::confine(c, directory, &is_ours))
    {
        Ok(0) => {}
        Ok(away) => log::warn!(
            "{away} images have paths outside {}; they are neither shown nor deleted",
            directory.display()
        ),
        Err(error) => log::error!("cannot check the paths of the library: {error}"),
    }
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

/// The name under which a file of the library is reserved.
fn stem(path: &Path) -> String {
    // A package's name has no extension.
    let name = if path.is_dir() {
        path.file_name()
    } else {
        path.file_stem()
    };
    name.unwrap_or_default().to_string_lossy().into_owned()
}
