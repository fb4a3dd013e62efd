//! Defines the interface of the decoders, their input, and the limits on memory, pixels and size.

use std::io::{BufRead, Read, Seek, SeekFrom};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::Error;
use super::exif::{self, Orientation};
use super::icc::Profile;
use super::picture::Picture;
use super::samples::drop_alpha;
use super::shrink::Shrink;
use crate::wire::Format;

/// Maximum width and height of an image.
pub(crate) const SIDE_MAX: u32 = 65_535;
/// Maximum size of an image's pixels in bytes.
const PIXELS_MAX: u64 = 512 << 20;
/// Maximum memory in bytes that a library may use for an image; the process may use half as much
/// again.
pub(super) const MEMORY_MAX: u64 = 1 << 30;

/// A defect of a file whose pixels are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Note {
    NoEnd,
    NoTables,
}

impl Note {
    /// The defect as a message for users.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::NoEnd => "its end marker is missing",
            Self::NoTables => "it has no Huffman tables: the standard ones were used",
        }
    }
}

/// The input of every decoder.
pub trait Input: BufRead + Seek {}

impl<T: BufRead + Seek + ?Sized> Input for T {}

/// Called with the size of the canvas, its pixels (RGBA) and the delay of the frame; returns
/// whether to continue.
pub(super) type Each<'a> = &'a mut dyn FnMut((u32, u32), &[u8], Duration) -> bool;

/// The functions that decode a format. Both read the input from the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decoder {
    /// Reads the headers, and the whole file if necessary to find out whether it is complete.
    pub(super) open: fn(&mut dyn Input) -> Result<Header, Error>,
    /// Decodes the first frame of the image with this header, at a reduced size if the goal allows
    /// it.
    pub(super) decode: fn(&Header, &mut dyn Input, Goal) -> Result<Picture, Error>,
}

/// The properties that images of all formats have.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Width and height as stored.
    pub(super) size: (u32, u32),
    /// Number of channels after decoding: 3, or 4 with alpha.
    pub(super) channels: usize,
    pub(super) orientation: Orientation,
    pub(super) animated: bool,
    pub(super) profile: Option<Profile>,
    pub(super) note: Option<Note>,
}

/// The minimum size for a decoder's result, with reserve for the filter that resizes it afterwards.
/// In the orientation of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// The minimum when reducing by integer factors.
    pub(super) ample: (u32, u32),
    /// The minimum when reducing by halves.
    pub(super) enough: (u32, u32),
}

impl Header {
    /// Creates the header of an sRGB image without orientation.
    pub(super) fn plain(size: (u32, u32), channels: usize) -> Self {
        Self {
            size,
            channels,
            orientation: Orientation::NoTransforms,
            animated: false,
            profile: None,
            note: None,
        }
    }

    /// Fails if size or channels differ, because the file has changed since.
    pub(super) fn check(
        &self,
        format: Format,
        size: (u32, u32),
        channels: usize,
    ) -> Result<(), Error> {
        if (size, channels) == (self.size, self.channels) {
            Ok(())
        } else {
            Err(Error::damaged(format, "it changed while it was read"))
        }
    }

    /// Creates the reducer for the rows of the image.
    pub(super) fn shrink(&self, goal: Goal) -> Shrink {
        Shrink::new(
            self.size,
            self.channels,
            Shrink::factor(self.size, goal.ample),
        )
    }

    /// Creates the picture from all its pixels, without a copy if it is not reduced. Removes the
    /// alpha channel if all pixels are opaque.
    pub(super) fn reduced(&self, goal: Goal, mut pixels: Vec<u8>) -> Picture {
        let mut channels = self.channels;
        if channels == 4 && pixels.chunks_exact(4).all(|pixel| pixel[3] == 255) {
            channels = 3;
            drop_alpha(&mut pixels);
        }
        let factor = Shrink::factor(self.size, goal.ample);
        if factor == 1 {
            return Picture::new(self.size, channels, pixels, self.orientation);
        }
        let mut shrink = Shrink::new(self.size, channels, factor);
        shrink.rows(&pixels);
        shrink.finish(self.orientation)
    }
}

impl Goal {
    /// The goal for an image shown at the size `target`.
    pub(super) fn from_target(target: (u32, u32), orientation: Orientation) -> Self {
        const CHEAP: u32 = 1024;
        let (width, height) = exif::size(orientation, target);
        let spare = if width.max(height) <= CHEAP { 2 } else { 1 };
        // Scaled decoding can only halve: a factor of 1.5 leaves enough for the filter.
        let enough = (width * (spare + 1) / 2, height * (spare + 1) / 2);
        Self {
            ample: (width * spare, height * spare),
            enough,
        }
    }
}

/// Reads a whole file, up to the memory limit.
pub(super) fn whole(input: &mut dyn Input) -> Result<Vec<u8>, Error> {
    let length = input
        .seek(SeekFrom::End(0))
        .map_err(Error::Read)?
        .min(MEMORY_MAX);
    // The reserve is for an end marker that may be missing.
    let mut file = Vec::with_capacity(length as usize + 2);
    input.rewind().map_err(Error::Read)?;
    Read::take(input, MEMORY_MAX)
        .read_to_end(&mut file)
        .map_err(Error::Read)?;
    Ok(file)
}

/// Leaves an image to other programs if a library needs too much memory for it.
pub(super) fn check_memory(format: Format, bytes: u64) -> Result<(), Error> {
    if bytes > MEMORY_MAX {
        Err(Error::special(
            format,
            format!("decoding needs {} MiB of memory", bytes >> 20),
        ))
    } else {
        Ok(())
    }
}

/// Refuses images above the limits, before memory is allocated for them.
pub(crate) fn check_bounds((width, height): (u32, u32), channels: usize) -> Result<(), Error> {
    // Cannot overflow: width and height have 32 bits, and `channels` is small.
    let bytes = (u64::from(width) * u64::from(height)).saturating_mul(channels as u64);
    if width > SIDE_MAX || height > SIDE_MAX || bytes > PIXELS_MAX {
        return Err(Error::TooLarge { width, height });
    }
    Ok(())
}
