//! Pure pixels and bytes: no thread, no database, no configuration.
//!
//! [`probe`] tells what a file holds and what decoding it will cost; [`Probe::decode`] gives its
//! first frame, reduced on the way where less is wanted, so that memory stays bounded whatever the
//! file says of itself. From there: [`Probe::thumbnail`], [`Probe::slices`], [`palette`]. Called
//! from any thread; nothing here opens a path. The decoders below may panic on hostile bytes:
//! whoever calls on a thread that must live does so through [`caught`].

mod animation;
mod apng;
mod canvas;
mod card;
mod caught;
mod decoder;
mod error;
mod exif;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/media.rs"]
pub mod fuzz;
mod gif;
mod gif_blocks;
mod icc;
mod jpeg;
mod kind;
mod palette;
mod picture;
mod png;
mod probe;
mod shrink;
mod slice;
#[cfg(test)]
mod tests;
mod thumbnail;
mod tiff;
mod vp8;
mod vp8l;
mod webp;
mod webp_frames;
mod whole;

pub(crate) use card::card;
pub(crate) use caught::caught;
pub(crate) use decoder::{Input, MEMORY_MAX, PIXELS_MAX, SIDE_MAX, Stop};
pub(crate) use error::Error;
pub use palette::palette;
pub use picture::Picture;
pub(crate) use picture::{Region, fit};
pub use probe::probe;
pub(crate) use probe::{Probe, format, is_plain, stored};
pub(crate) use slice::Tile;
pub(crate) use thumbnail::Thumbnail;
pub use webp::encode;
