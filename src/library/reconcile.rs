//! At start: the library's directory and its rows agree again, whatever ended the last run.
//!
//! Removed are only files that are known to be ours and unfinished: temporary ones, and those that
//! the database notes as loose. A file that nobody knows was put there by its owner, or survived a
//! lost database: it is adopted, never deleted. A row whose file is gone is purged, unless its
//! directory is away, too, or empty of all of several: then a disk is not there, and the rows wait.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::disk::{TEMPORARY, remove};
use super::edit::undo_renames;
use super::intake::Shelf;
use super::package::looks_like_package;
use super::{Error, walk::looks_like_picture};
use crate::events::Hub;
use crate::store::images::{self, Checksum};
use crate::store::loose;
use crate::wire::{Event, GalleryDomain, OrphanReason};

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
    purge_missing(shelf, hub, &mut rows, &files)?;
    let checksums: HashSet<String> =
        rows.iter().map(|(.., checksum)| images::hex(checksum)).collect();
    shelf.thumbnails.sweep(|hex| checksums.contains(hex));
    let owned: HashSet<&Path> = rows.iter().map(|(_, path, _)| path.as_path()).collect();
    Ok(files
        .into_iter()
        .filter(|path| !owned.contains(path.as_path()))
        .filter(|path| looks_like_picture(path) || looks_like_package(path))
        .collect())
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
    rows: &mut Vec<(i64, PathBuf, Checksum)>,
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
fn missing(rows: &[(i64, PathBuf, Checksum)], files: &[PathBuf]) -> HashSet<i64> {
    let listed: HashSet<&Path> = files.iter().map(PathBuf::as_path).collect();
    let gone = |path: &Path| {
        !listed.contains(path)
            && matches!(path.symlink_metadata(), Err(e) if e.kind() == io::ErrorKind::NotFound)
    };
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

/// Its directory is not there: what is in it cannot be told.
pub(super) fn is_away(path: &Path) -> bool {
    path.parent().is_some_and(|home| !home.is_dir())
}
