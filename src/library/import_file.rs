//! Imports one file: looks at it, copies it (or leaves it where it is) and decodes it. Runs in the
//! import workers.
//!
//! The order makes a kill harmless at any time. The copy is made under a temporary name and flushed;
//! then it is committed (`landing`). The next start removes temporary and pending files. The source is
//! never changed.

use std::ffi::OsStr;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::Error;
use super::commit_order::Turn;
use super::context::ImportContext;
use super::decode::{self, Decoded, VideoFrame, guarded};
use super::disk::{self, Copy, flush, rename};
use super::name::Name;
use super::task::{self, Imported, Landed, Ready, Source};
use crate::color;
use crate::digest::{self, Checksum};
use crate::media::Error::NeedsTranscoder;
use crate::media::{self, Stop};
use crate::store::images::{self, NewImage};
use crate::store::{edits, pending_files};
use crate::sys::Patient;
use crate::transcode::{self};
use crate::wire::{Format, Image, MediaType, Resolution};

/// Bytes of a picture's file: the largest that are decoded, with sixteen bits a sample, have half.
const PICTURE_MAX: u64 = 2 << 30;

/// The properties of a file, and a small picture of it.
struct FileLook {
    format: Format,
    width: u32,
    height: u32,
    duration: f64,
    animated: bool,
    thumbnail: media::Thumbnail,
}

impl ImportContext {
    /// Takes a copy of a file or a package into the library when it is its turn, unless its content is
    /// there already.
    pub(super) fn import(
        &self,
        source: &Path,
        folder: Option<i64>,
        turn: &Turn,
        stop: Stop<'_>,
    ) -> Landed {
        disk::answers_in(&self.directory)?;
        match source.is_dir() {
            true => self.import_package(source, folder, (turn, stop)),
            false => self.import_file(source, Source::look_at(source)?, folder, turn, stop),
        }
    }

    pub(super) fn import_file(
        &self,
        source: &Path,
        looked: Source,
        folder: Option<i64>,
        turn: &Turn,
        stop: Stop<'_>,
    ) -> Landed {
        let Source { mut file, format, name, size } = looked;
        self.check(source, format, size)?;
        // A copy of something that is there already is seldom imported, but then thousands at
        // once: read, not written.
        if self.store.read(|c| images::has_size(c, size))? {
            let checksum = disk::checksum(source, &mut file, stop)?;
            let present = self.present(&checksum)?;
            if let Some(imported) = present.filter(|imported| !imported.has_lost_its_file()) {
                return Ok(imported);
            }
        }
        let mut copy = self.new_copy();
        copy.fill(source, &mut file, stop)?;
        drop(file);
        if let Some(imported) = self.present(&copy.checksum)? {
            return self.restore_file(copy, &name, imported);
        }
        let row = self.describe(source, &copy, folder, stop)?;
        turn.rest();
        flush(&copy)?;
        turn.land(Ready { copy, name, row }, |all| self.land_all(all))
    }

    /// Looks at the headers of what would be taken, and refuses what is none of ours, or too much,
    /// before its bytes are.
    pub(super) fn check(&self, source: &Path, format: Format, size: u64) -> Result<(), Error> {
        let transcodable = |format| {
            let failed = |error| Error::Transcode { path: source.to_owned(), source: error };
            self.ffmpeg.facts(source, format).map(drop).map_err(failed)
        };
        if transcode::is_needed_for(format) {
            return transcodable(format);
        }
        if size > PICTURE_MAX {
            return Err(Error::TooLong { path: source.to_owned(), bytes: size });
        }
        let file = disk::open(source)?;
        match guarded(source, || {
            media::probe(&mut BufReader::with_capacity(64 << 10, Patient(file)))
        }) {
            // A variety that is not decoded here. What is special about it says more than ffmpeg's
            // failure.
            Err(Error::Media { path, source: NeedsTranscoder { format, why } })
                if transcode::is_available() =>
            {
                let source = NeedsTranscoder { format, why };
                transcodable(format).map_err(|_| Error::Media { path, source })
            }
            probed => probed.map(drop),
        }
    }

    /// Gives a row to a file that somebody put into the library's directory, or rewrote there.
    /// Never removes it.
    pub(super) fn adopt(&self, path: &Path, stop: Stop<'_>) -> Result<Imported, Error> {
        if path.is_dir() {
            return self.adopt_package(path);
        }
        let Source { mut file, name, size, .. } = Source::look_at(path)?;
        let checksum = disk::checksum(path, &mut file, stop)?;
        if let Some(imported) = self.present(&checksum)? {
            return Ok(imported);
        }
        // Kept from the start: it is not ours to remove.
        let copy = Copy { path: path.to_owned(), kept: true, checksum, size };
        let row = self.describe(path, &copy, None, stop)?;
        match self.store.read(|c| images::by_path(c, path))? {
            Some(old) => self.write_anew(&old, &row),
            None => self.keep(path, path.file_stem(), &name, row),
        }
    }

    /// Has the row of an image say what its file holds now.
    fn write_anew(&self, old: &Image, row: &NewImage) -> Result<Imported, Error> {
        self.store.write(|c| -> Result<(), Error> {
            let is_old = |now: &Image| (&now.path, &now.checksum) == (&old.path, &old.checksum);
            let now = images::get(c, old.id)?.filter(is_old).ok_or(Error::LeftAlone)?;
            Ok(edits::rewrite(c, &now, row)?)
        })?;
        self.thumbnails.remove(old);
        self.tell_rewritten(old.id);
        self.imported(old.id, false)
    }

    /// Gives a row to what lies in the directory already, under its own name where that is free.
    pub(super) fn keep(
        &self,
        path: &Path,
        own: Option<&OsStr>,
        name: &Name,
        mut row: NewImage,
    ) -> Result<Imported, Error> {
        if self.store.read(|c| pending_files::has(c, path))? {
            // Deleted a moment ago: its row is gone, the file is about to follow.
            return Err(Error::NotFile { path: path.to_owned() });
        }
        let stem = &name.stem;
        let held = match own == Some(OsStr::new(stem)) {
            true => self.names.try_hold(stem, path),
            false => None,
        };
        // Until it has its row: files that differ in their extensions want the same name.
        let reserved = match held {
            Some(held) if !self.store.read(|c| images::has_name(c, stem))? => held,
            taken => {
                drop(taken);
                let reserved = self.names.reserve(name, &self.directory, &self.store, None)?;
                rename(path, &reserved.path).map_err(Error::file("rename", path))?;
                reserved
            }
        };
        row.settle(&reserved.name, &reserved.path);
        let image = self.store.write(|c| task::insert_image(c, &row))?;
        Ok(self.complete(Imported { image, duplicate: false }))
    }

    /// Decodes what was copied, and leaves its thumbnail in the cache.
    pub(super) fn describe(
        &self,
        source: &Path,
        copy: &Copy,
        folder: Option<i64>,
        stop: Stop<'_>,
    ) -> Result<NewImage, Error> {
        let look = self.look(source, copy, stop)?;
        let hex = digest::hex(&copy.checksum);
        // There may be thousands of files in other directories that nobody ever looks at.
        let put = match copy.path.starts_with(&self.directory) {
            true => self.thumbnails.put(&hex, Resolution::Default, &look.thumbnail.webp),
            false => Ok(()),
        };
        if let Err(error) = put {
            // It is made again when it is asked for.
            log::warn!("no thumbnail of {}: {}", source.display(), error.reason());
        }
        let colors = media::palette(&look.thumbnail.picture);
        Ok(NewImage {
            name: String::new(),
            path: PathBuf::new(),
            format: look.format,
            width: look.width,
            height: look.height,
            duration: look.duration,
            animated: look.animated,
            audio_enabled: look.format.media_type() == MediaType::Video && (self.audio)(),
            file_size: copy.size,
            checksum: copy.checksum,
            hue_group: color::hue_group(&colors),
            colors,
            folder_id: folder,
            source_path: source.to_owned(),
            in_place: false,
            web: None,
        })
    }

    /// Decodes a file by ourselves where we can, else by ffmpeg.
    fn look(&self, source: &Path, copy: &Copy, stop: Stop<'_>) -> Result<FileLook, Error> {
        let file = disk::open(&copy.path)?;
        let mut input = BufReader::with_capacity(64 << 10, Patient(file));
        let (size, budget) = (Resolution::Default, &self.budget);
        match decode::thumbnail(source, &mut input, size, budget, stop) {
            Err(Error::Media { path, source: NeedsTranscoder { format, why } }) => {
                let (file, scratch) = ((&*copy.path, format), self.thumbnails.scratch()?);
                let scratch = scratch.path();
                let framed = decode::video_frame(&self.ffmpeg, file, None, size, scratch, budget);
                let VideoFrame { facts, thumbnail } = match why {
                    None => framed?,
                    why => framed.map_err(|_| {
                        let source = NeedsTranscoder { format, why };
                        Error::Media { path, source }
                    })?,
                };
                let video = format.media_type() == MediaType::Video;
                if video {
                    let whole = self.ffmpeg.check_end(file.0, format, &facts);
                    let path = source.to_owned();
                    whole.map_err(|source| Error::Transcode { path, source })?;
                }
                let duration = if video { facts.duration } else { 0.0 };
                let (width, height) = (facts.width, facts.height);
                Ok(FileLook { format, width, height, duration, animated: false, thumbnail })
            }
            decoded => {
                let Decoded { probe, thumbnail } = decoded?;
                let media::Probe { format, width, height, animated, .. } = probe;
                Ok(FileLook { format, width, height, duration: 0.0, animated, thumbnail })
            }
        }
    }

    pub(super) fn present(&self, checksum: &Checksum) -> Result<Option<Imported>, Error> {
        let find = || self.store.read(|c| images::by_checksum(c, checksum));
        let mut image = find()?;
        if let Some(in_place) = image.as_ref().filter(|image| image.in_place) {
            self.see_again(in_place)?;
            image = find()?;
        }
        Ok(image.map(|image| self.complete(Imported { image, duplicate: true })))
    }

    /// Gives a row to a file that stays where it is, unless its content is there already.
    pub(super) fn import_in_place(
        &self,
        source: &Path,
        folder: Option<i64>,
        turn: &Turn,
        stop: Stop<'_>,
    ) -> Result<Imported, Error> {
        // A file in our directory has its row, or gets it as all files there do.
        if source.starts_with(&self.directory) {
            return self.import(source, folder, turn, stop);
        }
        let imported = match self.take_named(source, folder, (turn, stop)) {
            Err(Error::LeftAlone) => {
                let error = io::Error::other("it is being written");
                return Err(Error::file("read", source)(error));
            }
            imported => imported?,
        };
        match !imported.image.in_place && imported.has_lost_its_file() {
            // A copied file is copied once more.
            true => self.import(source, folder, turn, stop),
            false => Ok(imported),
        }
    }

    /// The name and row for a file that stays where it is.
    pub(super) fn describe_in_place(
        &self,
        source: &Path,
        checksum: Checksum,
        folder: Option<i64>,
        stop: Stop<'_>,
    ) -> Result<(Name, NewImage), Error> {
        let Source { format, name, size, .. } = Source::look_at(source)?;
        self.check(source, format, size)?;
        let copy = Copy { path: source.to_owned(), kept: true, checksum, size };
        let mut row = self.describe(source, &copy, folder, stop)?;
        row.in_place = true;
        Ok((name, row))
    }
}
