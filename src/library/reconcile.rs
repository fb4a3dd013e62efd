//! At start: the library's directory and its rows agree again, whatever ended the last run.
//!
//! Removed are only files that are known to be ours and unfinished: temporary ones, and those that
//! the database notes as loose. A file that nobody knows was put there by its owner, or survived a
//! lost database: it is adopted, never deleted, and one that was renamed keeps its row. A row whose file is gone is purged, unless its
//! directory is away, too, or empty of all of several: then a disk is not there, and the rows wait.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::disk::{TEMPORARY, checksum, open, remove};
use super::edit::undo_renames;
use super::intake::Shelf;
use super::name::Name;
use super::package::looks_like_package;
use super::{Error, walk::looks_like_picture};
use crate::events::Hub;
use crate::store::edits::{self, Rename};
use crate::store::images::{self, Checksum};
use crate::store::loose;
use crate::wire::{Event, GalleryDomain, OrphanReason};

/// An image's id, its file or package, and what is in it.
type Row = (i64, PathBuf, Checksum);

/// Returns the files to be adopted.
pub(super) fn reconcile(shelf: &Shelf, hub: &Hub) -> Result<Vec<PathBuf>, Error> {
    let mut rows = shelf.store.read(images::files)?;
    // An empty directory in the place of one that is away would look like one that was emptied.
    if rows.is_empty() {
        fs::create_dir_all(&shelf.directory).map_err(Error::file("make", &shelf.directory))?;
    }
    undo_renames(shelf)?;
    remove_loose(shelf)?;
    let files = list(&shelf.directory)?;
    follow_owner(shelf, &mut rows, &files)?;
    purge_missing(shelf, hub, &mut rows, &files)?;
    let checksums: HashSet<String> =
        rows.iter().map(|(.., checksum)| images::hex(checksum)).collect();
    shelf.thumbnails.sweep(|hex| checksums.contains(hex));
    let strangers = strangers(&rows, &files).into_iter();
    let fit = |path: &&PathBuf| looks_like_picture(path) || looks_like_package(path);
    Ok(strangers.filter(fit).cloned().collect())
}

/// Files without a row.
fn strangers<'a>(rows: &[Row], files: &'a [PathBuf]) -> Vec<&'a PathBuf> {
    let owned: HashSet<&Path> = rows.iter().map(|(_, path, _)| path.as_path()).collect();
    files.iter().filter(|path| !owned.contains(path.as_path())).collect()
}

/// Files that their owner has renamed keep their rows.
fn follow_owner(shelf: &Shelf, rows: &mut [Row], files: &[PathBuf]) -> Result<(), Error> {
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
        // What cannot be read is told of when it is looked at to be adopted.
        let size = path.metadata().map(|meta| meta.len()).unwrap_or_default();
        if !shelf.store.read(|c| images::has_size(c, size))? {
            continue;
        }
        let Ok(checksum) = open(path).and_then(|mut file| checksum(path, &mut file)) else {
            continue;
        };
        let Some((id, home, _)) = lost.get(&checksum).map(|&at| &mut rows[at]) else { continue };
        // Of two copies the first has it.
        if is_gone(home) && renamed(shelf, *id, path)? {
            home.clone_from(path);
        }
    }
    Ok(())
}

/// Gives a row the name that its file has now, if it is one that a picture can have.
fn renamed(shelf: &Shelf, id: i64, to: &Path) -> Result<bool, Error> {
    let Some(image) = shelf.store.read(|c| images::get(c, id))? else { return Ok(false) };
    let name = Name::of(to, image.format)?;
    let fits = to.file_name().is_some_and(|own| own == &*name.file(&name.stem));
    let free = name.stem == image.name || !shelf.store.read(|c| images::has_name(c, &name.stem))?;
    if !fits || !free || image.web_meta.is_some() {
        return Ok(false);
    }
    let moved = Rename { image_id: id, from: image.path.clone(), to: to.to_owned() };
    shelf.store.write(|c| edits::finish_rename(c, &image, &moved, &name.stem))?;
    log::info!("{} is {} now", image.path.display(), to.display());
    Ok(true)
}

/// Files on their way in or out when the last run ended.
fn remove_loose(shelf: &Shelf) -> Result<(), Error> {
    for path in shelf.store.read(loose::list)?.into_iter().filter(|path| !is_away(path)) {
        // A row is the stronger word.
        if !shelf.store.read(|c| images::has_path(c, &path))? {
            match remove(&path) {
                Ok(()) => log::info!("removed {}, which was half in the library", path.display()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    log::warn!("cannot remove {}: {error}", path.display());
                    continue;
                }
            }
        }
        shelf.store.write(|c| loose::unmark(c, &path))?;
    }
    Ok(())
}

/// The files and packages of the library's directory, sorted; temporary ones are removed on the
/// way.
fn list(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries.map_err(Error::file("list", directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(Error::file("list", directory))?;
        let Ok(kind) = entry.file_type() else { continue };
        if !kind.is_file() && !kind.is_dir() {
            continue;
        }
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY)) {
            if let Err(error) = remove(&entry.path()) {
                log::warn!("cannot remove {}: {error}", entry.path().display());
            }
        } else {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn purge_missing(
    shelf: &Shelf,
    hub: &Hub,
    rows: &mut Vec<Row>,
    files: &[PathBuf],
) -> Result<(), Error> {
    let missing = missing(rows, files);
    if missing.is_empty() {
        return Ok(());
    }
    for (id, path, _) in rows.extract_if(.., |(id, ..)| missing.contains(id)) {
        log::warn!("{} is gone: image {id} leaves the library", path.display());
        let purged = shelf.store.write(|c| images::purge(c, id))?;
        hub.publish(&Event::ImageOrphanPurged {
            image_id: id,
            reason: OrphanReason::FileMissing,
            monitor_states_purged: purged.monitor_states,
            history_entries_purged: purged.history_entries,
            playlists_affected: purged.playlists,
        });
    }
    hub.publish(&Event::GalleryChanged { domain: GalleryDomain::Images });
    // Their previews.
    remove_loose(shelf)
}

/// The images whose files are gone for good. Rows may lie in several directories, from when the
/// library's was another one.
fn missing(rows: &[Row], files: &[PathBuf]) -> HashSet<i64> {
    let listed: HashSet<&Path> = files.iter().map(PathBuf::as_path).collect();
    let gone = |path: &Path| !listed.contains(path) && is_gone(path);
    let mut homes: BTreeMap<&OsStr, (Vec<i64>, usize)> = BTreeMap::new();
    for (id, path, _) in rows {
        let home = path.parent().unwrap_or(path).as_os_str();
        let (missing, total) = homes.entry(home).or_default();
        *total += 1;
        missing.extend(gone(path).then_some(*id));
    }
    let mut all = HashSet::new();
    for (home, (missing, total)) in
        homes.into_iter().filter(|(_, (missing, _))| !missing.is_empty())
    {
        if !Path::new(home).is_dir() || (missing.len() == total && total > 1) {
            log::error!(
                "no picture of {total} is in {}: is its disk there?",
                Path::new(home).display()
            );
        } else {
            all.extend(missing);
        }
    }
    all
}

fn is_gone(path: &Path) -> bool {
    matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// Its directory is not there: what is in it cannot be told.
pub(super) fn is_away(path: &Path) -> bool {
    path.parent().is_some_and(|home| !home.is_dir())
}
