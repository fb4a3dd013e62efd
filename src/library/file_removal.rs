//! Removes single files, or moves them into the trash. A copy or package must be in a directory of
//! murald's; any other file must be exactly the one that was seen before.
//!
//! Runs on the thread `remove`; previews are removed on the calling thread. It never follows a link that
//! has replaced the file, and keeps the directory open between the check and the removal.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};

use super::Error;
use super::batch::Reply;
use super::context::ImportContext;
use super::disk::{is_missing, stamp, sync_directory};
use crate::digest::Checksum;
use crate::error_chain::plain;
use crate::store::pending_files;
use crate::store::watched::{self, Stamp, WatchedFile};
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
    /// noted, or if nothing but its times is new.
    pub(super) fn in_place(
        context: &ImportContext,
        image: &Image,
        path: &Path,
    ) -> Result<Self, Error> {
        let note = context.store.read(|c| watched::get(c, path))?;
        let note = note.filter(|note| note.image_id == Some(image.id));
        match note {
            Some(note) if note.checksum != Some(image.checksum) => Err(Error::NotKnown {
                path: path.to_owned(),
            }),
            note => Self::noted(
                context,
                path,
                note.map(|note| note.stamp),
                Some(&image.checksum),
            ),
        }
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
        let is_it = |note: Stamp| note.identity() == now.identity() && note.size == now.size;
        if note.is_some_and(|note| !is_it(note)) {
            return Err(another());
        }
        if note != Some(now) {
            let found = context
                .decoder
                .checksum(path)
                .map_err(Error::decoding(path))?;
            if found.meta != now || checksum != Some(&found.checksum) {
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

    /// Removes the file or package, or moves it to the trash. Returns the stamp that its other names
    /// have now. A file that is already missing is an error of the kind `NotFound`.
    pub(super) fn remove(self, path: &Path, trash: bool) -> io::Result<Stamp> {
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
            // The disk's trash, else the trash of the home.
            _ if trash => trash::delete(whole(path)).map_err(trash_error)?,
            Self::Package => fs::remove_dir_all(path)?,
            Self::File | Self::This(_) => unlinkat(&directory, name, AtFlags::empty())?,
        }
        Ok(stamp(&file.metadata()?))
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
    let roots = context.watched.roots();
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

/// Files for the thread `remove`. The files of deleted images are noted as pending.
pub(super) struct Removal {
    pub(super) files: Vec<(PathBuf, ExpectedFile)>,
    pub(super) trash: bool,
    pub(super) reply: Reply<Outcome>,
}

/// The files that were removed or already missing, and those that stayed, with the reasons.
#[derive(Default)]
pub struct Outcome {
    pub removed: Vec<PathBuf>,
    pub kept: Vec<(PathBuf, Error)>,
}

/// Removes previews that are noted as pending, or copies, and then their notes.
pub(super) fn clear_own<'a>(context: &ImportContext, paths: impl Iterator<Item = &'a Path>) {
    let files = paths.map(|path| (path.to_owned(), ExpectedFile::File));
    clear(context, files, false);
}

/// Removes files that are noted as pending, or moves them to the trash, then removes their notes. The
/// note of a copy that cannot be removed stays, and the next start retries.
pub(super) fn clear(
    context: &ImportContext,
    files: impl IntoIterator<Item = (PathBuf, ExpectedFile)>,
    trash: bool,
) -> Outcome {
    let mut outcome = Outcome::default();
    // Removing one name of a file changes the stamp of its other names.
    let mut renamed: HashMap<(u64, u64), Stamp> = HashMap::new();
    let mut retried = Vec::new();
    for (path, mut known) in files {
        let is_ours = context.is_ours(&path);
        if let ExpectedFile::This(seen) = &mut known {
            *seen = *renamed.get(&(seen.device, seen.inode)).unwrap_or(seen);
        } else if !is_ours {
            log::info!("not removing {}: it is not murald's", path.display());
            continue;
        }
        match known.remove(&path, trash) {
            Ok(now) => {
                renamed.insert((now.device, now.inode), now);
                outcome.removed.push(path);
            }
            Err(error) if is_missing(&error) => outcome.removed.push(path),
            Err(error) => {
                let action = if trash { "trash" } else { "remove" };
                let error = Error::file(action, &path)(error);
                log::warn!("{}", error.reason());
                if is_ours && !trash {
                    retried.push(path.clone());
                }
                outcome.kept.push((path, error));
            }
        }
    }
    if let Err(error) = remove_notes(context, &outcome, &retried) {
        log::warn!(
            "cannot finish removing files until the next start: {}",
            error.reason()
        );
    }
    outcome
}

fn remove_notes(
    context: &ImportContext,
    outcome: &Outcome,
    retried: &[PathBuf],
) -> Result<(), Error> {
    let kept = outcome.kept.iter().map(|(path, _)| path);
    let mut kept = kept.filter(|path| !retried.contains(path));
    let store = &context.store;
    store.note(|c| kept.try_for_each(|path| pending_files::unmark(c, path)))?;
    flush_directories(outcome.removed.iter().map(PathBuf::as_path))?;
    let mut removed = outcome.removed.iter();
    Ok(store.note(|c| removed.try_for_each(|path| pending_files::unmark(c, path)))?)
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

/// The path with the links of its directory resolved. The file itself may be a link and is not.
fn whole(path: &Path) -> PathBuf {
    let home = path.parent().and_then(|home| home.canonicalize().ok());
    match (home, path.file_name()) {
        (Some(home), Some(name)) => home.join(name),
        _ => path.to_owned(),
    }
}

/// The reason for the user: the crate's own messages are for programmers. The error has no kind of its
/// own, as `NotFound` would mean that the file is missing.
fn trash_error(error: trash::Error) -> io::Error {
    io::Error::other(match error {
        trash::Error::FileSystem { path, source } => {
            format!("{}: {}", path.display(), plain(&source))
        }
        trash::Error::Unknown { description } => description,
        other => other.to_string(),
    })
}
