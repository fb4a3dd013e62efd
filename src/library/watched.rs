//! Decides what a file of a watched directory is: renamed, rewritten, new, or unchanged. Runs in the
//! import workers.
//!
//! The file belongs to its owner and is never changed. `watched_rows` writes each result in one
//! transaction with a note of the file ([`crate::store::watched`]), so that after a kill the file is
//! examined again. An image whose file now has the content of another image is displaced: it has no
//! file until its content is found under another name.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Error;
use super::context::ImportContext;
use super::decode::Tools;
use super::disk::stamp;
use super::task::{Directory, InPlace, Pass, Prepared, SeenFile, Source, Which};
use crate::decode::{self, Hashed};
use crate::paths::{Presence, presence};
use crate::store::watched::{self, Stamp, WatchedFile};
use crate::store::{self, Connection, images};
use crate::sys::lock;
use crate::transcode;
use crate::wire::Image;

/// How many files are remembered as unreadable; the list is cleared when it is full.
const UNREADABLE_MAX: usize = 1000;

impl ImportContext {
    /// Finds out what a file is, and updates its row or prepares the change. Fails with
    /// [`Error::NothingToDo`] if there is nothing to do.
    pub(super) fn take_watched(
        &self,
        path: &Path,
        directory: &Arc<Directory>,
        pass: Pass,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        if directory.ended.load(Ordering::Acquire) {
            return Err(Error::NothingToDo);
        }
        let known = self.store.read(|c| watched::get(c, path))?;
        let seen = |Hashed { checksum, meta }| {
            let (path, directory) = (path.to_owned(), Arc::clone(directory));
            SeenFile {
                path,
                directory,
                stamp: meta.into(),
                checksum,
            }
        };
        if pass == Pass::Moves {
            // The pass `All` reports files that cannot be read.
            let hashed = hash(path, tools).map_err(|_| Error::NothingToDo)?;
            return self.place(seen(hashed), known.as_ref(), pass, tools);
        }
        // A file that is already gone is no error: the watch notices that, too.
        let gone = |error: Error| {
            if error.is_missing_file() {
                Error::NothingToDo
            } else {
                error
            }
        };
        let meta = tools
            .decoder
            .meta(path)
            .map_err(Error::decoding(path))
            .map_err(gone)?;
        if known
            .as_ref()
            .is_some_and(|known| known.stamp.same(&meta.into()))
        {
            return Err(Error::NothingToDo);
        }
        // The first bytes are enough to refuse text and archives without reading them whole.
        let hashed = Source::look_at(path, tools.decoder).and_then(|_| hash(path, tools));
        let taken = hashed.and_then(|hashed| self.place(seen(hashed), known.as_ref(), pass, tools));
        if let Err(error) = &taken
            && is_for_good(error)
            && known.is_none_or(|known| known.image_id.is_none())
        {
            let (path, stamp) = (path.to_owned(), meta.into());
            let file = WatchedFile {
                path,
                image_id: None,
                checksum: None,
                stamp,
            };
            self.store.note(|c| watched::note(c, &file))?;
        }
        taken
    }

    /// Imports a file in place by its path, also one that was deleted in murald but kept on the disk.
    pub(super) fn take_named(
        &self,
        path: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let directory = Arc::new(Directory::of(path, Which::Named(folder)));
        let stamp: Stamp = tools
            .decoder
            .meta(path)
            .map_err(Error::decoding(path))?
            .into();
        let known = self.store.read(|c| watched::get(c, path))?;
        let here = self.store.read(|c| images::by_path(c, path))?;
        let same = known.as_ref().filter(|known| known.stamp.same(&stamp));
        if let (Some(known), Some(image)) = (same, here)
            && known.image_id == Some(image.id)
        {
            return self.imported(image.id, true).map(Prepared::from);
        }
        let Hashed { checksum, meta } = hash(path, tools)?;
        let seen = SeenFile {
            path: path.to_owned(),
            directory,
            stamp: meta.into(),
            checksum,
        };
        self.place(seen, known.as_ref(), Pass::All, tools)
    }

    /// Updates the row of an image in place if its file was written since it was last read; true if the
    /// row was updated. The watch finds out a moment later, and on a network disk perhaps never.
    pub(super) fn see_again(&self, image: &Image) -> bool {
        let path = &image.path;
        // Checked each time, with a time limit: the disk may hang now even if it answered a moment ago.
        if !image.in_place || presence(path) != Presence::There {
            return false;
        }
        let Ok(meta) = fs::metadata(path) else {
            return false;
        };
        let is_it =
            |note: &WatchedFile| note.image_id == Some(image.id) && note.stamp.same(&stamp(&meta));
        let is_unreadable = || {
            lock(&self.unreadable)
                .get(path)
                .is_some_and(|seen| seen.same(&stamp(&meta)))
        };
        match self.store.read(|c| watched::get(c, path)) {
            Ok(note) if note.as_ref().is_some_and(is_it) || is_unreadable() => return false,
            Ok(_) => {}
            Err(error) => return not_seen(path, &error.into()),
        }
        let directory = Arc::new(Directory::of(path, Which::Only(BTreeSet::new())));
        let prepared = self.take_watched(path, &directory, Pass::All, self.tools());
        match prepared.and_then(|prepared| (self.land)(prepared)) {
            Ok(_) => true,
            // The file is still being written or is not a picture: the row stays as it is.
            Err(error) if is_for_good(&error) => {
                let mut unreadable = lock(&self.unreadable);
                if unreadable.len() >= UNREADABLE_MAX {
                    unreadable.clear();
                }
                unreadable.insert(path.clone(), stamp(&meta));
                false
            }
            Err(error) => not_seen(path, &error),
        }
    }

    /// The image that `find` returns, after its row was updated if its file has changed.
    pub(super) fn find_now(
        &self,
        find: impl Fn(&Connection) -> Result<Option<Image>, store::Error>,
    ) -> Result<Option<Image>, Error> {
        let found = self.store.read(&find)?;
        match found.as_ref().is_some_and(|image| self.see_again(image)) {
            true => Ok(self.store.read(find)?),
            false => Ok(found),
        }
    }

    fn place(
        &self,
        seen: SeenFile,
        known: Option<&WatchedFile>,
        pass: Pass,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        match self
            .store
            .read(|c| images::by_checksum(c, &seen.checksum))?
        {
            Some(image)
                if image.in_place && image.path != seen.path && !holds(self, &image, tools)? =>
            {
                Ok(seen.ready(InPlace::Moved(image, pass)))
            }
            // The image's own file with a new stamp, or another file with the same content.
            Some(image)
                if pass == Pass::All
                    || known.is_some_and(|known| known.image_id == Some(image.id)) =>
            {
                Ok(seen.ready(InPlace::Same(image)))
            }
            _ if pass == Pass::Moves => Err(Error::NothingToDo),
            _ => self.place_new(seen, known, tools),
        }
    }

    /// Handles content that no image has: the new content of the image at this path, or of a new image.
    fn place_new(
        &self,
        seen: SeenFile,
        known: Option<&WatchedFile>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let here = self.store.read(|c| images::by_path(c, &seen.path))?;
        if let Some(image) = here.filter(|image| image.in_place) {
            return self.rewrite(&seen, &image, tools).map(Prepared::from);
        }
        match seen.directory.which {
            // The image was deleted in murald, or the path was never imported.
            Which::Only(_) if known.is_none_or(|known| known.image_id.is_none()) => {
                Err(Error::NothingToDo)
            }
            Which::All
                if self
                    .store
                    .read(|c| watched::is_dismissed(c, &seen.checksum))? =>
            {
                self.store.note(|c| seen.note(c, None))?;
                Err(Error::NothingToDo)
            }
            _ => self.add(seen, tools),
        }
    }
}

/// False, as the row stays as it was. Logs failures of the database; others concern the file alone.
fn not_seen(path: &Path, error: &Error) -> bool {
    if matches!(error, Error::Store(_)) {
        log::warn!(
            "cannot update the image of {}: {}",
            path.display(),
            error.reason()
        );
    }
    false
}

/// Whether the file of an image in place still has the image's content.
fn holds(context: &ImportContext, image: &Image, tools: Tools<'_>) -> Result<bool, Error> {
    let path = &image.path;
    let meta = match tools.decoder.meta(path) {
        Ok(meta) => meta,
        Err(decode::Error::Read(io)) if io.error().kind() == ErrorKind::NotFound => {
            return Ok(false);
        }
        Err(decode::Error::Directory | decode::Error::NotFile) => return Ok(false),
        // A file on a disk that does not answer counts as unchanged.
        Err(_) => return Ok(true),
    };
    let note = context.store.read(|c| watched::get(c, path))?;
    let is_noted =
        |note: WatchedFile| note.stamp.same(&meta.into()) && note.image_id == Some(image.id);
    if note.is_some_and(is_noted) {
        return Ok(true);
    }
    let found = hash(path, tools)?;
    Ok(image.checksum == found.checksum)
}

fn hash(path: &Path, tools: Tools<'_>) -> Result<Hashed, Error> {
    tools.decoder.checksum(path).map_err(Error::decoding(path))
}

/// Whether an unchanged file would fail again with this error: only faults of the file itself, not of a
/// program or a disk.
fn is_for_good(error: &Error) -> bool {
    match error {
        Error::Transcode { source, .. } => {
            use transcode::Error::{NoPicture, TooLarge, Truncated};
            matches!(source, NoPicture | TooLarge { .. } | Truncated)
        }
        Error::Media { source, .. } => {
            use decode::Error::{Memory, Picture, Time, Unknown};
            matches!(source, Unknown(_) | Picture(_) | Memory | Time)
        }
        Error::TooLong { .. } | Error::Name { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faults_of_the_file_itself_are_permanent() {
        let check = |error: Error, expected| assert_eq!(is_for_good(&error), expected, "{error:?}");
        let path = Path::new("/a.heic");
        let complaint = "killed by signal 9".to_owned();
        for (source, expected) in [
            (transcode::Error::Truncated, true),
            (
                transcode::Error::TooLarge {
                    width: 70_000,
                    height: 1,
                },
                true,
            ),
            (
                transcode::Error::Failed {
                    program: "djxl",
                    complaint,
                },
                false,
            ),
            (transcode::Error::Missing { program: "ffmpeg" }, false),
        ] {
            check(Error::transcoding(path)(source), expected);
        }
        let full = ErrorKind::StorageFull.into();
        check(
            Error::transcoding(path)(transcode::Error::Write {
                path: path.into(),
                source: full,
            }),
            false,
        );
        for (source, expected) in [
            (decode::Error::Picture("truncated".to_owned()), true),
            (decode::Error::TooLong { bytes: 3 << 30 }, true),
            (decode::Error::Killed, false),
            (decode::Error::Silent, false),
        ] {
            check(Error::decoding(path)(source), expected);
        }
    }
}
