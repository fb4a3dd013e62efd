//! Imports one file or package outside of any batch, and makes a still picture of any image.
//!
//! Runs on the thread that asks, which waits for the copy, for decoding and for ffmpeg.

use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::commit_order::Turns;
use super::task::Source;
use super::{Error, Library, decode, disk, package};
use crate::media::{self, Picture};
use crate::store::images;
use crate::sys::Patient;
use crate::transcode::{self, Ffmpeg};
use crate::wire::{GalleryDomain, Image, MediaType, Resolution};

impl Library {
    /// The row of an image as its file is now, if there is one.
    pub(crate) fn image_now(&self, id: i64) -> Result<Option<Image>, Error> {
        let find = || self.store.read(|c| images::get(c, id));
        match find()? {
            Some(image) if image.in_place => {
                self.context.see_again(&image)?;
                Ok(find()?)
            }
            image => Ok(image),
        }
    }

    /// The image that a path means: the one that owns it or has its content, else a new one, in no
    /// folder.
    pub fn import_one(&self, source: &Path) -> Result<Image, Error> {
        disk::answers(source)?;
        disk::answers_in(&self.context.directory)?;
        let real = fs::canonicalize(source).map_err(Error::file("read", source))?;
        let find = || self.store.read(|c| images::by_path(c, &real));
        if let Some(image) = find()? {
            self.context.see_again(&image)?;
            if let Some(image) = find()? {
                return Ok(image);
            }
        }
        let ended = || self.context.ended.load(Ordering::Relaxed);
        // A turn of its own: it lands when it is ready, whatever other imports do.
        let imported = self.context.import(source, None, &Turns::default().next(), &ended)?;
        if !imported.duplicate {
            self.changed(GalleryDomain::Images);
        }
        Ok(imported.image)
    }

    /// The content of a path, before any of it is copied: for callers that ask whether it can be shown.
    pub(crate) fn content(&self, source: &Path) -> Result<Content, Error> {
        disk::answers(source)?;
        if source.is_dir() {
            let (media_type, name) = package::content(source)?;
            return Ok(Content { media_type, animated: false, name });
        }
        let Source { mut file, format, name, .. } = Source::look_at(source)?;
        let mut input = BufReader::new(Patient(&mut file));
        // The import reports what cannot be read here.
        let probe = decode::guarded(source, || media::probe(&mut input));
        let animated = probe.is_ok_and(|probe| probe.animated);
        Ok(Content { media_type: format.media_type(), animated, name: name.stem })
    }
}

/// The properties that decide which backend can show a file or package, and its name.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub media_type: MediaType,
    pub animated: bool,
    pub name: String,
}

/// Larger than any screen that it is likely to be shown on.
const SIZE: Resolution = Resolution::P2160;

impl Library {
    /// Writes it to a new PNG file of 4K at most: the first frame of an animation, of a video the one
    /// that its thumbnails show, of a page its preview.
    pub(crate) fn still(&self, ffmpeg: &Ffmpeg, image: &Image, to: &Path) -> Result<(), Error> {
        if transcode::is_needed_for(image.format) {
            return decode::video_still(ffmpeg, (&image.path, image.format), SIZE, to);
        }
        let picture = match &image.web_meta {
            Some(meta) => package::package_thumbnail(meta, SIZE, &self.context.budget)?.picture,
            None => self.first_frame(&image.path)?,
        };
        let png = decode::guarded(&image.path, || picture.png())?;
        fs::write(to, png).map_err(Error::file("write", to))
    }

    fn first_frame(&self, path: &Path) -> Result<Picture, Error> {
        let mut input = BufReader::new(Patient(disk::open(path)?));
        decode::guarded(path, || {
            let probe = media::probe(&mut input)?;
            let (width, height) = probe.fit(SIZE.fits());
            let _permit = self.context.budget.take(probe.memory((width, height)));
            Ok(probe.decode(&mut input, (width, height), &|| false)?.resized(width, height))
        })
    }
}
