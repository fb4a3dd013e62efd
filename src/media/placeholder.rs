//! The placeholder image for a web package without a picture: plain grey.

use super::error::Error;
use super::exif::Orientation;
use super::picture::{Picture, fit};
use super::probe::Thumbnail;
use super::webp;

const SIZE: (u32, u32) = (480, 270);
const GREY: u8 = 0x30;

/// A grey card that fits into `frame`.
pub(crate) fn placeholder(frame: (u32, u32)) -> Result<Thumbnail, Error> {
    let (width, height) = fit(SIZE, frame);
    let extent = (f64::from(width), f64::from(height));
    let pixels = vec![GREY; width as usize * height as usize * 3];
    let picture = Picture::new(width, height, extent, 3, pixels, Orientation::NoTransforms);
    Ok(Thumbnail { webp: webp::encode(&picture)?, picture })
}
