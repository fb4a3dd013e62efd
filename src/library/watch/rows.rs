//! Writes the rows of watched files and their images. Runs on the thread `library`, in slices of a few
//! hundred rows, each of which is one transaction; no disk is read in it.
//!
//! A file belongs to the image of its content. An image whose path another image's file has now is
//! missing and keeps its path, until its content is found under another name or its time is over.
//! SQLite checks at each statement that no two images that are there have the same path, so an image is
//! marked as missing before another one gets its path.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::Error;
use super::super::context::ImportContext;
use super::super::departed::Departed;
use super::super::name::{Name, Names};
use super::super::package::PackageVideo;
use super::super::task::{self, Directory, Facts, Imported, Which};
use super::compare::{Loss, Move};
use super::place::{self, Placement, Same, place};
use crate::store::folders::{self, DEPTH_MAX};
use crate::store::watched::{self, WatchedFile};
use crate::store::{Connection, edits, images};
use crate::wire::{Event, GalleryDomain, Image, Timestamp};

/// What a transaction has changed, to be told after it.
#[derive(Default)]
pub(crate) struct Effects {
    departed: Departed,
    /// Files to be looked at again, by the threads of their directories.
    again: Vec<PathBuf>,
    folders_changed: bool,
    /// Images with new content, as they were before.
    rewritten: Vec<Image>,
    /// Images that were removed because another one has their file.
    replaced: Vec<i64>,
}

impl Effects {
    /// Like [`Self::tell`], but for a file of a batch, which publishes that images have changed.
    pub(crate) fn tell_after_batch(mut self, context: &ImportContext) {
        self.departed.moved = 0;
        self.tell(context);
    }

    /// Publishes the changes, and removes what belonged to images that are gone.
    pub(crate) fn tell(self, context: &ImportContext) {
        self.departed.tell(context);
        for old in self.rewritten {
            context.thumbnails.remove(&old);
            context.tell_rewritten(old.id);
        }
        // Monitors that show the image now show the other one.
        self.replaced
            .into_iter()
            .for_each(|id| context.tell_rewritten(id));
        self.again
            .iter()
            .for_each(|path| context.watched.look_at(path));
        if self.folders_changed {
            context.bus.publish(&Event::GalleryChanged {
                domain: GalleryDomain::Folders,
            });
        }
    }
}

/// The rows in one transaction.
pub(crate) struct Rows<'a> {
    context: &'a ImportContext,
    c: &'a Connection,
    names: &'a Names,
    directory: &'a Directory,
    effects: &'a mut Effects,
    /// Files that the walk has missed.
    missed: Arc<HashSet<PathBuf>>,
    now: i64,
    /// Images that have lost their path.
    losers: Vec<i64>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(
        (context, c, names): (&'a ImportContext, &'a Connection, &'a Names),
        directory: &'a Directory,
        effects: &'a mut Effects,
    ) -> Self {
        *effects = Effects::default();
        Self {
            context,
            c,
            names,
            directory,
            effects,
            missed: Arc::default(),
            now: Timestamp::now().as_micros(),
            losers: Vec::new(),
        }
    }

    /// Has no image use one of the files that the walk has missed.
    pub(super) fn without(&mut self, missed: Arc<HashSet<PathBuf>>) -> &mut Self {
        self.missed = missed;
        self
    }

    /// Stores the new device numbers of files.
    pub(super) fn renumber(&mut self, devices: &[(PathBuf, u64)]) -> Result<(), Error> {
        let mut devices = devices.iter();
        Ok(devices.try_for_each(|(path, device)| watched::set_device(self.c, path, *device))?)
    }

    /// Changes the paths of files and their images, which are no longer missing.
    pub(super) fn shift(&mut self, moves: &[Move]) -> Result<(), Error> {
        let mut taken = Vec::new();
        // All rows leave before any returns, as files may have changed places.
        for one in moves {
            let row = watched::take(self.c, &one.row.path, one.row.stamp.inode)?;
            taken.extend(row.map(|row| (row, one)));
        }
        for (row, Move { to, stamp, .. }) in taken {
            let from = row.path.clone();
            let path = to.clone();
            let stamp = *stamp;
            // The image of a file that cannot be decoded waits for it.
            let waits = row.checksum.is_none();
            let id = if waits {
                watched::missing_at(self.c, &from)?
            } else {
                row.image_id
            };
            let image = id.map(|id| self.image(id)).transpose()?.flatten();
            watched::note(self.c, &WatchedFile { path, stamp, ..row })?;
            match image {
                Some(image) if image.path == from || image.missing_since.is_some() => {
                    self.give_file(&image, to)?;
                    if waits {
                        images::miss(self.c, image.id, 0)?;
                    }
                }
                _ => self.vacate(to, row.image_id)?,
            }
        }
        self.settle_losers()
    }

    /// Marks images whose files are gone, and removes those that have waited long enough. An image that
    /// was kept for a file that could not be decoded is missing from now on.
    pub(super) fn lose(&mut self, gone: &[(WatchedFile, Loss)]) -> Result<(), Error> {
        for (row, loss) in gone {
            let now = watched::get(self.c, &row.path)?;
            let is_it = |now: &WatchedFile| {
                (now.image_id, now.stamp.inode) == (row.image_id, row.stamp.inode)
            };
            let Some(now) = now.filter(is_it) else {
                continue;
            };
            let Some(id) = now.image_id else {
                // The first look that misses the file may not have seen its new name.
                if !watched::start_clock(self.c, &row.path, self.now)? {
                    watched::forget(self.c, &row.path)?;
                }
                continue;
            };
            let Some(image) = self.image(id)? else {
                // A copy stays.
                if *loss != Loss::Away {
                    watched::forget(self.c, &row.path)?;
                }
                continue;
            };
            let other = self.other_file(id)?;
            if let Some(other) = other.filter(|_| image.missing_since.is_none()) {
                let other = watched::get(self.c, &other)?;
                let is_same = other.is_some_and(|it| it.stamp.identity() == now.stamp.identity());
                // A file that is away may return, unless it is there under another name.
                if *loss != Loss::Away || is_same {
                    watched::forget(self.c, &row.path)?;
                }
                self.vacate(&row.path, None)?;
            } else {
                match loss {
                    Loss::Away => images::miss(self.c, id, 0)?,
                    Loss::Missing if image.missing_since.is_some_and(|since| since > 0) => {}
                    Loss::Missing => images::miss(self.c, id, self.now)?,
                    Loss::Expired => self.expire(image)?,
                }
            }
        }
        self.settle_losers()
    }

    /// Removes images without files that have waited long enough.
    pub(super) fn expire_all(&mut self, ids: &[i64]) -> Result<(), Error> {
        for &id in ids {
            let image = self.image(id)?;
            if let Some(image) = image.filter(|image| image.missing_since.is_some_and(|at| at > 0))
                && watched::of_image(self.c, id)?.is_empty()
            {
                self.expire(image)?;
            }
        }
        Ok(())
    }

    /// Removes an image. If another one has its file, that one gets its tags and its uses.
    fn expire(&mut self, image: Image) -> Result<(), Error> {
        watched::forget_image(self.c, image.id)?;
        let path = image.path.display();
        match watched::get(self.c, &image.path)?.and_then(|row| row.image_id) {
            Some(id) => {
                if let Some(successor) = images::get(self.c, id)? {
                    self.effects.departed.passed_on += edits::unite(self.c, &image, &successor)?;
                    self.effects.replaced.push(image.id);
                    log::info!("{path} is of image {id} now; removed image {}", image.id);
                }
            }
            None => log::info!("{path} was deleted; removed image {}", image.id),
        }
        Ok(self.effects.departed.end(self.c, image)?)
    }

    /// Gives the video of a package its title, unless the user has chosen a name. `before`: the title at
    /// the last look.
    pub(super) fn entitle(
        &mut self,
        video: &PackageVideo,
        before: Option<&str>,
    ) -> Result<(), Error> {
        let Some(image) = images::by_path(self.c, &video.path)? else {
            return Ok(());
        };
        let own = Name::from_path(&video.path, image.format)?;
        let stem = |title: &str| Name::from_title(title, own.extension.clone()).stem;
        let is_given = image.name == own.stem || before.is_some_and(|it| image.name == stem(it));
        let title = stem(&video.title);
        if is_given && !self.names.is_given(&title) && !images::has_name(self.c, &title)? {
            edits::set_name(self.c, image.id, &title)?;
            self.effects.departed.moved += 1;
        }
        Ok(())
    }

    /// Removes folders that were made for directories and are empty.
    pub(super) fn clear_folders(&mut self) -> Result<(), Error> {
        loop {
            let empty = watched::empty_folders(self.c)?;
            if empty.is_empty() {
                return Ok(());
            }
            for id in empty {
                folders::remove(self.c, id)?;
            }
            self.effects.folders_changed = true;
        }
    }

    /// Gives the content that was read from a file to the right image. Returns that image, if the file
    /// has one.
    pub(crate) fn place(&mut self, facts: &mut Facts) -> Result<Option<Imported>, Error> {
        let is_named = matches!(self.directory.which, Which::Named(_));
        let row = watched::get(self.c, &facts.path)?;
        let own = self.owner(row.as_ref(), &facts.path)?;
        // A client that names a file wants an image of it.
        let is_up_to_date = |row: &&WatchedFile| !is_named || row.image_id.is_some();
        let known = row.as_ref().filter(is_up_to_date);
        let same = self.same(facts, own.is_some())?;
        let read = place::Facts {
            path: &facts.path,
            stamp: &facts.stamp,
            checksum: facts.content.as_ref().ok(),
        };
        let placement = place(read, known, own.as_ref(), same);
        let (id, is_known) = self.carry_out(placement, facts, row.as_ref())?;
        self.settle_losers()?;
        self.context.watched.settled(&facts.path);
        let image = id.map(|id| task::read_image(self.c, id)).transpose()?;
        Ok(image.map(|image| Imported::new(image, is_known)))
    }

    /// Returns the image of the file, and whether the file was one of it before. A client that names a
    /// file of an image that is known is told so, too.
    fn carry_out(
        &mut self,
        placement: Placement,
        facts: &mut Facts,
        row: Option<&WatchedFile>,
    ) -> Result<(Option<i64>, bool), Error> {
        let is_named = matches!(self.directory.which, Which::Named(_));
        let before = row.and_then(|row| row.image_id);
        Ok(match placement {
            Placement::Nothing => (before, true),
            Placement::NoImage => {
                self.note(facts, None)?;
                (None, true)
            }
            Placement::Undecoded(id) => {
                self.note(facts, None)?;
                self.lose_content(id, &facts.path)?;
                (None, true)
            }
            Placement::Same { id, moves } => {
                self.add_file(facts, id, moves, row.is_none())?;
                (Some(id), is_named || !moves && before == Some(id))
            }
            Placement::Rewritten(id) => (self.rewrite(facts, id)?, false),
            Placement::New => (self.insert(facts)?, false),
        })
    }

    /// Places files whose content is that of an image: with `is_own`, of the image that they belong to.
    /// Returns the others.
    pub(super) fn place_known(
        &mut self,
        files: Vec<Facts>,
        is_own: bool,
    ) -> Result<Vec<Facts>, Error> {
        let mut others = Vec::new();
        for mut facts in files {
            let checksum = facts.content.as_ref().ok();
            let same = checksum.map(|sum| images::by_checksum(self.c, sum));
            let same = same.transpose()?.flatten().map(|image| image.id);
            let owner = watched::get(self.c, &facts.path)?.and_then(|row| row.image_id);
            if same.is_none() || is_own && owner != same {
                others.push(facts);
                continue;
            }
            self.place(&mut facts)?;
            self.effects.departed.moved += 1;
        }
        Ok(others)
    }

    /// The image of a row, or the missing one that had its file there.
    fn owner(&self, row: Option<&WatchedFile>, path: &Path) -> Result<Option<place::Owner>, Error> {
        let id = match row.and_then(|row| row.image_id) {
            Some(id) => Some(id),
            None => watched::missing_at(self.c, path)?,
        };
        let image = id.map(|id| self.image(id)).transpose()?.flatten();
        Ok(image.map(|image| place::Owner {
            id: image.id,
            is_missing: image.missing_since.is_some(),
            path: image.path,
        }))
    }

    /// What else has the content.
    fn same(&self, facts: &Facts, has_owner: bool) -> Result<Same, Error> {
        let Ok(checksum) = &facts.content else {
            return Ok(Same::Nothing);
        };
        if let Some(image) = images::by_checksum(self.c, checksum)? {
            let id = image.id;
            let is_there = image.missing_since.is_none();
            let is_intact =
                !image.in_place || is_there && self.has_its_file(&image, &facts.path)?;
            return Ok(Same::Image { id, is_intact });
        }
        let is_dismissed = match self.directory.which {
            Which::Named(_) => false,
            // The image was deleted in murald.
            Which::Only if !has_owner => true,
            _ => watched::is_dismissed(self.c, checksum)?,
        };
        Ok(if is_dismissed {
            Same::Dismissed
        } else {
            Same::Nothing
        })
    }

    /// Whether the file of an image still has its content, as far as is known.
    fn has_its_file(&self, image: &Image, read: &Path) -> Result<bool, Error> {
        if image.path == read {
            return Ok(true);
        }
        let row = watched::get(self.c, &image.path)?;
        let is_its = row.is_some_and(|row| row.image_id == Some(image.id));
        Ok(is_its && !self.context.watched.is_unsettled(&image.path))
    }

    /// Notes a file as one of this image.
    fn note(&self, facts: &Facts, image: Option<i64>) -> Result<(), Error> {
        let file = WatchedFile {
            path: facts.path.clone(),
            image_id: image,
            checksum: facts.content.as_ref().ok().copied(),
            stamp: facts.stamp,
        };
        Ok(watched::note(self.c, &file)?)
    }

    /// Adds a file to the image with its content. `moves`: the image uses it from now on.
    fn add_file(
        &mut self,
        facts: &Facts,
        id: i64,
        moves: bool,
        is_first: bool,
    ) -> Result<(), Error> {
        let path = &facts.path;
        match self.image(id)? {
            Some(image) if moves => {
                if image.missing_since.is_some_and(|since| since > 0) {
                    // All its other files are gone, and none is on a disk that is away.
                    watched::forget_image(self.c, id)?;
                }
                log::debug!(
                    "the file of {} is now {}",
                    image.path.display(),
                    path.display()
                );
                self.give_file(&image, path)?;
            }
            Some(_) => self.vacate(path, Some(id))?,
            None => {
                self.vacate(path, None)?;
                // A copy in no folder moves to that of the directory: it was imported from there before.
                if is_first
                    && self.directory.folders
                    && task::read_image(self.c, id)?.folder_id.is_none()
                {
                    edits::set_folder(self.c, id, self.folder(path)?)?;
                }
            }
        }
        self.note(facts, Some(id))
    }

    /// Gives an image the new content of its file. Returns nothing if that was not decoded: it was known
    /// when it was read. The look after the batch finds that it is to be read again.
    fn rewrite(&mut self, facts: &mut Facts, id: i64) -> Result<Option<i64>, Error> {
        let (Some(new), Some(old)) = (&facts.new, self.image(id)?) else {
            return Ok(None);
        };
        edits::rewrite(self.c, &old, &new.row)?;
        // Other files may still have the old content, and become an image of their own.
        let mut others = watched::of_image(self.c, id)?;
        others.retain(|other| *other != facts.path);
        watched::forget_image(self.c, id)?;
        self.effects.again.extend(others);
        self.give_file(&old, &facts.path)?;
        self.note(facts, Some(id))?;
        self.effects.rewritten.push(old);
        Ok(Some(id))
    }

    fn insert(&mut self, facts: &mut Facts) -> Result<Option<i64>, Error> {
        let folder = self.folder(&facts.path)?;
        let Some(new) = &mut facts.new else {
            return Ok(None);
        };
        new.row.folder_id = folder;
        let id = {
            let row = &new.row;
            self.vacate(&row.path.clone(), None)?;
            images::insert(self.c, row)?
        };
        self.note(facts, Some(id))?;
        Ok(Some(id))
    }

    /// Keeps an image whose file cannot be decoded, without a time limit.
    fn lose_content(&mut self, id: i64, path: &Path) -> Result<(), Error> {
        if self.image(id)?.is_some_and(|image| image.path == path) {
            images::miss(self.c, id, 0)?;
            self.losers.push(id);
        }
        Ok(())
    }

    /// An image in place.
    fn image(&self, id: i64) -> Result<Option<Image>, Error> {
        Ok(images::get(self.c, id)?.filter(|image| image.in_place))
    }

    /// Takes a path from the image that has it, unless that is the image `by`.
    fn vacate(&mut self, path: &Path, by: Option<i64>) -> Result<(), Error> {
        let displaced = watched::displace(self.c, path, by.unwrap_or_default(), self.now)?;
        self.losers.extend(displaced);
        Ok(())
    }

    /// A file of an image that the walk has not missed. One that is away is the last choice.
    fn other_file(&self, id: i64) -> Result<Option<PathBuf>, Error> {
        let is_away = |file: &PathBuf| self.context.watched.is_away(file);
        let mut files = watched::of_image(self.c, id)?;
        files.retain(|file| !self.missed.contains(file));
        Ok(files.into_iter().min_by_key(is_away))
    }

    /// Gives an image another one of its files, which is looked for soon. If its directory is away, the
    /// image is kept for its return.
    fn give_other(&mut self, image: &Image, to: PathBuf) -> Result<(), Error> {
        self.give_file(image, &to)?;
        if self.context.watched.is_away(&to) {
            images::miss(self.c, image.id, 0)?;
        }
        self.effects.again.push(to);
        Ok(())
    }

    /// Gives each image that has lost its path another of its files, if it has one.
    fn settle_losers(&mut self) -> Result<(), Error> {
        while let Some(id) = self.losers.pop() {
            let image = self.image(id)?;
            let Some(image) = image.filter(|image| image.missing_since.is_some()) else {
                continue;
            };
            match self.other_file(id)? {
                Some(other) => self.give_other(&image, other)?,
                // That look also notes when the time of the image is over.
                None => self.effects.again.push(image.path),
            }
        }
        Ok(())
    }

    /// Gives a file to an image. The image's name and folder follow it, unless the user has chosen
    /// others.
    fn give_file(&mut self, image: &Image, to: &Path) -> Result<(), Error> {
        self.vacate(to, Some(image.id))?;
        self.effects.departed.moved += 1;
        if image.missing_since.is_some() {
            // Its other files may have gone while it waited.
            let files = watched::of_image(self.c, image.id)?;
            let others = files.into_iter().filter(|file| file != to);
            self.effects.again.extend(others);
        }
        let from = &*image.path;
        if from == to {
            return Ok(edits::set_path(self.c, image.id, to, None)?);
        }
        let [before, after] = [from, to].map(|path| Name::from_path(path, image.format));
        let (before, after) = (before?.stem, after?.stem);
        let follows = image.name == before && before != after;
        let is_free = follows && !self.names.is_given(&after) && !images::has_name(self.c, &after)?;
        edits::set_path(self.c, image.id, to, is_free.then_some(&*after))?;
        if from.starts_with(&self.directory.path)
            && from.parent() != to.parent()
            && folder_of(self.c, self.directory, from, &mut |_, _| Ok(None))? == image.folder_id
        {
            edits::set_folder(self.c, image.id, self.folder(to)?)?;
        }
        Ok(())
    }

    /// The folder for the directory of a file, created if it is missing.
    fn folder(&mut self, file: &Path) -> Result<Option<i64>, Error> {
        let c = self.c;
        let effects = &mut *self.effects;
        folder_of(c, self.directory, file, &mut |name, parent| {
            let id = folders::insert(c, name, parent)?;
            watched::own_folder(c, id)?;
            effects.folders_changed = true;
            Ok(Some(id))
        })
    }
}

/// May create a folder of this name in a parent folder.
type Make<'a> = dyn FnMut(&str, Option<i64>) -> Result<Option<i64>, Error> + 'a;

/// The folder of a file; `make` is called for one that is missing.
fn folder_of(
    c: &Connection,
    directory: &Directory,
    file: &Path,
    make: &mut Make<'_>,
) -> Result<Option<i64>, Error> {
    if let Which::Named(folder) = directory.which {
        return Ok(folder.filter(|&id| folders::exists(c, id).unwrap_or(false)));
    }
    if !directory.folders {
        return Ok(None);
    }
    let own = directory.path.file_name().unwrap_or_default();
    let inside = file.parent();
    let inside = inside.and_then(|parent| parent.strip_prefix(&directory.path).ok());
    let names = std::iter::once(own).chain(inside.into_iter().flat_map(Path::iter));
    let mut at = None;
    for name in names.take(DEPTH_MAX) {
        let name = folder_name(&name.to_string_lossy());
        let found = match watched::folder(c, &name, at)? {
            Some(id) => Some(id),
            None => make(&name, at)?,
        };
        let Some(id) = found else { return Ok(None) };
        at = Some(id);
    }
    Ok(at)
}

/// A directory's name, made valid for a folder.
fn folder_name(name: &str) -> String {
    let clean = |c: char| if c.is_control() { '_' } else { c };
    let name: String = name.chars().map(clean).collect();
    match name.trim() {
        "" => "_".to_owned(),
        name => name.to_owned(),
    }
}

impl Rows<'_> {
    /// Forgets files, so that a new watch of their directory imports them again.
    pub(super) fn forget_files(&mut self, files: &[PathBuf]) -> Result<(), Error> {
        let mut files = files.iter();
        Ok(files.try_for_each(|path| watched::forget(self.c, path))?)
    }

    /// Removes images whose files belong to no watched directory; one with another file keeps that.
    pub(super) fn forget_images(&mut self, images: &[i64]) -> Result<(), Error> {
        for &id in images {
            let Some(image) = self.image(id)? else {
                continue;
            };
            match self.other_file(id)? {
                Some(other) => self.give_other(&image, other)?,
                None => self.effects.departed.end(self.c, image)?,
            }
        }
        self.settle_losers()
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::slice;
    use super::*;
    use crate::library::tests::{Scene, png};

    /// SQLite checks at each statement that no two images that are there have the same path.
    #[test]
    fn images_keep_their_files_when_these_swap_names_or_move_in_a_ring() {
        for ring in [
            vec!["a.png", "b.png"],
            vec!["a.png", "b.png", "c.png", "d.png"],
        ] {
            let scene = Scene::new();
            let mut alive = scene.start();
            alive.reconciled();
            let context = Arc::clone(alive.context());
            let files: Vec<PathBuf> = ring
                .iter()
                .zip(1..)
                .map(|(name, seed)| scene.source(name, png(seed)))
                .collect();
            let land = |file: &PathBuf| {
                let read = context.read_named(file, None, context.tools());
                (context.land)(read.map_err(|error| error.reason()).unwrap())
                    .unwrap()
                    .image
                    .id
            };
            let ids: Vec<i64> = files.iter().map(land).collect();
            let targets = files.iter().cycle().skip(1);
            let moved = files.iter().zip(targets).map(|(from, to)| {
                let row = context
                    .store
                    .read(|c| watched::get(c, from))
                    .unwrap()
                    .unwrap();
                Move {
                    stamp: row.stamp,
                    row,
                    to: to.clone(),
                }
            });
            let moves: Vec<Move> = moved.collect();
            let directory = Arc::new(Directory::from_file(&files[0], Which::All));
            slice(&alive.owner(), &directory, move |rows| rows.shift(&moves)).unwrap();
            for (id, to) in ids.iter().zip(files.iter().cycle().skip(1)) {
                let image = context
                    .store
                    .read(|c| images::by_path(c, to))
                    .unwrap()
                    .unwrap();
                assert_eq!((image.id, image.missing_since), (*id, None));
                let row = context
                    .store
                    .read(|c| watched::get(c, to))
                    .unwrap()
                    .unwrap();
                assert_eq!(row.image_id, Some(*id));
            }
            alive.end();
        }
    }

    #[test]
    fn row_of_a_file_that_is_away_stays_unless_it_is_there_under_another_name() {
        let scene = Scene::new();
        let mut alive = scene.start();
        alive.reconciled();
        let a = scene.source("a.png", png(1));
        let context = Arc::clone(alive.context());
        let read = context.read_named(&a, None, context.tools());
        (context.land)(read.map_err(|error| error.reason()).unwrap()).unwrap();
        let row = |path: &Path| context.store.read(|c| watched::get(c, path)).unwrap();
        let directory = Arc::new(Directory::from_file(&scene.at("source"), Which::All));
        for (name, inodes, stays) in [("link.png", 0, false), ("copy.png", 1, true)] {
            let mut other = row(&a).unwrap();
            other.path = scene.at("source").join(name);
            other.stamp.inode += inodes;
            let noted = context.store.write(|c| watched::note(c, &other));
            noted.unwrap();
            let gone = Arc::new(HashSet::from([other.path.clone()]));
            let lost = vec![(other.clone(), Loss::Away)];
            let lose = move |rows: &mut Rows<'_>| rows.without(gone).lose(&lost);
            slice(&alive.owner(), &directory, lose).unwrap();
            assert_eq!(row(&other.path).is_some(), stays, "{name}");
        }
        alive.end();
    }

    #[test]
    fn folder_names_have_no_control_characters() {
        for (name, expected) in [("sea", "sea"), (" a\tb ", "a_b"), ("\n", "_"), ("  ", "_")] {
            assert_eq!(folder_name(name), expected);
        }
    }
}
