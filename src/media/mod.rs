//! Decodes images; needs no threads, database or configuration.
//!
//! [`probe`] reads a file's format and headers. [`Probe::decode`] decodes the first frame, at a
//! reduced size if possible, so that memory stays bounded. [`Probe::thumbnail`], [`Probe::slices`]
//! and [`palette`] build on it. All of them run on the calling thread, read from an open input and
//! may panic on hostile files; callers use [`catch_panic`].

mod animation;
mod canvas;
mod decoder;
mod error;
mod exif;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/media.rs"]
pub mod fuzz;
mod gif;
mod heif;
mod icc;
mod image_crate;
mod jpeg;
mod palette;
mod picture;
mod plain;
mod png;
mod probe;
mod samples;
mod shrink;
mod slice;
mod svg;
#[cfg(test)]
mod tests;
mod tiff;
mod webp;

pub(crate) use decoder::{Note, SIDE_MAX, check_bounds};
pub(crate) use error::{Error, Traits, catch_panic, name};
pub use palette::palette;
pub use picture::Picture;
pub(crate) use picture::{Region, blur, fit};
pub(crate) use plain::{PlainColors, placeholder};
pub(crate) use probe::Thumbnail;
pub use probe::probe;
pub(crate) use probe::{Probe, Shown, format, is_decoded};
pub(crate) use slice::{Cut, Tile, extent, flattened};
pub(crate) use svg::covering;
pub use webp::encode;
