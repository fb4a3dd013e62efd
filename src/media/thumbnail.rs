//! Thumbnails: small WebP pictures, never larger than what they show.

use super::decoder::{Input, Stop};
use super::error::Error;
use super::picture::{Picture, fit};
use super::probe::Probe;
use super::webp;

/// A thumbnail, and the pixels that it was made of.
#[derive(Debug)]
pub struct Thumbnail {
    pub webp: Vec<u8>,
    /// Upright.
    pub picture: Picture,
}

impl Probe {
    /// The size of a thumbnail that fits into `frame`.
    pub fn fit(&self, frame: (u32, u32)) -> (u32, u32) {
        fit((self.width, self.height), frame)
    }

    /// Decodes the picture and makes the thumbnail that fits into `frame`.
    pub fn thumbnail(
        &self,
        input: &mut dyn Input,
        frame: (u32, u32),
        stop: Stop<'_>,
    ) -> Result<Thumbnail, Error> {
        let (width, height) = self.fit(frame);
        let picture = self.decode(input, (width, height), stop)?.resized(width, height);
        Ok(Thumbnail { webp: webp::encode(&picture)?, picture })
    }
}
