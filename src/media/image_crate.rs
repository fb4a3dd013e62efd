//! BMP and TIFF, decoded as a whole by the `image` crate, within its limits.
//!
//! The transcoder gets files that the crate does not decode, or not in the memory for a picture.

use std::fmt;
use std::io::BufReader;
use std::sync::Arc;

use image::codecs::bmp::BmpDecoder;
use image::{ImageDecoder, ImageError, ImageResult, Limits};

use super::decoder::{Decoder, Goal, Header, Input, MEMORY_MAX, Opened, SIDE_MAX, check_bounds};
use super::error::Error;
use super::exif;
use super::icc::{self, Profile};
use super::picture::Picture;
use super::samples::{Layout, divide_by_alpha};
use crate::wire::Format;

/// Read at once: the crate asks for a few bytes at a time.
const BUFFER: usize = 64 << 10;

/// Makes the crate's decoder for a format.
pub(super) type Create = for<'a> fn(Source<'a>) -> ImageResult<Box<dyn ImageDecoder + 'a>>;
/// The reader that the crate is given.
pub(super) type Source<'a> = BufReader<&'a mut dyn Input>;

/// The facts about a file that the crate does not report.
pub(super) struct Walked {
    pub(super) format: Format,
    pub(super) create: Create,
    /// Profile and EXIF block are of a size that is worth reading.
    pub(super) metadata: bool,
    /// Colours are multiplied by alpha.
    pub(super) premultiplied: bool,
    /// Bytes that the crate takes for each pixel beside the result, and for all of them.
    pub(super) scratch: (u64, u64),
}

struct Whole {
    format: Format,
    create: Create,
    layout: Layout,
    premultiplied: bool,
}

pub(super) fn open_bmp(input: &mut dyn Input) -> Result<Opened, Error> {
    Walked::plain(Format::Bmp, |source| Ok(Box::new(BmpDecoder::new(source)?))).open(input)
}

impl Walked {
    pub(super) fn plain(format: Format, create: Create) -> Self {
        Self { format, create, metadata: false, premultiplied: false, scratch: (0, 0) }
    }

    pub(super) fn open(self, input: &mut dyn Input) -> Result<Opened, Error> {
        let Self { format, create, metadata, premultiplied, scratch } = self;
        input.rewind().map_err(Error::Read)?;
        let failed = |error| from_crate(format, error);
        let mut decoder = decoder(input, create).map_err(failed)?;
        let size = decoder.dimensions();
        if size.0 == 0 || size.1 == 0 {
            return Err(Error::damaged(format, "it has no pixels"));
        }
        check_bounds(size, 3)?;
        let layout = layout(format, &decoder)?;
        let mut header = Header::plain(size, layout.channels());
        if metadata {
            // Damaged metadata is no reason to refuse the picture.
            let samples = if layout.count < 3 { icc::Samples::Gray } else { icc::Samples::Rgb };
            let profile = decoder.icc_profile().ok().flatten();
            header.profile = profile.and_then(|bytes| Profile::read(&bytes, samples));
            header.orientation = match decoder.exif_metadata().ok().flatten() {
                Some(block) => exif::orientation(&block),
                None => decoder.orientation().unwrap_or(header.orientation),
            };
        }
        let pixels = u64::from(size.0) * u64::from(size.1);
        let bytes = pixels * (layout.bytes() as u64 + scratch.0) + scratch.1 + BUFFER as u64;
        // A fourth for what is made of it.
        if bytes + bytes / 4 > MEMORY_MAX {
            let why = Some(format!("decoding it takes {} MiB of memory", bytes >> 20));
            return Err(Error::NeedsTranscoder { format, why });
        }
        Ok((header, Arc::new(Whole { format, create, layout, premultiplied })))
    }
}

impl Decoder for Whole {
    fn decode(&self, header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
        let failed = |error| from_crate(self.format, error);
        let decoder = decoder(input, self.create).map_err(failed)?;
        if (decoder.dimensions(), layout(self.format, &decoder)?) != (header.size, self.layout) {
            return Err(Error::damaged(self.format, "it changed while it was read"));
        }
        let mut pixels = vec![0; decoder.total_bytes() as usize];
        decoder.read_image_boxed(&mut pixels).map_err(failed)?;
        Ok(self.reduced(header, goal, pixels))
    }
}

impl Whole {
    fn reduced(&self, header: &Header, goal: Goal, mut pixels: Vec<u8>) -> Picture {
        if self.layout.are_pixels() {
            if self.premultiplied {
                divide_by_alpha(&mut pixels);
            }
            // Some programs write an alpha mask that they never fill.
            if self.format == Format::Bmp && header.channels == 4 && hides_all(&pixels) {
                pixels.iter_mut().skip(3).step_by(4).for_each(|alpha| *alpha = 255);
            }
            return header.reduced(goal, pixels);
        }
        let (mut shrink, mut line) = (header.shrink(goal), Vec::new());
        for row in pixels.chunks_exact(header.size.0 as usize * self.layout.bytes()) {
            line.clear();
            self.layout.append(row, &mut line);
            if self.premultiplied {
                divide_by_alpha(&mut line);
            }
            shrink.row(&line);
        }
        shrink.finish(header.orientation)
    }
}

fn hides_all(pixels: &[u8]) -> bool {
    pixels.iter().skip(3).step_by(4).all(|&alpha| alpha == 0)
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Whole").field("format", &self.format).finish_non_exhaustive()
    }
}

fn decoder<'a>(
    input: &'a mut dyn Input,
    create: Create,
) -> ImageResult<Box<dyn ImageDecoder + 'a>> {
    let mut decoder = create(BufReader::with_capacity(BUFFER, input))?;
    decoder.set_limits(limits())?;
    Ok(decoder)
}

fn layout(format: Format, decoder: &dyn ImageDecoder) -> Result<Layout, Error> {
    let color = decoder.color_type();
    let what = || format!("samples of the kind {color:?}");
    Layout::of(color).ok_or_else(|| Error::Unsupported { format, what: what() })
}

/// The limits of the crate for a picture.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE_MAX);
    limits.max_image_height = Some(SIDE_MAX);
    limits.max_alloc = Some(MEMORY_MAX);
    limits
}

fn from_crate(format: Format, error: ImageError) -> Error {
    match error {
        ImageError::IoError(error) => Error::read(format, error),
        ImageError::Unsupported(_) | ImageError::Limits(_) => {
            Error::NeedsTranscoder { format, why: Some(error.to_string()) }
        }
        other => Error::damaged(format, other),
    }
}
