//! The interface of every decoder, what it is given, and the limits of each picture: memory, pixels,
//! longest side.

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

/// Longest side of a picture (contract 4).
pub(crate) const SIDE_MAX: u32 = 65_535;
/// Most bytes of pixels that a picture may have (contract 4).
const PIXELS_MAX: u64 = 512 << 20;
/// Most memory that a library may take for a picture: its process has half as much again.
pub(super) const MEMORY_MAX: u64 = 1 << 30;

/// A fault of a file that has all of its picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Note {
    NoEnd,
    NoTables,
}

impl Note {
    /// For people.
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

/// Is given the size of a frame, all that is seen of it (RGBA) and the time that it stays, and says
/// whether it wants more.
pub(super) type Each<'a> = &'a mut dyn FnMut((u32, u32), &[u8], Duration) -> bool;

/// Decodes the pictures of a format. Both read the input from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decoder {
    /// Reads the headers, and to the end if only that shows that the file is whole.
    pub(super) open: fn(&mut dyn Input) -> Result<Header, Error>,
    /// Decodes the first frame of a picture with these headers, reduced on the way where the goal
    /// allows it.
    pub(super) decode: fn(&Header, &mut dyn Input, Goal) -> Result<Picture, Error>,
}

/// The properties that all formats have.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Width and height as stored.
    pub(super) size: (u32, u32),
    /// 3 without, 4 with alpha, once decoded.
    pub(super) channels: usize,
    pub(super) orientation: Orientation,
    pub(super) animated: bool,
    pub(super) profile: Option<Profile>,
    pub(super) note: Option<Note>,
}

/// The size that a decoder should leave for the resize that follows: more than that takes, where it
/// is cheap, for the filter to work on. As stored, not as shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// For reduction by whole numbers.
    pub(super) ample: (u32, u32),
    /// For reduction by halves.
    pub(super) enough: (u32, u32),
}

impl Header {
    /// For a picture that is shown as it is stored, in sRGB colours.
    pub(super) fn plain(size: (u32, u32), channels: usize) -> Self {
        let orientation = Orientation::NoTransforms;
        Self { size, channels, orientation, animated: false, profile: None, note: None }
    }

    /// Refuses the headers of another picture.
    pub(super) fn check(
        &self,
        format: Format,
        size: (u32, u32),
        channels: usize,
    ) -> Result<(), Error> {
        match (size, channels) == (self.size, self.channels) {
            true => Ok(()),
            false => Err(Error::damaged(format, "it changed while it was read")),
        }
    }

    /// Takes the rows of the picture.
    pub(super) fn shrink(&self, goal: Goal) -> Shrink {
        Shrink::new(self.size, self.channels, Shrink::factor(self.size, goal.ample))
    }

    /// The picture that comes of all its pixels; what is not reduced is not copied. Alpha that hides
    /// nothing is dropped.
    pub(super) fn reduced(&self, goal: Goal, mut pixels: Vec<u8>) -> Picture {
        let mut channels = self.channels;
        if channels == 4 && pixels.chunks_exact(4).all(|pixel| pixel[3] == 255) {
            channels = 3;
            drop_alpha(&mut pixels);
        }
        let factor = Shrink::factor(self.size, goal.ample);
        if factor == 1 {
            let (width, height) = self.size;
            let extent = (f64::from(width), f64::from(height));
            return Picture::new(width, height, extent, channels, pixels, self.orientation);
        }
        let mut shrink = Shrink::new(self.size, channels, factor);
        shrink.rows(&pixels);
        shrink.finish(self.orientation)
    }
}

impl Goal {
    /// For a picture that is to be shown at this size.
    pub(super) fn of(target: (u32, u32), orientation: Orientation) -> Self {
        const CHEAP: u32 = 1024;
        let (width, height) = exif::size(orientation, target);
        let spare = if width.max(height) <= CHEAP { 2 } else { 1 };
        // Scaled decoding knows only halves: a factor of 1.5 leaves enough for the filter.
        let enough = (width * (spare + 1) / 2, height * (spare + 1) / 2);
        Self { ample: (width * spare, height * spare), enough }
    }
}

/// A whole file from its beginning, up to the limit of memory.
pub(super) fn whole(input: &mut dyn Input) -> Result<Vec<u8>, Error> {
    let length = input.seek(SeekFrom::End(0)).map_err(Error::Read)?.min(MEMORY_MAX);
    // Also for an end marker that it lacks.
    let mut file = Vec::with_capacity(length as usize + 2);
    input.rewind().map_err(Error::Read)?;
    Read::take(input, MEMORY_MAX).read_to_end(&mut file).map_err(Error::Read)?;
    Ok(file)
}

/// Leaves a picture to other programs if a library takes so many bytes of memory for it.
pub(super) fn check_memory(format: Format, bytes: u64) -> Result<(), Error> {
    match bytes > MEMORY_MAX {
        true => {
            Err(Error::special(format, format!("decoding it takes {} MiB of memory", bytes >> 20)))
        }
        false => Ok(()),
    }
}

/// Refuses what is larger than is ever decoded; before anything is allocated for it.
pub(crate) fn check_bounds((width, height): (u32, u32), channels: usize) -> Result<(), Error> {
    // Each of the factors has 32 bits at most, and the last one is small.
    let bytes = (u64::from(width) * u64::from(height)).saturating_mul(channels as u64);
    if width > SIDE_MAX || height > SIDE_MAX || bytes > PIXELS_MAX {
        return Err(Error::TooLarge { width, height });
    }
    Ok(())
}
