//! Changes images and folders for their owner. Runs on the calling thread, but changes of names and
//! manifests on the thread `library`, one after another.
//!
//! A rename is noted, then the row is changed and the file renamed inside one transaction. After a kill
//! the row decides: if it still has the old path, the next start renames the file back. The manifest of
//! a package is written last, and gets its old text back if the transaction fails.

use std::path::Path;
use std::{fs, io};

use super::context::ImportContext;
use super::disk::{self, TEMPORARY, lacks_directory, rename, sync_directory};
use super::landing::LibraryFiles;
use super::name::{NAME_MAX, Name};
use super::package::{self, Before};
use super::removal::{Files, Removed, Which};
use super::{Error, Library};
use crate::error_chain::chain;
use crate::store::edits::{self, ImageChange, Rename};
use crate::store::folders::{self, FolderChange, Refusal};
use crate::store::{Connection, images};
use crate::wire::{Difference, Event, Folder, GalleryDomain, Image, ListChange};

impl Library {
    /// Changes an image; with a new name its file is renamed too. A taken name gets `_1`, `_2`...
    pub fn edit(&self, id: i64, name: Option<&str>, change: &ImageChange) -> Result<Image, Error> {
        let image = self.image(id)?;
        if name.is_some() || image.web_meta.is_some() {
            // A hung disk would block the transaction, and with it every writer.
            disk::answers(&image.path)?;
        }
        if (change.overrides.is_some() || change.capabilities.is_some()) && image.web_meta.is_none()
        {
            return Err(Error::NotWeb { id });
        }
        if let (Some(meta), Some(overrides)) = (&image.web_meta, &change.overrides) {
            let declared = meta.wallpaper_config.fields();
            if let Some(key) = overrides.keys().find(|key| !declared.contains_key(*key)) {
                return Err(Error::Undeclared { key: key.clone() });
            }
        }
        if name.is_some() || change.capabilities.is_some() {
            let name = name.map(str::to_owned);
            let change = change.clone();
            let owner = &self.owner;
            return owner.call(move |files| files.edit(id, name.as_deref(), &change));
        }
        let changed = self.store.write(|c| {
            edits::change(c, id, change)?;
            read(c, id)
        })?;
        if changed != image {
            self.changed(GalleryDomain::Images);
        }
        Ok(changed)
    }

    /// Adds and removes tags of images, of all or of none; returns how many were changed.
    pub fn retag(&self, ids: &[i64], tags: Difference<String>) -> Result<usize, Error> {
        let change = ImageChange {
            tags: Some(ListChange::Some(tags)),
            ..ImageChange::default()
        };
        let updated = self.store.write(|c| {
            let retag = |&id: &i64| -> Result<usize, Error> {
                let before = read(c, id)?.tags;
                edits::change(c, id, &change)?;
                Ok((read(c, id)?.tags != before).into())
            };
            ids.iter().map(retag).sum::<Result<usize, Error>>()
        })?;
        if updated > 0 {
            self.changed(GalleryDomain::Images);
        }
        Ok(updated)
    }

    /// Selects all images, or none; returns how many were changed.
    pub fn select_all(&self, selected: bool) -> Result<usize, Error> {
        let updated = self.store.write(|c| edits::select_all(c, selected))?;
        if updated > 0 {
            self.changed(GalleryDomain::Images);
        }
        Ok(updated)
    }

    pub(super) fn image(&self, id: i64) -> Result<Image, Error> {
        self.store.read(|c| read(c, id))
    }
}

impl LibraryFiles {
    /// Changes an image with its name, or with the capabilities of its package.
    fn edit(&mut self, id: i64, name: Option<&str>, change: &ImageChange) -> Result<Image, Error> {
        let image = self.context.store.read(|c| read(c, id))?;
        let renamed = name
            .map(|name| wanted_name(&image, name))
            .transpose()?
            .flatten();
        // The row is read in the transaction that changes it, so that no later error can report the
        // change as failed.
        let changed = match renamed {
            Some(name) => self.rename(&image, &name, change)?,
            None => self.change(id, change)?,
        };
        if changed != image {
            self.context.bus.publish(&Event::GalleryChanged {
                domain: GalleryDomain::Images,
            });
        }
        if changed.web_meta.is_some() && changed.path != image.path {
            // A page that is shown keeps reading its files, so it must be shown from its new path.
            self.context.tell_rewritten(id);
        }
        Ok(changed)
    }

    fn change(&self, id: i64, change: &ImageChange) -> Result<Image, Error> {
        let mut manifest = None;
        let done = self.context.store.write(|c| {
            edits::change(c, id, change)?;
            let changed = read(c, id)?;
            manifest = follow(&changed, change)?;
            Ok(changed)
        });
        put_back(manifest.filter(|_| done.is_err()));
        done
    }

    pub(super) fn rename(
        &mut self,
        image: &Image,
        name: &Name,
        change: &ImageChange,
    ) -> Result<Image, Error> {
        let Self { context, names, .. } = self;
        let directory = if image.in_place {
            &*context.directory
        } else {
            image.home().parent().unwrap_or(Path::new("/"))
        };
        let own = Some(image.name.as_str());
        let free = names.free(name, directory, &context.store, own)?;
        if image.in_place {
            // The file belongs to its owner, and keeps its name.
            return context.store.write(|c| {
                edits::change(c, image.id, change)?;
                edits::set_name(c, image.id, &free.name)?;
                read(c, image.id)
            });
        }
        if !context.is_in_library(image.home()) {
            // The database comes from another machine: the file is not murald's.
            return Err(Error::FileGone { id: image.id });
        }
        if free.path == image.home() {
            return self.change(image.id, change);
        }
        let file_name = free.path.file_name().unwrap_or_default();
        if file_name.len() > NAME_MAX {
            let why = "it is in use, and too long to append a number";
            return Err(Error::BadName {
                name: name.stem.clone(),
                why,
            });
        }
        let moving = Rename {
            image_id: image.id,
            from: image.home().to_owned(),
            to: free.path.clone(),
        };
        // Committed before the file moves, so that a power failure cannot lose the note.
        context.store.write(|c| edits::begin_rename(c, &moving))?;
        let mut moved = false;
        let mut manifest = None;
        let done = context.store.write(|c| -> Result<Image, Error> {
            edits::change(c, image.id, change)?;
            // Read again: the image may have been deleted, and its file is about to be removed.
            let now = images::get(c, image.id)?.filter(|now| now.home() == moving.from);
            let now = now.ok_or(Error::NoImage { id: image.id })?;
            edits::finish_rename(c, &now, &moving, &free.name)?;
            let renamed = read(c, image.id)?;
            // Inside the transaction: a thread that does not find the file waits for the transaction
            // (`Library::moved`), and then reads the new path.
            rename(&moving.from, &moving.to).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::FileGone { id: image.id },
                _ => Error::file("rename", &moving.from)(error),
            })?;
            moved = true;
            // Flushed before the commit, so that after a power failure no row has a path without a file.
            sync_directory(directory)?;
            manifest = follow(&renamed, change)?;
            Ok(renamed)
        });
        if done.is_err() {
            put_back(manifest);
            if moved {
                rename(&moving.to, &moving.from).map_err(Error::file("rename", &moving.to))?;
            }
            // If the note stays, the next start reads it and finds nothing to undo.
            let store = &context.store;
            store.note(|c| edits::forget_rename(c, image.id)).ok();
        }
        done
    }
}

/// Checks a name; `None` if the image has that name already.
fn wanted_name(image: &Image, name: &str) -> Result<Option<Name>, Error> {
    let extension = extension(image);
    let stem = name.trim();
    let own = if extension.is_empty() {
        None
    } else {
        Some(format!(".{extension}"))
    };
    let stem = own
        .and_then(|own| stem.strip_suffix(&own))
        .unwrap_or(stem)
        .trim_end();
    let bad = |why| {
        Err(Error::BadName {
            name: name.to_owned(),
            why,
        })
    };
    if stem.is_empty() {
        return bad("it is empty");
    }
    if stem == "." || stem == ".." {
        return bad("it means a directory");
    }
    if stem.starts_with(TEMPORARY) {
        return bad("files with such names are removed at each start");
    }
    if stem.contains(['/', '\\']) || stem.chars().any(char::is_control) {
        return bad("it has a separator or a control character");
    }
    let suffix = if extension.is_empty() {
        0
    } else {
        1 + extension.len()
    };
    if stem.len() + suffix > NAME_MAX {
        return bad("with its extension the file's name would have more than 255 bytes");
    }
    let name = Name {
        stem: stem.to_owned(),
        extension: extension.to_owned(),
    };
    Ok((stem != image.name).then_some(name))
}

fn read(connection: &Connection, id: i64) -> Result<Image, Error> {
    images::get(connection, id)?.ok_or(Error::NoImage { id })
}

/// The extension of an image's file. A package has none, even with dots in its name.
fn extension(image: &Image) -> &str {
    match image.web_meta {
        Some(_) => "",
        None => image
            .path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default(),
    }
}

/// Writes changed capabilities into the package's manifest, as the host of web pages reads it.
fn follow(changed: &Image, change: &ImageChange) -> Result<Option<Before>, Error> {
    let meta = changed
        .web_meta
        .as_ref()
        .filter(|_| change.capabilities.is_some());
    meta.map(package::write_capabilities).transpose()
}

/// Restores a manifest after a failed change, which may have granted a page the network.
fn put_back(manifest: Option<Before>) {
    if let Some(Err(error)) = manifest.map(|before| before.put_back()) {
        log::error!(
            "cannot restore the permissions of a package: {}",
            chain(&error)
        );
    }
}

/// Undoes renames that a kill has interrupted. Runs at the start, before anything else.
pub(super) fn undo_renames(context: &ImportContext) -> Result<(), Error> {
    let renames = context.store.read(edits::renames)?;
    for moving in renames
        .into_iter()
        .filter(|moving| !lacks_directory(&moving.from))
    {
        let image = context.store.read(|c| images::get(c, moving.image_id))?;
        // A database from another machine may name any files.
        let is_ours = [&moving.from, &moving.to]
            .iter()
            .all(|path| context.is_ours(path));
        let stays = is_ours && image.is_some_and(|image| image.home() == moving.from);
        if stays && !exists(&moving.from) && exists(&moving.to) {
            rename(&moving.to, &moving.from).map_err(Error::file("rename", &moving.to))?;
            log::info!("restored the name of {}", moving.from.display());
        }
        context
            .store
            .write(|c| edits::forget_rename(c, moving.image_id))?;
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// What was deleted with a folder.
pub struct Deleted {
    pub removed: Removed,
    pub folders: usize,
}

impl Library {
    pub fn create_folder(&self, name: &str, parent: Option<i64>) -> Result<Folder, Refusal> {
        let folder = self.store.write(|c| {
            let id = folders::insert(c, name, parent)?;
            folders::get(c, id)?.ok_or(Refusal::NoFolder { id })
        })?;
        self.changed(GalleryDomain::Folders);
        Ok(folder)
    }

    pub fn change_folder(&self, id: i64, change: &FolderChange) -> Result<Folder, Refusal> {
        let (changed, folder) = self.store.write(|c| -> Result<_, Refusal> {
            let changed = folders::update(c, id, change)?;
            Ok((
                changed,
                folders::get(c, id)?.ok_or(Refusal::NoFolder { id })?,
            ))
        })?;
        if changed {
            self.changed(GalleryDomain::Folders);
        }
        Ok(folder)
    }

    /// Removes a folder; its images and folders move to its parent.
    pub fn dissolve_folder(&self, id: i64) -> Result<Deleted, Refusal> {
        let images = self.store.write(|c| folders::dissolve(c, id))?;
        if images > 0 {
            self.changed(GalleryDomain::Images);
        }
        self.changed(GalleryDomain::Folders);
        Ok(Deleted {
            removed: Removed::default(),
            folders: 1,
        })
    }

    /// Removes a folder with all folders and images below it, and their files: into the trash, or for
    /// good. Files in place stay.
    pub fn delete_folder(&self, id: i64, trash: bool) -> Result<Deleted, Error> {
        let files = Files {
            in_place: false,
            trash,
        };
        let (removed, folders) = self.take_out(Which::In(id), files, move |c| {
            if !folders::exists(c, id)? {
                return Err(Error::Folder(Refusal::NoFolder { id }));
            }
            Ok(folders::remove(c, id)?)
        })?;
        self.changed(GalleryDomain::Folders);
        Ok(Deleted { removed, folders })
    }

    /// Moves images into a folder, or with `None` to the root; returns how many of them exist.
    pub fn move_images(&self, images: &[i64], folder: Option<i64>) -> Result<usize, Refusal> {
        let moved = self
            .store
            .write(|c| folders::move_images(c, images, folder))?;
        if moved.came > 0 {
            self.changed(GalleryDomain::Images);
        }
        Ok(moved.there)
    }

    pub(super) fn changed(&self, domain: GalleryDomain) {
        self.bus.publish(&Event::GalleryChanged { domain });
    }
}
