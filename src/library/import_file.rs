//! Prepares one file for an import: looks at it, copies it (or leaves it where it is) and decodes it.
//! Runs in the import workers, and on threads that import one file. Only the thread `library` lands it.
//!
//! The order makes a kill harmless at any time. The copy is made under a temporary name and flushed;
//! then it is landed (`landing`). The next start removes temporary and pending files. The source is
//! never changed.

use std::path::{Path, PathBuf};

use super::Error;
use super::context::ImportContext;
use super::decode::{FileLook, MakeScratch, Tools};
use super::disk::{Scratch, flush, stamp};
use super::name::Name;
use super::task::{Imported, Prepared, Ready, Source, has_lost_its_file};
use crate::color;
use crate::decode;
use crate::digest::{self, Checksum};
use crate::media::Note;
use crate::store::images::{self, NewImage};
use crate::store::watched;
use crate::transcode;
use crate::wire::{Image, MediaType, Resolution};

impl ImportContext {
    /// Copies a file or a package, unless its content is already in the library. One that is in the
    /// library's directory stays there and gets a row.
    pub(super) fn prepare(
        &self,
        source: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let looked = tools.decoder.look(source);
        // Only if the disk of the source answers: this thread reads it.
        let answers = matches!(looked, Ok(_) | Err(decode::Error::Directory));
        if answers && self.is_in_library(source) {
            return self.adopt(source, tools);
        }
        match looked {
            Err(decode::Error::Directory) => self.prepare_package(source, folder, tools),
            looked => {
                self.prepare_file(source, Source::from_looked(source, looked)?, folder, tools)
            }
        }
    }

    pub(super) fn prepare_file(
        &self,
        path: &Path,
        source: Source,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        self.check(path, &source, tools)?;
        // Duplicates are rare, but come in thousands: reading a source is cheaper than copying it.
        if self.store.read(|c| images::has_size(c, source.meta.size))? {
            let hashed = tools
                .decoder
                .checksum(path)
                .map_err(Error::decoding(path))?;
            if let Some(imported) = self.present(&hashed.checksum)?
                && !self.lacks_file(&imported.image)?
            {
                return Ok(imported.into());
            }
        }
        let mut copy = self.new_copy()?;
        let note = source.note();
        let name = source.name;
        copy.fill(path, tools.decoder)?;
        if let Some(imported) = self.present(&copy.checksum)? {
            if !self.lacks_file(&imported.image)? {
                return Ok(imported.into());
            }
            flush(&copy)?;
            return Ok(Prepared::Restored {
                copy,
                name,
                imported: Box::new(imported),
            });
        }
        let row = self.describe(path, copy.file(), folder, tools)?;
        flush(&copy)?;
        Ok(Prepared::Copy(Box::new(Ready {
            copy,
            name,
            row,
            note,
        })))
    }

    /// Refuses unsupported and too large files before they are copied.
    pub(super) fn check(
        &self,
        path: &Path,
        source: &Source,
        tools: Tools<'_>,
    ) -> Result<(), Error> {
        let Err(why) = &source.header else {
            return Ok(());
        };
        let decode::Error::NeedsTranscoder {
            format,
            special,
            ref traits,
            ..
        } = *why
        else {
            return Err(Error::decoding(path)(why.clone()));
        };
        let checked = match format.media_type() {
            MediaType::Video => tools.ffmpeg.facts(path, format).map(drop),
            MediaType::Image | MediaType::Web => transcode::require_for(format, traits),
        };
        checked.map_err(|source| {
            if special {
                // The decoder's error for it says more than ffmpeg's failure.
                Error::decoding(path)(why.clone())
            } else {
                Error::Transcode {
                    path: path.to_owned(),
                    source,
                }
            }
        })
    }

    /// Gives a row to a file that somebody put into the library's directory, or rewrote there.
    /// Never removes it.
    fn adopt(&self, path: &Path, tools: Tools<'_>) -> Result<Prepared, Error> {
        let source = match tools.decoder.look(path) {
            Err(decode::Error::Directory) => return self.adopt_package(path, tools),
            looked => Source::from_looked(path, looked)?,
        };
        let hashed = tools
            .decoder
            .checksum(path)
            .map_err(Error::decoding(path))?;
        let path = path.to_owned();
        let name = source.name;
        if let Some(imported) = self.present(&hashed.checksum)? {
            if imported.image.path != path && !has_lost_its_file(&imported.image) {
                return Ok(imported.into());
            }
            let image = Box::new(imported.image);
            return Ok(Prepared::Returned { path, image });
        }
        let file = (&*path, hashed.checksum, hashed.meta.size);
        let row = Box::new(self.describe(&path, file, None, tools)?);
        Ok(Prepared::Here { path, row, name })
    }

    /// Decodes a file with this checksum and size, which is `source` or its copy, puts its thumbnail
    /// into the cache, and returns its row.
    pub(super) fn describe(
        &self,
        source: &Path,
        (file, checksum, file_size): (&Path, Checksum, u64),
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<NewImage, Error> {
        // No thumbnails of files in other directories: there may be thousands that nobody looks at.
        let new = if file.starts_with(&self.directory) {
            self.new_thumbnail(source)
        } else {
            None
        };
        let look = self.look(source, file, new.as_ref(), tools)?;
        if let Some(new) = new.filter(|new| new.path().exists()) {
            self.put_thumbnail(source, &checksum, &new);
        }
        let is_video = look.format.media_type() == MediaType::Video;
        Ok(NewImage {
            name: String::new(),
            path: PathBuf::new(),
            format: look.format,
            width: look.width,
            height: look.height,
            duration: look.facts.as_ref().map_or(0.0, |facts| facts.duration),
            animated: look.animated,
            audio_enabled: is_video && (self.audio)(),
            file_size,
            checksum,
            hue_group: color::hue_group(&look.colors),
            colors: look.colors,
            folder_id: folder,
            source_path: source.to_owned(),
            in_place: false,
            web: None,
        })
    }

    /// A file for a thumbnail; `None` if it cannot be created, as the import does not need it.
    pub(super) fn new_thumbnail(&self, source: &Path) -> Option<Scratch> {
        let new = self.thumbnails.new_file(Resolution::Default);
        new.inspect_err(|error| no_thumbnail(source, error)).ok()
    }

    pub(super) fn put_thumbnail(&self, source: &Path, checksum: &Checksum, new: &Scratch) {
        let put = self
            .thumbnails
            .put(&digest::hex(checksum), Resolution::Default, new);
        put.inspect_err(|error| no_thumbnail(source, error)).ok();
    }

    /// Removes the thumbnail of a file that does not land, unless an image has the same content.
    pub(super) fn give_up(&self, prepared: &Prepared) {
        let Prepared::Copy(ready) = prepared else {
            return;
        };
        let checksum = &ready.copy.checksum;
        if matches!(
            self.store.read(|c| images::by_checksum(c, checksum)),
            Ok(None)
        ) {
            self.thumbnails
                .take_back(&digest::hex(checksum), Resolution::Default);
        }
    }

    /// Decodes a file, with ffmpeg or other programs if murald cannot.
    fn look(
        &self,
        source: &Path,
        path: &Path,
        new: Option<&Scratch>,
        tools: Tools<'_>,
    ) -> Result<FileLook, Error> {
        let scratch: MakeScratch<'_> = &|| self.thumbnails.scratch();
        let (size, to) = (Resolution::Default, new.map(Scratch::path));
        let look = match tools.thumbnail(path, size, scratch, to) {
            Err(
                error @ Error::File {
                    action: "write", ..
                },
            ) if to.is_some() => {
                no_thumbnail(source, &error);
                tools.thumbnail(path, size, scratch, None)
            }
            look => look,
        };
        let look = look.map_err(|error| error.about(path, source))?;
        if let Some(facts) = &look.facts {
            let whole = tools.ffmpeg.check_end(path, look.format, facts);
            whole.map_err(Error::transcoding(source))?;
        }
        Ok(look)
    }

    pub(super) fn present(&self, checksum: &Checksum) -> Result<Option<Imported>, Error> {
        let image = self.store.read(|c| images::by_checksum(c, checksum))?;
        Ok(image.map(|image| self.complete(Imported::new(image, true))))
    }

    /// Whether the file of an image is missing. A file in place may have been written since its row was.
    pub(super) fn lacks_file(&self, image: &Image) -> Result<bool, Error> {
        if !image.in_place || has_lost_its_file(image) {
            return Ok(has_lost_its_file(image));
        }
        let row = self.store.read(|c| watched::get(c, &image.path))?;
        let now = image.path.metadata().ok();
        Ok(now.is_some_and(|now| row.is_some_and(|row| !row.stamp.same_written(&stamp(&now)))))
    }

    /// Prepares a file that stays where it is, unless its content is in the library already.
    pub(super) fn prepare_in_place(
        &self,
        source: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        // A file in the library's directory is a copy already, and is not used in place.
        if source.starts_with(&self.directory) {
            return self.prepare(source, folder, tools);
        }
        self.read_named(source, folder, tools)
    }

    /// The name, row and note for a file that stays where it is.
    pub(super) fn describe_in_place(
        &self,
        path: &Path,
        checksum: Checksum,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<(Name, NewImage, Option<Note>), Error> {
        let source = Source::look_at(path, tools.decoder)?;
        self.check(path, &source, tools)?;
        let file = (path, checksum, source.meta.size);
        let mut row = self.describe(path, file, folder, tools)?;
        row.in_place = true;
        let note = source.note();
        Ok((source.name, row, note))
    }
}

/// Logs that a thumbnail was not written; it is made when a client asks for it.
pub(super) fn no_thumbnail(source: &Path, error: &Error) {
    log::warn!(
        "cannot create a thumbnail of {}: {}",
        source.display(),
        error.reason()
    );
}
