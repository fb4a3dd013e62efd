//! Decodes BMP and TIFF with the `image` crate, a whole file at a time, within its limits.
//!
//! Other programs decode files that the crate does not support, or that need too much memory.

use std::io::BufReader;

use image::codecs::bmp::BmpDecoder;
use image::{ImageDecoder, ImageError, ImageResult, Limits};

use super::decoder::{Goal, Header, Input, MEMORY_MAX, SIDE_MAX, check_bounds, check_memory};
use super::error::Error;
use super::picture::Picture;
use super::samples::{Layout, divide_by_alpha};
use crate::wire::Format;

/// Size of the read buffer: the crate reads a few bytes at a time.
const BUFFER: usize = 64 << 10;

/// Creates the crate's decoder for a format.
pub(super) type Create = for<'a> fn(Source<'a>) -> ImageResult<Box<dyn ImageDecoder + 'a>>;
/// The reader that the crate is given.
pub(super) type Source<'a> = BufReader<&'a mut dyn Input>;

/// A format as the crate decodes it.
pub(super) struct Variety {
    pub(super) format: Format,
    pub(super) create: Create,
    /// Colours are multiplied by alpha.
    pub(super) premultiplied: bool,
    /// Extra memory in bytes that the crate needs for each pixel and for the whole image.
    pub(super) scratch: (u64, u64),
}

pub(super) const BMP: Variety = Variety {
    format: Format::Bmp,
    create: |source| Ok(Box::new(BmpDecoder::new(source)?)),
    premultiplied: false,
    scratch: (0, 0),
};

impl Variety {
    pub(super) fn open(&self, input: &mut dyn Input) -> Result<Header, Error> {
        let (decoder, layout) = self.decoder(input)?;
        let size = decoder.dimensions();
        if size.0 == 0 || size.1 == 0 {
            return Err(Error::damaged(self.format, "it has no pixels"));
        }
        check_bounds(size, 3)?;
        let pixels = u64::from(size.0) * u64::from(size.1);
        let (each, all) = self.scratch;
        let bytes = pixels * (layout.bytes() as u64 + each) + all + BUFFER as u64;
        // A quarter more, for the resized image.
        check_memory(self.format, bytes + bytes / 4)?;
        Ok(Header::plain(size, layout.channels()))
    }

    pub(super) fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
    ) -> Result<Picture, Error> {
        let (decoder, layout) = self.decoder(input)?;
        header.check(self.format, decoder.dimensions(), layout.channels())?;
        let mut pixels = vec![0; decoder.total_bytes() as usize];
        decoder
            .read_image_boxed(&mut pixels)
            .map_err(|error| from_crate(self.format, error))?;
        if layout.are_pixels() {
            if self.premultiplied {
                divide_by_alpha(&mut pixels);
            }
            // Some programs write an alpha channel that is all zero.
            if self.format == Format::Bmp && header.channels == 4 && hides_all(&pixels) {
                pixels
                    .iter_mut()
                    .skip(3)
                    .step_by(4)
                    .for_each(|alpha| *alpha = 255);
            }
            return Ok(header.reduced(goal, pixels));
        }
        let mut shrink = header.shrink(goal);
        let mut line = Vec::new();
        for row in pixels.chunks_exact(header.size.0 as usize * layout.bytes()) {
            line.clear();
            layout.append(row, &mut line);
            if self.premultiplied {
                divide_by_alpha(&mut line);
            }
            shrink.row(&line);
        }
        Ok(shrink.finish(header.orientation))
    }

    /// Creates the crate's decoder with the limits set; also returns the layout of its samples.
    fn decoder<'a>(
        &self,
        input: &'a mut dyn Input,
    ) -> Result<(Box<dyn ImageDecoder + 'a>, Layout), Error> {
        input.rewind().map_err(Error::Read)?;
        let mut limits = Limits::default();
        limits.max_image_width = Some(SIDE_MAX);
        limits.max_image_height = Some(SIDE_MAX);
        limits.max_alloc = Some(MEMORY_MAX);
        let decoder = (self.create)(BufReader::with_capacity(BUFFER, input));
        let decoder = decoder.and_then(|mut decoder| decoder.set_limits(limits).map(|()| decoder));
        let decoder = decoder.map_err(|error| from_crate(self.format, error))?;
        let color = decoder.color_type();
        let layout = Layout::from_color_type(color).ok_or_else(|| Error::Unsupported {
            format: self.format,
            what: format!("samples of type {color:?}"),
        })?;
        Ok((decoder, layout))
    }
}

fn hides_all(pixels: &[u8]) -> bool {
    pixels.iter().skip(3).step_by(4).all(|&alpha| alpha == 0)
}

fn from_crate(format: Format, error: ImageError) -> Error {
    match error {
        ImageError::IoError(error) => Error::read(format, error),
        ImageError::Unsupported(_) | ImageError::Limits(_) => {
            Error::special(format, error.to_string())
        }
        other => Error::damaged(format, other),
    }
}
