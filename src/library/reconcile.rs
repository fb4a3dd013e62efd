//! The thread `reconcile`, which ends when it is done: the library's directory and its rows agree
//! again, whatever ended the last run.
//!
//! Everybody is served meanwhile, so each row is looked at again in the transaction that changes it,
//! and nothing here holds a lock across a look at the disk but that one. Removed are only files that
//! are known to be ours and unfinished: temporary ones, and those that the database notes as pending
//! ([`Leftovers`]). A file that nobody knows was put there by its owner, or survived a lost database:
//! it is adopted, never deleted, and one that was renamed or written anew keeps its row. What
//! becomes of rows whose files are gone says [`missing`](super::missing).

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, TryRecvError};

use super::disk::{self, checksum, is_gone, open};
use super::guard::Guard;
use super::idle::Wake;
use super::import::Message;
use super::import_file::ImportContext;
use super::leftovers::Leftovers;
use super::missing::{Row, Verdict, purge};
use super::name::Name;
use super::package::looks_like_package;
use super::watch::Watching;
use super::{Error, walk::looks_like_picture};
use crate::digest;
use crate::digest::Checksum;
use crate::memory;
use crate::store::Store;
use crate::store::edits::{self, Rename};
use crate::store::images;
use crate::store::pending_files;

pub(super) struct Reconciler {
    pub(super) context: Arc<ImportContext>,
    pub(super) leftovers: Leftovers,
    pub(super) guard: Guard,
    /// Takes the files that are to be adopted.
    pub(super) importer: Sender<Message>,
    pub(super) watching: Watching,
    pub(super) wake: Wake,
    /// Closed when the daemon ends.
    pub(super) end: Receiver<()>,
}

impl Reconciler {
    /// The body of the thread.
    pub(super) fn run(self) {
        let (context, importer, wake) =
            (Arc::clone(&self.context), self.importer.clone(), self.wake.clone());
        match self.reconcile() {
            Ok(files) if files.is_empty() => {}
            Ok(files) => {
                log::info!("{} files in the library are not known: looking at them", files.len());
                // Gone, it has ended with the daemon.
                importer.send(Message::Adopt { files }).ok();
            }
            Err(error) => {
                log::error!("the library could not be looked through: {}", error.reason());
            }
        }
        // A path and a checksum of each row: in a large library most of what the daemon would hold.
        memory::trim();
        if context.store.read(images::count).is_ok_and(|images| images > 0) {
            // The last run may not have come round to all thumbnails.
            wake.send();
        }
    }

    /// Returns the files to be adopted.
    fn reconcile(self) -> Result<Vec<PathBuf>, Error> {
        let (context, store) = (&*self.context, &self.context.store);
        // Before the look: what changes meanwhile makes it stale, not wrong.
        let generation = store.generation();
        let mut rows = store.read(images::files)?;
        // An empty directory in the place of one that is away would look like one that was emptied.
        if rows.is_empty() {
            disk::make_directory(&context.directory)?;
        }
        self.leftovers.clear(context)?;
        let files = disk::list(&context.directory, context.run)?;
        let goes_on = || self.end.try_recv() != Err(TryRecvError::Disconnected);
        follow_owner(context, &mut rows, &files, goes_on)?;
        let verdict = Verdict::on(&rows, &files);
        self.guard.note(store, generation, &rows, &verdict);
        if purge(context, &verdict.purge)? > 0 {
            // What was a copy may have its file there still.
            self.watching.scan();
        }
        let gone: HashSet<i64> = verdict.purge.into_iter().collect();
        rows.retain(|(id, ..)| !gone.contains(id));
        let mut checksums: Vec<&Checksum> = rows.iter().map(|(.., checksum)| checksum).collect();
        checksums.sort_unstable();
        // Digits sort as what they are the digits of.
        let compare =
            |sum: &Checksum, hex: &str| digest::hex_of(sum).as_flattened().cmp(hex.as_bytes());
        let had = |hex: &str| checksums.binary_search_by(|sum| compare(sum, hex)).is_ok();
        let imported = |hex: &str| store.read(|c| images::has_checksum(c, hex)).unwrap_or(true);
        context.thumbnails.sweep(|hex| had(hex) || imported(hex));
        let rewritten = rewritten(store)?;
        let strangers = strangers(&rows, &files).into_iter();
        let fit = |path: &&PathBuf| looks_like_picture(path) || looks_like_package(path);
        let is_ours = |path: &Path| {
            store.read(|c| {
                Ok::<_, Error>(images::has_path(c, path)? || pending_files::has(c, path)?)
            })
        };
        // What has landed since the rows were read, or is landing, is no stranger.
        strangers
            .filter(fit)
            .filter_map(|path| is_ours(path).map(|ours| (!ours).then(|| path.clone())).transpose())
            .chain(rewritten.into_iter().map(Ok))
            .collect()
    }
}

/// Files without a row.
fn strangers<'a>(rows: &[Row], files: &'a [PathBuf]) -> Vec<&'a PathBuf> {
    let owned: HashSet<&Path> = rows.iter().map(|(_, path, _)| path.as_path()).collect();
    files.iter().filter(|path| !owned.contains(path.as_path())).collect()
}

/// Files that their owner has written anew: their rows say what they were. One that has as many bytes
/// as before is not noticed.
fn rewritten(store: &Store) -> Result<Vec<PathBuf>, Error> {
    let mut sizes = store.read(images::sizes)?;
    sizes.retain(|(path, size)| path.metadata().is_ok_and(|meta| meta.len() != *size));
    Ok(sizes.into_iter().map(|(path, _)| path).collect())
}

/// Files that their owner has renamed keep their rows.
fn follow_owner(
    context: &ImportContext,
    rows: &mut [Row],
    files: &[PathBuf],
    goes_on: impl Fn() -> bool,
) -> Result<(), Error> {
    let strangers = strangers(rows, files);
    if strangers.is_empty() {
        return Ok(());
    }
    let lost: HashMap<Checksum, usize> = (rows.iter().enumerate())
        .filter(|(_, (_, path, _))| is_gone(path))
        .map(|(at, (.., checksum))| (*checksum, at))
        .collect();
    if lost.is_empty() {
        return Ok(());
    }
    for path in strangers.into_iter().filter(|path| path.is_file() && looks_like_picture(path)) {
        if !goes_on() {
            return Ok(());
        }
        // What cannot be read is told of when it is looked at to be adopted.
        let size = path.metadata().map(|meta| meta.len()).unwrap_or_default();
        if !context.store.read(|c| images::has_size(c, size))? {
            continue;
        }
        let Ok(checksum) = open(path).and_then(|mut file| checksum(path, &mut file, &|| false))
        else {
            continue;
        };
        let Some((id, home, _)) = lost.get(&checksum).map(|&at| &mut rows[at]) else { continue };
        // Of two copies the first has it.
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
        Ok(true)
    })?;
    if done {
        log::info!("{} is {} now", from.display(), to.display());
    }
    Ok(done)
}
