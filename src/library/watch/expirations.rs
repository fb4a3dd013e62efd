//! Ends images whose files are gone for good, or have the content of another image (displaced images).
//!
//! Finds out which images and when, and removes or unites their rows. Runs in the thread `watch`; reads
//! rows, and no disk but the database's.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::super::Error;
use super::super::context::ImportContext;
use super::super::departed::{AT_ONCE, Departed};
use super::super::owner::Owner;
use super::super::task::{Directory, Which};
use super::directory::Watched;
use super::findings::{Difference, Findings, Scope, compare};
use super::settings::GRACE;
use crate::store::watched::WatchedFile;
use crate::store::{Connection, Store, edits, folders, images, watched};
use crate::wire::{Event, GalleryDomain, own_path};

#[derive(Default)]
pub(super) struct Expirations {
    /// Displaced images: the paths that they had, and since when they are displaced.
    displaced: HashMap<i64, (PathBuf, Instant)>,
    /// Whether `displaced` is up to date with the database.
    knows_displaced: bool,
    /// Whether the set of images with missing files may have changed.
    missing_changed: bool,
}

impl Expirations {
    /// Files were imported: other images may be displaced now.
    pub(super) fn on_taken(&mut self) {
        self.knows_displaced = false;
    }

    /// Other files are missing than before, or other directories are watched.
    pub(super) fn on_missing(&mut self) {
        self.missing_changed = true;
    }

    /// The differences between the findings and the known files. Updates the device numbers of files
    /// whose disk has a new one, and the paths of renamed files.
    pub(super) fn difference(
        &mut self,
        (context, owner): (&ImportContext, &Owner),
        directory: &Arc<Directory>,
        findings: &Findings,
        scope: &Scope,
    ) -> Result<Difference, Error> {
        let store = &context.store;
        let mut difference = compare(known(store, directory, scope)?, findings, scope);
        if !difference.renumbered.is_empty() {
            let mut renumbered = difference.renumbered.iter();
            store
                .note(|c| renumbered.try_for_each(|(path, d)| watched::set_device(c, path, *d)))?;
        }
        if let Some((file, now)) = difference.renamed.first() {
            let (count, from) = (difference.renamed.len(), file.path.display());
            let to = now.path.display();
            log::info!("updated the paths of renamed files ({count}): {from} is now {to}");
            rename_notes(owner, directory, &mut difference)?;
            // One of them may have replaced another file.
            self.knows_displaced &= difference.lost.is_empty();
            tell_folders(context);
            clear_folders(context)?;
            context.bus.publish(&Event::GalleryChanged {
                domain: GalleryDomain::Images,
            });
        }
        Ok(difference)
    }

    /// When the next displaced image's time is up.
    pub(super) fn due(&self) -> Option<Instant> {
        self.displaced
            .values()
            .map(|(_, since)| *since + GRACE)
            .min()
    }

    /// Ends the images whose time is up.
    pub(super) fn end_images(
        &mut self,
        context: &ImportContext,
        directories: &mut [Watched],
        now: Instant,
    ) -> Result<(), Error> {
        for one in directories.iter_mut().filter(|one| one.all_away) {
            if !one.leaving().is_empty() {
                one.missing.vanish();
            }
        }
        self.end_gone(context, directories)?;
        if !self.knows_displaced && directories.iter().all(Watched::is_at_rest) {
            let found = context.store.read(watched::displaced)?;
            self.knows_displaced = true;
            let before = std::mem::take(&mut self.displaced);
            let since = |id| before.get(&id).map_or(now, |(_, since)| *since);
            self.displaced = found
                .into_iter()
                .map(|(id, path)| (id, (path, since(id))))
                .collect();
        }
        let due = self
            .displaced
            .iter()
            .filter(|(_, (_, since))| *since + GRACE <= now);
        let due: Vec<(i64, PathBuf)> = due.map(|(id, (path, _))| (*id, path.clone())).collect();
        for (id, path) in due {
            // If this fails, it is retried after the same time.
            self.displaced.insert(id, (path.clone(), now));
            unite(context, id, &path)?;
            self.displaced.remove(&id);
        }
        Ok(())
    }

    fn end_gone(
        &mut self,
        context: &ImportContext,
        directories: &mut [Watched],
    ) -> Result<(), Error> {
        let leaving: Vec<PathBuf> = directories.iter().flat_map(Watched::leaving).collect();
        if leaving.is_empty() {
            return Ok(());
        }
        let gone: HashSet<&PathBuf> = leaving.iter().collect();
        let is_there = |path: &Path| {
            !gone.contains(&path.to_owned()) && !directories.iter().any(|one| one.missing.has(path))
        };
        Departed::each(context, &leaving, |c, path, ended| {
            leave_one(c, path, &is_there, ended)
        })?;
        clear_folders(context)?;
        for path in &leaving {
            directories.iter_mut().for_each(|one| one.left(path));
        }
        self.missing_changed = true;
        Ok(())
    }

    /// Sets the images that are skipped everywhere, as their files are missing.
    pub(super) fn tell_missing(
        &mut self,
        context: &ImportContext,
        directories: &[Watched],
    ) -> Result<(), Error> {
        if !std::mem::take(&mut self.missing_changed) {
            return Ok(());
        }
        let store = &context.store;
        let mut missing: HashSet<i64> = self.displaced.keys().copied().collect();
        for one in directories
            .iter()
            .filter(|one| one.is_away() || !one.missing.is_empty())
        {
            let all = store.read(|c| watched::images_below(c, one.path()))?;
            let is_away = |path: &Path| one.is_away() && one.task.has(path);
            let gone = all
                .into_iter()
                .filter(|(_, path)| one.missing.has(path) || is_away(path));
            missing.extend(gone.map(|(id, _)| id));
        }
        let before = store.read(watched::missing_in_place)?;
        if before != missing {
            store.note(|c| {
                images::set_missing(c, missing.difference(&before), true)?;
                images::set_missing(c, before.difference(&missing), false)
            })?;
        }
        Ok(())
    }
}

/// Updates the paths of renamed files. A file for which this fails is found by its content later, so
/// that it does not hold up others. If the database cannot be written, all of them wait: none may count
/// as gone.
fn rename_notes(
    owner: &Owner,
    directory: &Arc<Directory>,
    difference: &mut Difference,
) -> Result<(), Error> {
    let rename = |some: &[(WatchedFile, WatchedFile)]| {
        let (directory, some) = (Arc::clone(directory), some.to_vec());
        owner.slice(move |files| {
            let context = &files.context;
            let mut all = some.iter();
            context.store.write(|c| {
                all.try_for_each(|one| context.rename_note(c, &directory, one, &files.names))
            })
        })
    };
    let chunks = difference.renamed.chunks(AT_ONCE);
    let mut failed = HashMap::new();
    for one in chunks.filter(|some| rename(some).is_err()).flatten() {
        match rename(slice::from_ref(one)) {
            Ok(()) => {}
            Err(error) if error.is_storage() || matches!(error, Error::Busy | Error::Ended) => {
                return Err(error);
            }
            Err(error) => {
                let (from, why) = (one.0.path.display(), error.reason());
                log::warn!("cannot update the path of the image of {from}: {why}");
                failed.insert(one.1.path.clone(), one.clone());
            }
        }
    }
    difference
        .renamed
        .retain(|(_, now)| !failed.contains_key(&now.path));
    for (_, (file, now)) in failed {
        difference
            .lost
            .extend(file.image_id.map(|_| file.stamp.size));
        difference.changed.push((now.path, now.stamp));
        difference.gone.push(file);
    }
    Ok(())
}

/// The known files of a scope.
fn known(
    store: &Store,
    directory: &Directory,
    scope: &Scope,
) -> Result<Vec<watched::WatchedFile>, Error> {
    let paths = match (scope, &directory.which) {
        (Scope::Paths(paths), _) | (Scope::All, Which::Only(paths)) => paths,
        _ => return Ok(store.read(|c| watched::below(c, &directory.path))?),
    };
    // Names that are not UTF-8 are in no record. Paths inside a directory follow its own path, and
    // are found with it.
    let mut last: Option<&Path> = None;
    let paths = paths.iter().filter(|path| {
        let is_inside = last.is_some_and(|last| path.starts_with(last));
        if !is_inside {
            last = Some(path);
        }
        path.to_str().is_some() && !is_inside
    });
    let files = store.read(|c| {
        paths
            .map(|path| watched::below(c, path))
            .collect::<Result<Vec<_>, _>>()
    });
    Ok(files?.concat())
}

/// Whether all files are missing, of more than one: their disk is more likely unmounted than emptied.
pub(super) fn all_are_missing(store: &Store, one: &Watched) -> Result<bool, Error> {
    if !one.may_be_away() {
        return Ok(false);
    }
    let is_gone = |path: &Path| one.missing.has(path);
    let has = |path: &Path| one.task.has(path);
    let (missing, total) = store.read(|c| watched::missing_below(c, one.path(), &has, &is_gone))?;
    Ok(missing == total && total > 1)
}

/// Removes the image of a file from the library, or gives it another file with its content.
fn leave_one(
    c: &Connection,
    path: &Path,
    is_there: &dyn Fn(&Path) -> bool,
    ended: &mut Departed,
) -> Result<(), Error> {
    let Some(file) = watched::get(c, path)? else {
        return Ok(());
    };
    watched::forget(c, path)?;
    let image = file
        .image_id
        .map(|id| images::get(c, id))
        .transpose()?
        .flatten();
    let Some(image) = image.filter(|image| image.in_place && image.path == path) else {
        return Ok(());
    };
    let others = watched::of_image(c, image.id)?;
    match others.into_iter().find(|other| is_there(other)) {
        Some(other) => {
            edits::set_path(c, image.id, &other, None)?;
            ended.moved += 1;
        }
        None => {
            log::info!("{} was deleted; removed image {}", path.display(), image.id);
            ended.end(c, image)?;
        }
    }
    Ok(())
}

/// Removes a displaced image whose content has not been found again. The image that has its file now
/// gets its tags and its uses.
fn unite(context: &ImportContext, id: i64, path: &Path) -> Result<(), Error> {
    Departed::each(context, &[id], |c, &id, ended| {
        let still = watched::displaced(c)?.iter().any(|(one, _)| *one == id);
        let Some(image) = images::get(c, id)?.filter(|_| still) else {
            return Ok(());
        };
        let successor = watched::get(c, path)?.and_then(|file| file.image_id);
        let successor = successor
            .map(|id| images::get(c, id))
            .transpose()?
            .flatten();
        if let Some(successor) = successor {
            ended.passed_on += edits::unite(c, &image, &successor)?;
            context.forget_others(c, successor.id)?;
        }
        Ok(ended.end(c, image)?)
    })?;
    // Monitors that show the image now show the other one.
    context.tell_rewritten(id);
    Ok(())
}

/// Removes the images in place of a directory that is no longer watched; their files stay. What lies in
/// another watched directory is kept.
pub(super) fn forget(
    context: &ImportContext,
    directory: &Path,
    directories: &[Watched],
) -> Result<(), Error> {
    let is_watched = |path: &Path| {
        directories
            .iter()
            .any(|one| matches!(one.task.which, Which::All) && one.task.has(path))
    };
    let read = |c: &Connection| {
        Ok::<_, Error>((
            watched::images_below(c, directory)?,
            watched::below(c, directory)?,
        ))
    };
    let (mut images, mut files) = context.store.read(read)?;
    images.retain(|(_, path)| !is_watched(own_path(path)));
    Departed::each(context, &images, |c, (id, _), ended| {
        let Some(image) = images::get(c, *id)?.filter(|image| image.in_place) else {
            return Ok(());
        };
        match watched::of_image(c, *id)?
            .iter()
            .find(|file| is_watched(file))
        {
            Some(other) => {
                edits::set_path(c, *id, other, None)?;
                ended.moved += 1;
                Ok(())
            }
            None => Ok(ended.end(c, image)?),
        }
    })?;
    // Without the notes, a new watch of the directory imports all files again.
    files.retain(|file| !is_watched(&file.path));
    context.store.write(|c| {
        files
            .iter()
            .try_for_each(|file| watched::forget(c, &file.path))
    })?;
    clear_folders(context)
}

/// Publishes that folders were made for directories, if any were.
pub(super) fn tell_folders(context: &ImportContext) {
    if context.folders_made.swap(false, Ordering::Relaxed) {
        context.bus.publish(&Event::GalleryChanged {
            domain: GalleryDomain::Folders,
        });
    }
}

/// Removes folders that were made for directories and are empty.
fn clear_folders(context: &ImportContext) -> Result<(), Error> {
    let mut gone = 0;
    while !context.store.read(watched::empty_folders)?.is_empty() {
        gone += context.store.write(|c| -> Result<usize, Error> {
            let empty = watched::empty_folders(c)?;
            for &id in &empty {
                folders::remove(c, id)?;
            }
            Ok(empty.len())
        })?;
    }
    if gone > 0 {
        context.bus.publish(&Event::GalleryChanged {
            domain: GalleryDomain::Folders,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::tests::Scene;

    #[test]
    fn image_whose_expiration_fails_expires_later() {
        let scene = Scene::new();
        let alive = scene.start();
        alive.reconciled();
        let (context, now) = (&**alive.context(), Instant::now());
        let mut expirations = Expirations {
            knows_displaced: true,
            ..Expirations::default()
        };
        expirations.displaced.insert(7, ("/x".into(), now));
        let mut end = |at| {
            let ended = expirations.end_images(context, &mut [], at);
            (ended.is_ok(), expirations.due())
        };
        scene.damage("ALTER TABLE image RENAME TO away");
        assert_eq!(end(now + GRACE), (false, Some(now + 2 * GRACE)));
        scene.damage("ALTER TABLE away RENAME TO image");
        assert_eq!(end(now + 2 * GRACE), (true, None));
    }
}
