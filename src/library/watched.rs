//! One file of a watched directory: renamed, rewritten, new, or nothing to do. Runs in the import
//! workers.
//!
//! The file is its owner's and is never touched; what is found out about it lands in one transaction,
//! with a note of what was seen ([`crate::store::watched`]), so that a kill at any instant leaves the
//! file to be looked at again. An image whose file has another one's content now is displaced: it has
//! no file until its content turns up under another name.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::Ordering;

use super::disk::{self, Copy, checksum, flush, is_gone, stamp};
use super::import_file::ImportContext;
use super::landed::{self, Imported};
use super::name::Name;
use super::source::format;
use super::task::{Directory, Pass, Which};
use super::turn::{Turn, Turns};
use super::watched_folder::folder_of;
use super::{Error, removal};
use crate::digest;
use crate::digest::Checksum;
use crate::media::Stop;
use crate::store::folders;
use crate::store::images::NewImage;
use crate::store::watched::{self, Stamp, WatchedFile};
use crate::store::{self, Connection, edits, images, purge};
use crate::sys::lock;
use crate::transcode;
use crate::wire::Image;

/// A file that is being taken, as it was seen.
struct Seen<'a> {
    path: &'a Path,
    directory: &'a Directory,
    stamp: Stamp,
    checksum: Checksum,
}

impl Seen<'_> {
    fn note(&self, connection: &Connection, image: Option<i64>) -> Result<(), store::Error> {
        let (path, checksum) = (self.path.to_owned(), Some(self.checksum));
        watched::note(
            connection,
            &WatchedFile { path, image_id: image, checksum, stamp: self.stamp },
        )
    }

    /// Whether it is as it was: else somebody is writing, and it is taken once that has ended. A file
    /// that was put in its place is taken as well: the note is of this one.
    fn check(&self) -> Result<(), Error> {
        if self.directory.ended.load(Ordering::Acquire) {
            return Err(Error::LeftAlone);
        }
        let now = fs::metadata(self.path).map_err(|_| Error::LeftAlone)?;
        if stamp(&now).same_written(&self.stamp) { Ok(()) } else { Err(Error::LeftAlone) }
    }
}

impl ImportContext {
    /// Finds out what a file is, and gives it the row that it is to have.
    pub(super) fn take_watched(
        &self,
        path: &Path,
        directory: &Directory,
        pass: Pass,
        (turn, stop): (&Turn, Stop<'_>),
    ) -> Result<Imported, Error> {
        if directory.ended.load(Ordering::Acquire) {
            return Err(Error::LeftAlone);
        }
        // Gone again: who watches hears of that, too.
        let gone = |error: Error| if error.is_missing_file() { Error::LeftAlone } else { error };
        let mut file = disk::open(path).map_err(gone)?;
        let stamp = stamp(&file.metadata().map_err(Error::file("read", path))?);
        let known = self.store.read(|c| watched::get(c, path))?;
        if known.as_ref().is_some_and(|known| known.stamp.same(&stamp)) {
            return Err(Error::LeftAlone);
        }
        let checksum = match pass {
            Pass::All => self.checksum_of_picture(path, &mut file, stop),
            Pass::Moves => checksum(path, &mut file, stop),
        };
        let seen = |checksum| Seen { path, directory, stamp, checksum };
        let taken = match checksum {
            Ok(checksum) => self.place(&seen(checksum), known.as_ref(), pass, (turn, stop)),
            Err(error) => Err(error),
        };
        if let Err(error) = &taken
            && is_for_good(error)
            && known.is_none_or(|known| known.image_id.is_none())
        {
            let file = WatchedFile { path: path.to_owned(), image_id: None, checksum: None, stamp };
            self.store.note(|c| watched::note(c, &file))?;
        }
        taken
    }

    /// Text and archives are known by their first bytes, and not read to their ends.
    fn checksum_of_picture(
        &self,
        path: &Path,
        file: &mut File,
        stop: Stop<'_>,
    ) -> Result<Checksum, Error> {
        format(path, file)?;
        checksum(path, file, stop)
    }

    /// Takes a file in place that somebody imports by its name: also one that was deleted in murald and
    /// left on the disk.
    pub(super) fn take_named(
        &self,
        path: &Path,
        folder: Option<i64>,
        (turn, stop): (&Turn, Stop<'_>),
    ) -> Result<Imported, Error> {
        let directory = Directory::of(path, Which::Named(folder));
        let mut file = disk::open(path)?;
        let stamp = stamp(&file.metadata().map_err(Error::file("read", path))?);
        let known = self.store.read(|c| watched::get(c, path))?;
        let here = self.store.read(|c| images::by_path(c, path))?;
        let same = known.as_ref().filter(|known| known.stamp.same(&stamp));
        if let (Some(known), Some(image)) = (same, here)
            && known.image_id == Some(image.id)
        {
            return self.imported(image.id, true);
        }
        let checksum = checksum(path, &mut file, stop)?;
        let seen = Seen { path, directory: &directory, stamp, checksum };
        self.place(&seen, known.as_ref(), Pass::All, (turn, stop))
    }

    /// Has the row of an image in place say what its file holds, if that was written since it was seen.
    /// Who watches it hears of that a moment later; a network disk may never tell.
    pub(super) fn see_again(&self, image: &Image) -> Result<(), Error> {
        let path = &image.path;
        if !image.in_place || disk::answers(path).is_err() {
            return Ok(());
        }
        let Ok(meta) = fs::metadata(path) else { return Ok(()) };
        let note = self.store.read(|c| watched::get(c, path))?;
        let is_it =
            |note: WatchedFile| note.image_id == Some(image.id) && note.stamp.same(&stamp(&meta));
        if note.is_some_and(is_it) {
            return Ok(());
        }
        let directory = Directory::of(path, Which::Only(BTreeSet::new()));
        let stop = || self.ended.load(Ordering::Relaxed);
        let turn = Turns::default().next();
        match self.take_watched(path, &directory, Pass::All, (&turn, &stop)) {
            Err(Error::Store(error)) => Err(error.into()),
            // It is being written, or is no picture: who shows it says so.
            _ => Ok(()),
        }
    }

    fn place(
        &self,
        seen: &Seen<'_>,
        known: Option<&WatchedFile>,
        pass: Pass,
        work: (&Turn, Stop<'_>),
    ) -> Result<Imported, Error> {
        let is_named = matches!(seen.directory.which, Which::Named(_));
        loop {
            let same = self.store.read(|c| images::by_checksum(c, &seen.checksum))?;
            match same {
                Some(image)
                    if image.in_place && image.path != seen.path && !holds(self, &image)? =>
                {
                    if self.move_here(seen, &image)? {
                        return self.imported(image.id, is_named);
                    }
                    // It was given another place meanwhile.
                }
                // The file that it had: only its stamp is another one.
                Some(image)
                    if pass == Pass::All
                        || known.is_some_and(|known| known.image_id == Some(image.id)) =>
                {
                    self.note_same(seen, &image, known)?;
                    // Lists of a directory change with a path of which its image was not known.
                    let is_known = known.is_some_and(|known| known.image_id == Some(image.id));
                    return self.imported(image.id, is_named || is_known);
                }
                _ if pass == Pass::Moves => return Err(Error::LeftAlone),
                _ => return self.place_new(seen, known, work),
            }
        }
    }

    /// What no image has: another content of the image that is here, or a new one.
    fn place_new(
        &self,
        seen: &Seen<'_>,
        known: Option<&WatchedFile>,
        work: (&Turn, Stop<'_>),
    ) -> Result<Imported, Error> {
        let here = self.store.read(|c| images::by_path(c, seen.path))?;
        let here = here.filter(|image| image.in_place);
        let copied = known.and_then(|known| known.image_id);
        let copied = copied.map(|id| self.store.read(|c| images::get(c, id))).transpose()?;
        let copied = match copied.flatten() {
            Some(image) if self.is_made_of(&image, seen)? => Some(image),
            _ => None,
        };
        match (here, copied) {
            (Some(image), _) => self.rewrite(seen, &image, work.1),
            (None, Some(image)) => self.rewrite_copy(seen, &image, work.1),
            (None, None) => match seen.directory.which {
                // Deleted in murald.
                Which::Only(_) if known.is_none_or(|known| known.image_id.is_none()) => {
                    Err(Error::LeftAlone)
                }
                Which::All if self.store.read(|c| watched::is_dismissed(c, &seen.checksum))? => {
                    self.store.note(|c| seen.note(c, None))?;
                    Err(Error::LeftAlone)
                }
                _ => self.add(seen, work),
            },
        }
    }

    /// Whether an image is a copy of this file and of no other: one that was imported from elsewhere, or
    /// of which there is another file, has its content still.
    fn is_made_of(&self, image: &Image, seen: &Seen<'_>) -> Result<bool, Error> {
        let source = &image.source_path;
        let renamed = source.starts_with(&seen.directory.path) && is_gone(source);
        if image.in_place || image.web_meta.is_some() || !(source == seen.path || renamed) {
            return Ok(false);
        }
        let files = self.store.read(|c| watched::of_image(c, image.id))?;
        Ok(files.iter().all(|file| file == seen.path || is_gone(file)))
    }

    /// The image whose content this is has lost its file: this is it now.
    fn move_here(&self, seen: &Seen<'_>, image: &Image) -> Result<bool, Error> {
        let moved = self.store.write(|c| -> Result<bool, Error> {
            let now = images::get(c, image.id)?.filter(|now| now.path == image.path);
            let Some(now) = now else { return Ok(false) };
            self.displace(c, seen, now.id)?;
            edits::set_path(c, now.id, seen.path)?;
            self.follow(c, seen, &now)?;
            if watched::get(c, &now.path)?.is_some_and(|old| old.image_id == Some(now.id)) {
                watched::forget(c, &now.path)?;
            }
            seen.note(c, Some(now.id))?;
            seen.check()?;
            Ok(true)
        })?;
        if moved {
            log::info!("{} is {} now", image.path.display(), seen.path.display());
        }
        Ok(moved)
    }

    /// Name and folder go with a file, unless their owner has chosen others.
    fn follow(&self, c: &Connection, seen: &Seen<'_>, image: &Image) -> Result<(), Error> {
        let before = Name::of(&image.path, image.format)?;
        let after = Name::of(seen.path, image.format)?;
        if image.name == before.stem
            && image.name != after.stem
            && !images::has_name(c, &after.stem)?
        {
            edits::set_name(c, image.id, &after.stem)?;
        }
        if image.path.starts_with(&seen.directory.path)
            && folder_of(c, seen.directory, &image.path, &|_, _| Ok(None))? == image.folder_id
        {
            edits::set_folder(c, image.id, self.folder(c, seen)?)?;
        }
        Ok(())
    }

    /// Another file of a content that is in the library already. A copy that is in no folder comes into
    /// the directory's when the file is first seen: it was imported from there before.
    fn note_same(
        &self,
        seen: &Seen<'_>,
        image: &Image,
        known: Option<&WatchedFile>,
    ) -> Result<(), Error> {
        self.store.write(|c| -> Result<(), Error> {
            let there = images::get(c, image.id)?;
            let there = there.filter(|now| now.checksum == image.checksum);
            let Some(now) = there else { return Err(Error::LeftAlone) };
            self.displace(c, seen, now.id)?;
            let is_first = known.is_none() && seen.directory.folders;
            if is_first && !now.in_place && now.folder_id.is_none() {
                edits::set_folder(c, now.id, self.folder(c, seen)?)?;
            }
            Ok(seen.note(c, Some(image.id))?)
        })
    }

    /// The image that had this file, if it is another one, has none now.
    fn displace(&self, c: &Connection, seen: &Seen<'_>, by: i64) -> Result<(), store::Error> {
        let here = images::by_path(c, seen.path)?;
        match here.filter(|image| image.in_place && image.id != by) {
            Some(image) => watched::displace(c, image.id),
            None => Ok(()),
        }
    }

    fn rewrite(&self, seen: &Seen<'_>, old: &Image, stop: Stop<'_>) -> Result<Imported, Error> {
        let (_, row) = self.describe_in_place(seen.path, seen.checksum, None, stop)?;
        let others = self.store.write(|c| -> Result<_, Error> {
            let now = images::get(c, old.id)?.filter(|now| now.path == old.path);
            let now = now.ok_or(Error::LeftAlone)?;
            seen.check()?;
            edits::rewrite(c, &now, &row)?;
            // Of what it was there may be other files, which are an image of their own now.
            watched::forget(c, seen.path)?;
            let others = watched::of_image(c, now.id)?;
            others.iter().try_for_each(|file| watched::forget(c, file))?;
            seen.note(c, Some(now.id))?;
            Ok(others)
        })?;
        lock(&self.unknown_again).extend(others);
        self.thumbnails.remove(old);
        self.tell_rewritten(old.id);
        self.imported(old.id, false)
    }

    /// The same where the library has a copy.
    fn rewrite_copy(
        &self,
        seen: &Seen<'_>,
        old: &Image,
        stop: Stop<'_>,
    ) -> Result<Imported, Error> {
        let mut copy = self.new_copy();
        copy.fill(seen.path, &mut disk::open(seen.path)?, stop)?;
        if copy.checksum != seen.checksum {
            return Err(Error::LeftAlone);
        }
        let row = self.describe(seen.path, &copy, old.folder_id, stop)?;
        flush(&copy)?;
        let name = Name::of(seen.path, row.format)?;
        if old.path.extension().is_none_or(|own| *own != *name.extension) {
            let name = Name { stem: old.name.clone(), extension: name.extension };
            return self.replace_copy(seen, old, (copy, &name, row));
        }
        self.store.write(|c| -> Result<(), Error> {
            let now = images::get(c, old.id)?.filter(|now| now.path == old.path);
            let now = now.ok_or(Error::LeftAlone)?;
            edits::rewrite(c, &now, &row)?;
            seen.note(c, Some(now.id))?;
            // A kill between the two leaves the note as it was: the file is taken once more.
            fs::rename(&copy.path, &now.path).map_err(Error::file("rename", &copy.path))?;
            copy.kept = true;
            disk::sync_directory(&self.directory)
        })?;
        self.thumbnails.remove(old);
        self.tell_rewritten(old.id);
        self.imported(old.id, false)
    }

    /// The same where what is in it wants another extension: a file beside the old one, which goes then.
    fn replace_copy(
        &self,
        seen: &Seen<'_>,
        old: &Image,
        landing: (Copy, &Name, NewImage),
    ) -> Result<Imported, Error> {
        self.names.look_anew(&old.name);
        let (old, _reserved) = self.land_as(landing, Some(&old.name), |c, row| {
            let now = images::get(c, old.id)?.filter(|now| now.path == old.path);
            let now = now.ok_or(Error::LeftAlone)?;
            edits::replace(c, &now, row)?;
            seen.note(c, Some(now.id))?;
            Ok(now)
        })?;
        self.thumbnails.remove(&old);
        removal::clear_own(self, purge::on_disk(&old));
        self.tell_rewritten(old.id);
        self.imported(old.id, false)
    }

    fn add(&self, seen: &Seen<'_>, (turn, stop): (&Turn, Stop<'_>)) -> Result<Imported, Error> {
        if !seen.directory.in_place {
            let folder = self.store.write(|c| self.folder(c, seen))?;
            let imported = self.import(seen.path, folder, turn, stop)?;
            let hex = digest::hex(&seen.checksum);
            let is_it = imported.image.checksum.ends_with(&hex);
            self.store
                .note(|c| if is_it { seen.note(c, Some(imported.image.id)) } else { Ok(()) })?;
            return Ok(imported);
        }
        let (name, mut row) = self.describe_in_place(seen.path, seen.checksum, None, stop)?;
        if !turn.wait() {
            return Err(Error::Stopped);
        }
        let reserved = self.names.reserve(&name, &self.directory, &self.store, None)?;
        row.settle(&reserved.name, seen.path);
        let imported = self.store.write(|c| -> Result<_, Error> {
            seen.check()?;
            if let Some(image) = images::by_checksum(c, &row.checksum)? {
                seen.note(c, Some(image.id))?;
                return Ok(Imported { image, duplicate: true });
            }
            row.folder_id = self.folder(c, seen)?;
            let image = landed::insert(c, &row)?;
            seen.note(c, Some(image.id))?;
            Ok(Imported { image, duplicate: false })
        })?;
        Ok(self.complete(imported))
    }

    /// The folder that shows the directory in which a file is, made where it is missing.
    fn folder(&self, c: &Connection, seen: &Seen<'_>) -> Result<Option<i64>, Error> {
        folder_of(c, seen.directory, seen.path, &|name, parent| {
            let id = folders::insert(c, name, parent)?;
            watched::own_folder(c, id)?;
            self.folders_made.store(true, Ordering::Relaxed);
            Ok(Some(id))
        })
    }
}

/// Whether the file of an image in place has its content still.
fn holds(context: &ImportContext, image: &Image) -> Result<bool, Error> {
    let Ok(meta) = fs::metadata(&image.path) else { return Ok(false) };
    let note = context.store.read(|c| watched::get(c, &image.path))?;
    let is_noted =
        |note: WatchedFile| note.stamp.same(&stamp(&meta)) && note.image_id == Some(image.id);
    if note.is_some_and(is_noted) {
        return Ok(true);
    }
    let Ok(mut file) = disk::open(&image.path) else { return Ok(false) };
    let found = checksum(&image.path, &mut file, &|| false)?;
    Ok(image.checksum.ends_with(&digest::hex(&found)))
}

/// Whether looking again at a file that is as it was would come to the same.
fn is_for_good(error: &Error) -> bool {
    match error {
        Error::Transcode { source, .. } => !matches!(
            source,
            transcode::Error::Missing { .. } | transcode::Error::Busy | transcode::Error::Ended
        ),
        Error::Media { source, .. } => !matches!(
            source,
            crate::media::Error::Stopped | crate::media::Error::NeedsTranscoder { .. }
        ),
        Error::Decoder { .. } | Error::TooLong { .. } | Error::Name { .. } => true,
        _ => false,
    }
}
