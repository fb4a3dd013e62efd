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

/// Files that are known to be unreadable; beyond that they are read once more.
const UNREADABLE_MAX: usize = 1000;

impl ImportContext {
    /// Finds out what a file is, and gives it the row that it is to have, or prepares that.
    pub(super) fn take_watched(
        &self,
        path: &Path,
        directory: &Arc<Directory>,
        pass: Pass,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        if directory.ended.load(Ordering::Acquire) {
            return Err(Error::LeftAlone);
        }
        let known = self.store.read(|c| watched::get(c, path))?;
        let seen = |Hashed { checksum, meta }| {
            let (path, directory) = (path.to_owned(), Arc::clone(directory));
            SeenFile { path, directory, stamp: meta.into(), checksum }
        };
        if pass == Pass::Moves {
            // The other pass reports what cannot be read.
            let hashed = hash(path, tools).map_err(|_| Error::LeftAlone)?;
            return self.place(seen(hashed), known.as_ref(), pass, tools);
        }
        // Gone again: who watches hears of that, too.
        let gone = |error: Error| if error.is_missing_file() { Error::LeftAlone } else { error };
        let meta = tools.decoder.meta(path).map_err(Error::decoding(path)).map_err(gone)?;
        if known.as_ref().is_some_and(|known| known.stamp.same(&meta.into())) {
            return Err(Error::LeftAlone);
        }
        // Text and archives are known by their first bytes, and not read to their ends.
        let hashed = Source::look_at(path, tools.decoder).and_then(|_| hash(path, tools));
        let taken = hashed.and_then(|hashed| self.place(seen(hashed), known.as_ref(), pass, tools));
        if let Err(error) = &taken
            && is_for_good(error)
            && known.is_none_or(|known| known.image_id.is_none())
        {
            let (path, stamp) = (path.to_owned(), meta.into());
            let file = WatchedFile { path, image_id: None, checksum: None, stamp };
            self.store.note(|c| watched::note(c, &file))?;
        }
        taken
    }

    /// Takes a file in place that somebody imports by its name: also one that was deleted in murald and
    /// left on the disk.
    pub(super) fn take_named(
        &self,
        path: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let directory = Arc::new(Directory::of(path, Which::Named(folder)));
        let stamp: Stamp = tools.decoder.meta(path).map_err(Error::decoding(path))?.into();
        let known = self.store.read(|c| watched::get(c, path))?;
        let here = self.store.read(|c| images::by_path(c, path))?;
        let same = known.as_ref().filter(|known| known.stamp.same(&stamp));
        if let (Some(known), Some(image)) = (same, here)
            && known.image_id == Some(image.id)
        {
            return self.imported(image.id, true).map(Prepared::from);
        }
        let Hashed { checksum, meta } = hash(path, tools)?;
        let seen = SeenFile { path: path.to_owned(), directory, stamp: meta.into(), checksum };
        self.place(seen, known.as_ref(), Pass::All, tools)
    }

    /// Brings the row of an image in place up to date if its file was written since it was seen; true if
    /// it was. The watch finds out a moment later, and on a network disk perhaps never.
    pub(super) fn see_again(&self, image: &Image) -> bool {
        let path = &image.path;
        // A look of its own: what its disk answered a moment ago does not keep this thread from hanging
        // now.
        if !image.in_place || presence(path) != Presence::There {
            return false;
        }
        let Ok(meta) = fs::metadata(path) else { return false };
        let is_it =
            |note: &WatchedFile| note.image_id == Some(image.id) && note.stamp.same(&stamp(&meta));
        let is_unreadable =
            || lock(&self.unreadable).get(path).is_some_and(|seen| seen.same(&stamp(&meta)));
        match self.store.read(|c| watched::get(c, path)) {
            Ok(note) if note.as_ref().is_some_and(is_it) || is_unreadable() => return false,
            Ok(_) => {}
            Err(error) => return not_seen(path, &error.into()),
        }
        let directory = Arc::new(Directory::of(path, Which::Only(BTreeSet::new())));
        let prepared = self.take_watched(path, &directory, Pass::All, self.tools());
        match prepared.and_then(|prepared| self.land_one(prepared)) {
            Ok(_) => true,
            // A file that is being written, or is no picture, leaves the row as it was.
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

    /// The image that `find` finds, its row up to date with its file.
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
        match self.store.read(|c| images::by_checksum(c, &seen.checksum))? {
            Some(image)
                if image.in_place && image.path != seen.path && !holds(self, &image, tools)? =>
            {
                Ok(seen.ready(InPlace::Moved(image, pass)))
            }
            // The file that it had, of which only the stamp is another one, or another file.
            Some(image)
                if pass == Pass::All
                    || known.is_some_and(|known| known.image_id == Some(image.id)) =>
            {
                let is_known = known.is_some_and(|known| known.image_id == Some(image.id));
                Ok(seen.ready(InPlace::Same { image, is_first: known.is_none(), is_known }))
            }
            _ if pass == Pass::Moves => Err(Error::LeftAlone),
            _ => self.place_new(seen, known, tools),
        }
    }

    /// Handles content that no image has: a new content of the image that is here, or a new image.
    fn place_new(
        &self,
        seen: SeenFile,
        known: Option<&WatchedFile>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let here = self.store.read(|c| images::by_path(c, &seen.path))?;
        let here = here.filter(|image| image.in_place);
        let copied = known.and_then(|known| known.image_id);
        let copied = copied.map(|id| self.store.read(|c| images::get(c, id))).transpose()?;
        let copied = match copied.flatten() {
            Some(image) if self.is_made_of(&image, &seen)? => Some(image),
            _ => None,
        };
        match (here, copied) {
            (Some(image), _) => self.rewrite(&seen, &image, tools).map(Prepared::from),
            (None, Some(image)) => self.rewrite_copy(&seen, &image, tools).map(Prepared::from),
            (None, None) => match seen.directory.which {
                // Deleted in murald.
                Which::Only(_) if known.is_none_or(|known| known.image_id.is_none()) => {
                    Err(Error::LeftAlone)
                }
                Which::All if self.store.read(|c| watched::is_dismissed(c, &seen.checksum))? => {
                    self.store.note(|c| seen.note(c, None))?;
                    Err(Error::LeftAlone)
                }
                _ => self.add(seen, tools),
            },
        }
    }

    /// Whether an image is a copy of this file and of no other: one that was imported from elsewhere, or
    /// of which there is another file, has its content still.
    fn is_made_of(&self, image: &Image, seen: &SeenFile) -> Result<bool, Error> {
        let source = &image.source_path;
        let is_gone = |path: &Path| presence(path) == Presence::Missing;
        let renamed = source.starts_with(&seen.directory.path) && is_gone(source);
        if image.in_place || image.web_meta.is_some() || !(*source == seen.path || renamed) {
            return Ok(false);
        }
        let files = self.store.read(|c| watched::of_image(c, image.id))?;
        Ok(files.iter().all(|file| *file == seen.path || is_gone(file)))
    }
}

/// The row stays as it was: only a failure of the database is not the file's own.
fn not_seen(path: &Path, error: &Error) -> bool {
    if matches!(error, Error::Store(_)) {
        log::warn!("cannot bring the row of {} up to date: {}", path.display(), error.reason());
    }
    false
}

/// Whether the file of an image in place has its content still.
fn holds(context: &ImportContext, image: &Image, tools: Tools<'_>) -> Result<bool, Error> {
    let path = &image.path;
    let meta = match tools.decoder.meta(path) {
        Ok(meta) => meta,
        Err(decode::Error::Read(io)) if io.error().kind() == ErrorKind::NotFound => {
            return Ok(false);
        }
        Err(decode::Error::Directory | decode::Error::NotFile) => return Ok(false),
        // A disk that does not answer has lost nothing.
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

/// Whether looking again at a file that is as it was would come to the same: only what is wrong with the
/// file itself, not with a program or a disk.
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
    fn only_what_is_wrong_with_a_file_is_for_good() {
        let check = |error: Error, expected| assert_eq!(is_for_good(&error), expected, "{error:?}");
        let path = Path::new("/a.heic");
        let complaint = "killed by signal 9".to_owned();
        for (source, expected) in [
            (transcode::Error::Truncated, true),
            (transcode::Error::TooLarge { width: 70_000, height: 1 }, true),
            (transcode::Error::Failed { program: "djxl", complaint }, false),
            (transcode::Error::Missing { program: "ffmpeg" }, false),
        ] {
            check(Error::transcoding(path)(source), expected);
        }
        let full = ErrorKind::StorageFull.into();
        check(
            Error::transcoding(path)(transcode::Error::Write { path: path.into(), source: full }),
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
