//! What may be removed from the disk: a copy or package in a directory of ours, and of all other files
//! only the very one that was seen. Runs in whoever removes something. A file's own name is never
//! followed where it is a link, and its directory is held open between the look and the removal.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};

use super::Error;
use super::disk::{self, stamp};
use super::import_file::ImportContext;
use crate::digest;
use crate::store::watched::{self, Stamp, WatchedFile};
use crate::sys::lock;
use crate::wire::Image;

/// What is expected at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Whichever file has this name in a directory of ours.
    File,
    /// The same of a package.
    Package,
    /// This file, wherever it is; of a link the link itself.
    This(Stamp),
}

impl Known {
    /// What a copy of an image is.
    pub(super) fn copy(image: &Image) -> Self {
        if image.web_meta.is_some() { Self::Package } else { Self::File }
    }

    /// A file that stayed on the disk when its image was deleted, if it is the one that was seen.
    pub(super) fn kept(context: &ImportContext, file: &WatchedFile) -> Result<Self, Error> {
        let checksum = file.checksum.as_ref().map(|checksum| digest::hex(checksum));
        Self::noted(context, &file.path, Some(file.stamp), &checksum.unwrap_or_default())
    }

    /// A file of an image in place, if it is the one that was seen, and no link in a watched directory
    /// leads to it. Its content is read where that alone can tell: it was never noted, or touched since
    /// without being another file.
    pub(super) fn in_place(
        context: &ImportContext,
        image: &Image,
        path: &Path,
    ) -> Result<Self, Error> {
        let note = context.store.read(|c| watched::get(c, path))?;
        let note = note.filter(|note| note.image_id == Some(image.id)).map(|note| note.stamp);
        Self::noted(context, path, note, &image.checksum)
    }

    /// `checksum` may have a word before its digits.
    fn noted(
        context: &ImportContext,
        path: &Path,
        note: Option<Stamp>,
        checksum: &str,
    ) -> Result<Self, Error> {
        let another = || Error::NotKnown { path: path.to_owned() };
        if leads_elsewhere(context, path) {
            return Err(another());
        }
        let own = path.symlink_metadata().map_err(|_| another())?;
        let file = path.metadata().ok().filter(Metadata::is_file).ok_or_else(another)?;
        let now = stamp(&file);
        if note.is_some_and(|note| !note.is(&now)) {
            return Err(another());
        }
        if note != Some(now) {
            let mut file = disk::open(path)?;
            let opened = file.metadata().map_err(Error::file("read", path))?;
            let found = disk::checksum(path, &mut file, &|| false)?;
            if stamp(&opened) != now || !checksum.ends_with(&digest::hex(&found)) {
                return Err(another());
            }
        }
        Ok(Self::This(stamp(&own)))
    }

    /// Which file lies there: none where it is gone, an error where it is another thing.
    pub(super) fn look(self, path: &Path) -> Result<Option<Stamp>, Error> {
        match path.symlink_metadata() {
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(Error::file("read", path)(error)),
            Ok(meta) if self.fits(&meta) => Ok(Some(stamp(&meta))),
            Ok(_) => Err(Error::NotKnown { path: path.to_owned() }),
        }
    }

    /// Removes it; true where it is gone.
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
        let file = File::from(openat(&directory, name, flags | OFlags::NOFOLLOW, Mode::empty())?);
        if !self.fits(&file.metadata()?) {
            return Err(io::Error::other("it is not the file that murald knows"));
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

/// Whether a directory in the watched one is a link: what it leads to is not the owner's of that one.
/// The watched directory itself may be reached over links.
fn leads_elsewhere(context: &ImportContext, path: &Path) -> bool {
    let roots = lock(&context.roots).clone();
    let root =
        roots.iter().filter(|root| path.starts_with(root)).max_by_key(|root| root.iter().count());
    let Some(root) = root else { return false };
    path.ancestors().skip(1).take_while(|above| above != root).any(Path::is_symlink)
}

/// Also where something on its way is a file now.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
