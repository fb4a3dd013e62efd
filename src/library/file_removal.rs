//! Removes single files, or moves them into the trash. A copy or package must be in a directory of
//! murald's; any other file must be exactly the one that was seen before.
//!
//! Runs on the calling thread. It never follows a link that has replaced the file, and keeps the
//! directory open between the check and the removal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use trash::TrashItem;
use trash::os_limited::{list, restore_all};

use super::Error;
use super::context::ImportContext;
use super::disk::{is_gone, stamp, sync_directory};
use crate::digest::Checksum;
use crate::store::watched::{self, Stamp, WatchedFile};
use crate::store::{images, pending_files};
use crate::sys::lock;
use crate::wire::Image;

/// The file that is expected at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedFile {
    /// Any file or link at the path, which is in a directory of murald's.
    File,
    /// A package (a directory) at the path, which is in a directory of murald's.
    Package,
    /// The file with this stamp, in any directory. For a link, the stamp is the link's own.
    This(Stamp),
}

impl ExpectedFile {
    /// The expected file of an image that is a copy.
    pub(super) fn copy(image: &Image) -> Self {
        if image.web_meta.is_some() {
            Self::Package
        } else {
            Self::File
        }
    }

    /// The expected file of a deleted image whose file stayed on the disk. Fails if the file is not the
    /// one that was seen.
    pub(super) fn kept(context: &ImportContext, file: &WatchedFile) -> Result<Self, Error> {
        Self::noted(
            context,
            &file.path,
            Some(file.stamp),
            file.checksum.as_ref(),
        )
    }

    /// The expected file of an image in place. Fails if the file is not the one that was seen, or if a
    /// link inside a watched directory leads to it. The content is read only if the file was never
    /// noted, or if nothing but its change time is new.
    pub(super) fn in_place(
        context: &ImportContext,
        image: &Image,
        path: &Path,
    ) -> Result<Self, Error> {
        let note = context.store.read(|c| watched::get(c, path))?;
        let note = note
            .filter(|note| note.image_id == Some(image.id))
            .map(|note| note.stamp);
        Self::noted(context, path, note, Some(&image.checksum))
    }

    fn noted(
        context: &ImportContext,
        path: &Path,
        note: Option<Stamp>,
        checksum: Option<&Checksum>,
    ) -> Result<Self, Error> {
        let another = || Error::NotKnown {
            path: path.to_owned(),
        };
        if leads_elsewhere(context, path) {
            return Err(another());
        }
        let own = path.symlink_metadata().map_err(|_| another())?;
        let file = path
            .metadata()
            .ok()
            .filter(Metadata::is_file)
            .ok_or_else(another)?;
        let now = stamp(&file);
        if note.is_some_and(|note| !note.is(&now)) {
            return Err(another());
        }
        if note != Some(now) {
            let found = context
                .decoder
                .checksum(path)
                .map_err(Error::decoding(path))?;
            if Stamp::from(found.meta) != now || checksum != Some(&found.checksum) {
                return Err(another());
            }
        }
        Ok(Self::This(stamp(&own)))
    }

    /// The stamp of the file at `path`; `None` if it is missing. Fails if another file is there.
    pub(super) fn look(self, path: &Path) -> Result<Option<Stamp>, Error> {
        match path.symlink_metadata() {
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(Error::file("read", path)(error)),
            Ok(meta) if self.fits(&meta) => Ok(Some(stamp(&meta))),
            Ok(_) => Err(Error::NotKnown {
                path: path.to_owned(),
            }),
        }
    }

    /// Removes the file or package; true if it is gone, also if it was gone before.
    pub(super) fn is_removed(self, path: &Path) -> bool {
        match self.remove(path) {
            Err(error) if !is_missing(&error) => {
                log::warn!("cannot remove {}: {error}", path.display());
                false
            }
            _ => true,
        }
    }

    fn remove(self, path: &Path) -> io::Result<()> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let directory = openat(CWD, directory, flags | OFlags::DIRECTORY, Mode::empty())?;
        let file = File::from(openat(
            &directory,
            name,
            flags | OFlags::NOFOLLOW,
            Mode::empty(),
        )?);
        if !self.fits(&file.metadata()?) {
            return Err(io::Error::other("it is no longer the file of the image"));
        }
        match self {
            Self::Package => fs::remove_dir_all(path),
            Self::File | Self::This(_) => Ok(unlinkat(&directory, name, AtFlags::empty())?),
        }
    }

    fn fits(self, meta: &Metadata) -> bool {
        match self {
            Self::File => meta.is_file() || meta.is_symlink(),
            Self::Package => meta.is_dir(),
            Self::This(seen) => !meta.is_dir() && seen == stamp(meta),
        }
    }
}

/// Whether a directory between the watched directory and the file is a link: its target may belong to
/// somebody else. The watched directory itself may be reached over links.
fn leads_elsewhere(context: &ImportContext, path: &Path) -> bool {
    let roots = lock(&context.roots).clone();
    let root = roots
        .iter()
        .filter(|root| path.starts_with(root))
        .max_by_key(|root| root.iter().count());
    let Some(root) = root else { return false };
    path.ancestors()
        .skip(1)
        .take_while(|above| above != root)
        .any(Path::is_symlink)
}

/// Whether the file is missing, or a directory of its path has become a file.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A file to remove with its image, or with a row that cannot be read.
pub(super) type Going = (i64, PathBuf, ExpectedFile);

/// Removes previews that are noted as pending, or copies, and then their notes.
pub(super) fn clear_own<'a>(context: &ImportContext, paths: impl Iterator<Item = &'a Path>) {
    clear(context, paths.map(|path| (path, ExpectedFile::File)));
}

/// Removes files that are noted as pending, then their notes. A failure is only logged, as the rows are
/// already removed: the notes stay, and the next start retries.
pub(super) fn clear<'a>(
    context: &ImportContext,
    files: impl Iterator<Item = (&'a Path, ExpectedFile)>,
) {
    if let Err(error) = try_clear(context, files) {
        log::warn!(
            "cannot finish removing files until the next start: {}",
            error.reason()
        );
    }
}

fn try_clear<'a>(
    context: &ImportContext,
    files: impl Iterator<Item = (&'a Path, ExpectedFile)>,
) -> Result<(), Error> {
    let may_go =
        |path: &Path, known| matches!(known, ExpectedFile::This(_)) || context.is_ours(path);
    let removed =
        |&(path, known): &(&Path, ExpectedFile)| !may_go(path, known) || known.is_removed(path);
    let removed: Vec<&Path> = files.filter(removed).map(|(path, _)| path).collect();
    flush_directories(removed.iter().copied())?;
    context.store.note(|c| {
        removed
            .iter()
            .try_for_each(|path| pending_files::unmark(c, path))
    })?;
    Ok(())
}

/// Flushes the directories of removed files, so that a power failure cannot bring back a file whose
/// note is already deleted.
pub(super) fn flush_directories<'a>(files: impl Iterator<Item = &'a Path>) -> Result<(), Error> {
    let directories: BTreeSet<_> = files.filter_map(Path::parent).collect();
    // A deleted cache directory has nothing to flush.
    let mut there = directories
        .into_iter()
        .filter(|directory| directory.is_dir());
    there.try_for_each(sync_directory)
}

/// Files that were moved into the trash. On drop, a file whose row still exists is restored: its row was
/// not removed after all, or is in another folder now.
pub(super) struct Trashed<'a> {
    context: &'a ImportContext,
    /// The original paths, as the trash records them, and their images; only files moved by this value.
    from: BTreeMap<PathBuf, i64>,
}

impl<'a> Trashed<'a> {
    pub(super) fn new(context: &'a ImportContext) -> Self {
        Self {
            context,
            from: BTreeMap::new(),
        }
    }

    /// Moves a file or package into the trash of its disk, else into the trash of the home. Skips a
    /// file that is already gone, or that its owner removes at the same time. The caller holds the
    /// rename lock ([`super::name::Names::turn`]): for a file that disappears during the move, the
    /// crate may leave an empty one in the trash.
    pub(super) fn take(&mut self, (id, path, known): &Going) -> Result<(), Error> {
        if known.look(path)?.is_none() {
            return Ok(());
        }
        let path = whole(path);
        match trash::delete(&path) {
            Err(_) if is_gone(&path) => {}
            Err(error) => return Err(Error::Trash { why: reason(error) }),
            Ok(()) => drop(self.from.insert(path, *id)),
        }
        Ok(())
    }

    /// The original paths of the files whose rows still exist. A row counts as existing if the database
    /// cannot be read, as its file is then better restored than in the trash.
    fn back(&self) -> Vec<&PathBuf> {
        let has_row = |id| {
            self.context
                .store
                .read(|c| images::exists(c, id))
                .unwrap_or(true)
        };
        let back = self
            .from
            .iter()
            .filter(|&(path, &id)| is_gone(path) && has_row(id));
        back.map(|(path, _)| path).collect()
    }
}

impl Drop for Trashed<'_> {
    fn drop(&mut self) {
        if self.from.is_empty() {
            return;
        }
        // Another thread that deletes one of these images for good waits for this lock before it looks
        // for the file.
        let _turn = self.context.names.turn();
        let back = self.back();
        if back.is_empty() {
            return;
        }
        let items = list().map(|items| newest(items, &back)).unwrap_or_default();
        if items.len() < back.len() {
            log::error!(
                "cannot find {} files in the trash",
                back.len() - items.len()
            );
        }
        // One call for each file: if another file is at its path, the others are still restored.
        for item in items {
            if let Err(error) = restore_all([item]) {
                log::error!("cannot restore a file from the trash: {}", reason(error));
            }
        }
    }
}

/// The path with the links of its directory resolved. The file itself may be a link and is not.
fn whole(path: &Path) -> PathBuf {
    let home = path.parent().and_then(|home| home.canonicalize().ok());
    match (home, path.file_name()) {
        (Some(home), Some(name)) => home.join(name),
        _ => path.to_owned(),
    }
}

/// The newest item for each path: the trash may hold older files from the same path.
fn newest(items: Vec<TrashItem>, from: &[&PathBuf]) -> Vec<TrashItem> {
    let age = |item: &TrashItem| {
        let written = Path::new(&item.id)
            .metadata()
            .and_then(|info| info.modified());
        (item.time_deleted, written.unwrap_or(SystemTime::UNIX_EPOCH))
    };
    let of = |path: &&PathBuf| {
        let same = items.iter().filter(|item| item.original_path() == **path);
        same.max_by_key(|item| age(item)).cloned()
    };
    from.iter().filter_map(of).collect()
}

/// The reason for the user: the crate's own messages are for programmers.
fn reason(error: trash::Error) -> String {
    match error {
        trash::Error::FileSystem { path, source } => format!("{}: {source}", path.display()),
        trash::Error::Unknown { description } => description,
        other => other.to_string(),
    }
}
