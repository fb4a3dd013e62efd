//! BMP and WebP, decoded as a whole by the `image` crate, within its limits.
//!
//! The crate reports neither a truncated WebP nor the number of frames, so the file is walked through
//! first. The transcoder gets files that the crate does not decode, or not in the memory for a picture.

use std::fmt;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;

use image::codecs::bmp::BmpDecoder;
use image::{ImageDecoder, ImageError, ImageResult, Limits};

use super::decoder::{
    Decoder, Goal, Header, Input, MEMORY_MAX, Opened, SIDE_MAX, Stop, check_bounds,
};
use super::error::Error;
use super::exif;
use super::icc::{Profile, Samples};
use super::picture::Picture;
use crate::wire::Format;

/// Read at once: the crate asks for a few bytes at a time.
const BUFFER: usize = 64 << 10;

/// Makes the crate's decoder for a format.
pub(super) type Create = for<'a> fn(Source<'a>) -> ImageResult<Box<dyn ImageDecoder + 'a>>;
/// The reader that the crate is given.
pub(super) type Source<'a> = BufReader<Stoppable<'a>>;

/// The facts about a file before the crate reads it.
pub(super) struct Walked {
    pub(super) format: Format,
    pub(super) create: Create,
    pub(super) animated: bool,
    /// Profile and EXIF block are of a size that is worth reading.
    pub(super) metadata: bool,
    /// Bytes that the crate takes for each pixel beside the result, and for all of them.
    pub(super) scratch: (u64, u64),
}

struct Whole {
    format: Format,
    create: Create,
    /// Bytes while it is decoded, with the pixels.
    bytes: u64,
}

pub(super) fn open_bmp(input: &mut dyn Input) -> Result<Opened, Error> {
    let create: Create = |source| Ok(Box::new(BmpDecoder::new(source)?));
    let format = Format::Bmp;
    let (animated, metadata, scratch) = (false, false, (0, 0));
    Walked { format, create, animated, metadata, scratch }.open(input)
}

impl Walked {
    pub(super) fn open(self, input: &mut dyn Input) -> Result<Opened, Error> {
        let Self { format, create, animated, metadata, scratch } = self;
        input.rewind().map_err(Error::Read)?;
        let failed = |error| from_crate(format, error);
        let mut decoder = decoder(Stoppable { input, stop: &|| false }, create).map_err(failed)?;
        let size = decoder.dimensions();
        if size.0 == 0 || size.1 == 0 {
            return Err(Error::damaged(format, "it has no pixels"));
        }
        check_bounds(size, 3)?;
        let mut header = Header::plain(size, usize::from(decoder.color_type().channel_count()));
        header.animated = animated;
        if metadata {
            // Damaged metadata is no reason to refuse the picture.
            let profile = decoder.icc_profile().ok().flatten();
            header.profile = profile.and_then(|bytes| Profile::read(&bytes, Samples::Rgb));
            let block = decoder.exif_metadata().ok().flatten();
            header.orientation = exif::orientation(&block.unwrap_or_default());
        }
        let pixels = u64::from(size.0) * u64::from(size.1);
        let bytes = pixels * (header.channels as u64 + scratch.0) + scratch.1 + BUFFER as u64;
        // A fourth for what is made of it.
        if bytes + bytes / 4 > MEMORY_MAX {
            let why = Some(format!("decoding it takes {} MiB of memory", bytes >> 20));
            return Err(Error::NeedsTranscoder { format, why });
        }
        Ok((header, Arc::new(Whole { format, create, bytes })))
    }
}

impl Decoder for Whole {
    fn memory(&self, header: &Header, goal: Goal) -> u64 {
        // A picture that is not reduced is not copied either.
        let whole = u64::from(header.size.0) * u64::from(header.size.1) * header.channels as u64;
        let result = header.result_bytes(goal);
        if result == whole { self.bytes } else { self.bytes + result }
    }

    fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
        stop: Stop<'_>,
    ) -> Result<Picture, Error> {
        let failed = |error| match error {
            _ if stop() => Error::Stopped,
            error => from_crate(self.format, error),
        };
        let input = Stoppable { input, stop };
        let decoder = decoder(input, self.create).map_err(failed)?;
        let channels = usize::from(decoder.color_type().channel_count());
        if (decoder.dimensions(), channels) != (header.size, header.channels) {
            return Err(Error::damaged(self.format, "it has changed meanwhile"));
        }
        let mut pixels = vec![0; decoder.total_bytes() as usize];
        decoder.read_image_boxed(&mut pixels).map_err(failed)?;
        let mut header = header.clone();
        if channels == 4 && pixels.chunks_exact(4).all(|pixel| pixel[3] == 255) {
            header.channels = 3;
            drop_alpha(&mut pixels);
        }
        Ok(header.reduced(goal, pixels))
    }
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Whole").field("format", &self.format).finish_non_exhaustive()
    }
}

fn decoder<'a>(input: Stoppable<'a>, create: Create) -> ImageResult<Box<dyn ImageDecoder + 'a>> {
    let mut decoder = create(BufReader::with_capacity(BUFFER, input))?;
    decoder.set_limits(limits())?;
    Ok(decoder)
}

/// The limits of the crate for a picture.
pub(super) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE_MAX);
    limits.max_image_height = Some(SIDE_MAX);
    limits.max_alloc = Some(MEMORY_MAX);
    limits
}

fn drop_alpha(pixels: &mut Vec<u8>) {
    let count = pixels.len() / 4;
    for at in 0..count {
        pixels.copy_within(4 * at..4 * at + 3, 3 * at);
    }
    pixels.truncate(3 * count);
}

/// A file that cannot be read any further once nobody wants the picture: the crate's decoders
/// cannot be told otherwise.
pub(super) struct Stoppable<'a> {
    input: &'a mut dyn Input,
    stop: Stop<'a>,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.stop)() {
            return Err(io::Error::other("it is no longer wanted"));
        }
        self.input.read(buffer)
    }
}

impl Seek for Stoppable<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.input.seek(position)
    }
}

pub(super) fn from_crate(format: Format, error: ImageError) -> Error {
    match error {
        ImageError::IoError(error) => Error::read(format, error),
        ImageError::Unsupported(_) | ImageError::Limits(_) => {
            Error::NeedsTranscoder { format, why: Some(error.to_string()) }
        }
        other => Error::damaged(format, other),
    }
}
