//! A still picture of anything that is in the library, for programs that show no other.
//!
//! Runs on threads that may wait: for ffmpeg, and for memory.

use std::fs;
use std::io::BufReader;
use std::path::Path;

use super::{Error, Library, decode, disk, package, video_frame};
use crate::media::{self, Picture};
use crate::sys::Patient;
use crate::transcode::{self, Ffmpeg};
use crate::wire::{Image, Resolution};

/// Larger than any screen that it is likely to be shown on.
const SIZE: Resolution = Resolution::P2160;

impl Library {
    /// Writes it to a new PNG file of 4K at most: the first frame of an animation, of a video the one
    /// that its thumbnails show, of a page its preview.
    pub(crate) fn still(&self, ffmpeg: &Ffmpeg, image: &Image, to: &Path) -> Result<(), Error> {
        if transcode::is_needed_for(image.format) {
            return video_frame::still(ffmpeg, (&image.path, image.format), SIZE, to);
        }
        let picture = match &image.web_meta {
            Some(meta) => package::look::thumbnail(meta, SIZE, &self.context.budget)?.picture,
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
