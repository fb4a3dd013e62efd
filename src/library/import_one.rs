//! Imports one file or package outside of any batch, and makes a still picture of any image.
//!
//! Runs on the thread that asks, which waits for the copy, for decoding and for ffmpeg.

use std::fs;
use std::path::Path;

use super::decode::Tools;
use super::task::Source;
use super::{Error, Library, disk, package};
use crate::decode;
use crate::media::Note;
use crate::store::images;
use crate::transcode::Ffmpeg;
use crate::wire::{GalleryDomain, Image, MediaType, Resolution};

impl Library {
    /// The row of an image, up to date with its file, if there is one.
    pub(crate) fn image_now(&self, id: i64) -> Result<Option<Image>, Error> {
        self.context.find_now(|c| images::get(c, id))
    }

    /// Brings the row of an image in place up to date with its file. Returns whether the row was
    /// changed.
    pub(crate) fn see_again(&self, image: &Image) -> bool {
        self.context.see_again(image)
    }

    /// The image that a path means: the one that owns it or has its content, else a new one, in no
    /// folder, and the defect of its file.
    pub(crate) fn import_one(&self, source: &Path) -> Result<(Image, Option<Note>), Error> {
        disk::answers(source)?;
        let real = fs::canonicalize(source).map_err(Error::file("read", source))?;
        if let Some(image) = self.context.find_now(|c| images::by_path(c, &real))? {
            return Ok((image, None));
        }
        // It lands when it is ready, whatever other imports do.
        let prepared = self.context.prepare(source, None, self.context.tools())?;
        let imported = self.context.land_one(prepared)?;
        if !imported.duplicate {
            self.changed(GalleryDomain::Images);
        }
        Ok((imported.image, imported.note))
    }

    /// The content of a path, before any of it is copied: for callers that ask whether it can be shown.
    pub(crate) fn content(&self, source: &Path) -> Result<Content, Error> {
        disk::answers(source)?;
        let looked = match self.context.decoder.look(source) {
            Err(decode::Error::Directory) => {
                let (media_type, name) = package::content(source)?;
                return Ok(Content { media_type, animated: false, name });
            }
            looked => looked,
        };
        let Source { format, name, header, .. } = Source::of(source, looked)?;
        // The import reports what cannot be read here.
        let animated = header.is_ok_and(|header| header.animated);
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
        let tools = Tools { decoder: &self.context.decoder, ffmpeg };
        match &image.web_meta {
            Some(meta) => package::package_still(meta, SIZE, tools, to),
            None => tools.still(&image.path, SIZE, to),
        }
    }
}
