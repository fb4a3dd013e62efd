//! The thread `reconcile`: compares the library's directory with its rows after a start, and ends. Also
//! undoes the unfinished changes of the last run.
//!
//! Requests are served at the same time, so each row is read again in the transaction that changes it.
//! Only two kinds of file are removed: temporary ones, and those that the database notes as pending
//! ([`Leftovers`]). A file without a row was put there by its owner, or survived a lost database: it is
//! adopted, never deleted. A file that was renamed or rewritten keeps its row. [`guard`](super::guard)
//! decides about rows without files.
//!
//! Pending notes are read before anybody is served, so that those of this run are not taken for them.
//! The database may come from another machine: outside of our directories only the exact file of a note
//! is removed.

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
use crate::store::edits::{self, Rename};
use crate::store::pending_files::{self, Pending};
use crate::store::{Connection, elsewhere, images};

pub(super) struct Reconciler {
    pub(super) context: Arc<ImportContext>,
    pub(super) leftovers: Leftovers,
    /// Takes the files that are to be adopted.
    pub(super) importer: Sender<Message>,
    pub(super) watching: Watching,
    /// Closed when the daemon ends.
    pub(super) end: Receiver<()>,
}

impl Reconciler {
    /// The body of the thread.
    pub(super) fn run(self) {
        let importer = self.importer.clone();
        match self.reconcile() {
            Ok(files) if files.is_empty() => {}
            Ok(files) => {
                log::info!("found {} new files in the library; importing them", files.len());
                // Gone, it has ended with the daemon.
                importer.send(Message::Adopt { files }).ok();
            }
            Err(error) => {
                log::error!("cannot scan the library: {}", error.reason());
            }
        }
    }

    /// Returns the files to be adopted.
    fn reconcile(self) -> Result<Vec<PathBuf>, Error> {
        let (context, store) = (&*self.context, &self.context.store);
        // An empty directory in the place of one that is away would look like one that was emptied.
        if store.read(images::count)? == 0 {
            disk::make_directory(&context.directory)?;
        }
        self.leftovers.clear(context)?;
        let goes_on = || self.end.try_recv() != Err(TryRecvError::Disconnected);
        let follow = |rows: &mut [_], files: &[_]| follow_owner(context, rows, files, goes_on);
        let verdict = context.guard.look(follow)?;
        if purge(context, &verdict.purge)? > 0 {
            // The original of a copy may still be there.
            self.watching.scan();
        }
        // A read for each: one for all would keep the database's log from being emptied.
        let is_known = |hex: &str| store.read(|c| images::has_checksum(c, hex)).unwrap_or(true);
        context.thumbnails.sweep(is_known);
        // Files that their owner has rewritten: their rows describe the old content. A file of the same
        // size as before is not noticed.
        let mut rewritten = store.read(images::sizes)?;
        rewritten.retain(|(path, size)| path.metadata().is_ok_and(|meta| meta.len() != *size));
        let fit = |path: &PathBuf| looks_like_picture(path) || looks_like_package(path);
        let is_ours = |path: &Path| {
            store.read(|c| {
                Ok::<_, Error>(images::has_path(c, path)? || pending_files::has(c, path)?)
            })
        };
        // A file that was committed since the rows were read, or is about to be, is no stranger.
        let strangers = verdict.adopt.into_iter().filter(fit);
        strangers
            .filter_map(|path| is_ours(&path).map(|ours| (!ours).then_some(path)).transpose())
            .chain(rewritten.into_iter().map(|(path, _)| Ok(path)))
            .collect()
    }
}

/// Files that their owner has renamed keep their rows.
fn follow_owner(
    context: &ImportContext,
    rows: &mut [Row],
    files: &[PathBuf],
    goes_on: impl Fn() -> bool,
) -> Result<(), Error> {
    let verdict = judge(rows, &Files::seen(&context.directory, rows, files), false);
    let missing: HashSet<i64> = verdict.missing().into_iter().collect();
    let lost = rows.iter().enumerate().filter(|(_, (id, ..))| missing.contains(id));
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
        let Ok(hashed) = context.imports.checksum(path) else { continue };
        let Some((id, home, _)) = lost.get(&hashed.checksum).map(|&at| &mut rows[at]) else {
            continue;
        };
        // The first of two copies has it.
        if is_gone(home) && renamed(context, *id, home, path)? {
            home.clone_from(path);
        }
    }
    Ok(())
}

/// Gives a row the name that its file has now, if it is one that a picture can have.
fn renamed(context: &ImportContext, id: i64, from: &Path, to: &Path) -> Result<bool, Error> {
    let Some(image) = context.store.read(|c| images::get(c, id))? else { return Ok(false) };
    let name = Name::of(to, image.format)?;
    let fits = to.file_name().is_some_and(|own| own == &*name.file(&name.stem));
    // Somebody may be about to give it to another picture.
    let Some(_held) = context.names.try_hold(&name.stem, to) else { return Ok(false) };
    let done = context.store.write(|c| -> Result<_, Error> {
        // As it is by now: clients rename, delete and give files back.
        let Some(image) = images::get(c, id)?.filter(|now| now.path == from && is_gone(from))
        else {
            return Ok(false);
        };
        let free = name.stem == image.name || !images::has_name(c, &name.stem)?;
        if !fits || !free || image.web_meta.is_some() {
            return Ok(false);
        }
        let moved = Rename { image_id: id, from: image.path.clone(), to: to.to_owned() };
        edits::finish_rename(c, &image, &moved, &name.stem)?;
        context.store.count_given_back(c);
        Ok(true)
    })?;
    if done {
        log::info!("{} is {} now", from.display(), to.display());
    }
    Ok(done)
}

pub(super) struct Leftovers {
    pending: Vec<Pending>,
}

impl Leftovers {
    /// Undoes the rename that the last run may have had in hand, and takes the notes. Rows whose copies
    /// lie elsewhere have no files from here on.
    pub(super) fn take(context: &ImportContext) -> Self {
        confine(context);
        let pending = undo_renames(context)
            .and_then(|()| context.store.read(pending_files::list).map_err(Error::from))
            .inspect_err(|error| {
                log::error!("cannot clean up after the last run: {}", error.reason())
            });
        Self { pending: pending.unwrap_or_default() }
    }

    /// Removes the files, and then their notes.
    pub(super) fn clear(self, context: &ImportContext) -> Result<(), Error> {
        self.pending.chunks(AT_ONCE).try_for_each(|some| clear(context, some))
    }
}

fn clear(context: &ImportContext, pending: &[Pending]) -> Result<(), Error> {
    let (mut removed, mut held) = (Vec::new(), HashMap::new());
    for note in pending.iter().filter(|note| !lacks_directory(&note.path)) {
        // Held until the note is gone: the next file of that name has a note of its own.
        let stem = stem(&note.path);
        if let Entry::Vacant(place) = held.entry(stem) {
            let Some(name) = context.names.try_hold(place.key(), &note.path) else { continue };
            place.insert(name);
        }
        // A row is the stronger word.
        let has_row = context.store.read(|c| images::has_path(c, &note.path))?;
        if let Some(known) = left(context, note).filter(|_| !has_row && !is_gone(&note.path)) {
            if !known.is_removed(&note.path) {
                continue;
            }
            log::info!("removed {}, whose import was not finished", note.path.display());
        }
        removed.push(note);
    }
    flush_directories(removed.iter().map(|note| &*note.path))?;
    let unmark = |c: &Connection, note: &Pending| {
        // Its row may have been deleted since, and then the note is that deletion's.
        let is_there = left(context, note).is_some() && !is_gone(&note.path);
        match is_there && !images::has_path(c, &note.path)? {
            true => Ok(()),
            false => pending_files::unmark(c, &note.path),
        }
    };
    Ok(context.store.note(|c| removed.iter().try_for_each(|note| unmark(c, note)))?)
}

fn confine(context: &ImportContext) {
    let directory = &context.directory;
    let is_ours = |path: &Path| context.is_in_library(path);
    match context.store.write(|c| elsewhere::confine(c, directory, &is_ours)) {
        Ok(0) => {}
        Ok(away) => log::warn!(
            "{away} images are not in {}; they are neither shown nor deleted",
            directory.display()
        ),
        Err(error) => log::error!("cannot check the paths of the library: {error}"),
    }
}

/// The file of a note that is to be removed; none if another file is there by now.
fn left(context: &ImportContext, note: &Pending) -> Option<ExpectedFile> {
    let ours = context.is_ours(&note.path);
    let Ok(meta) = note.path.symlink_metadata() else { return ours.then_some(ExpectedFile::File) };
    let now = stamp(&meta);
    // A package that is half removed was written since.
    let is_it = match &note.stamp {
        Some(noted) => noted.inode == now.inode && (meta.is_dir() || noted.same_written(&now)),
        None => ours,
    };
    match (is_it, meta.is_dir()) {
        (true, true) if ours => Some(ExpectedFile::Package),
        (true, false) => Some(ExpectedFile::This(now)),
        _ => {
            log::info!("not removing {}: it is another file", note.path.display());
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
