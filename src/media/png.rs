//! PNG and APNG, row by row: a picture of any size needs the memory of a few rows.

use std::sync::Arc;

use png::{
    BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, InterlaceInfo, Limits, Reader,
    Transformations, expand_interlaced_row,
};

use super::decoder::{self, Goal, Header, Input, Opened, Stop, check_bounds};
use super::error::Error;
use super::exif;
use super::icc::{Profile, Samples};
use super::picture::Picture;
use crate::wire::Format;

/// The limit of metadata; pixels are not counted here.
const METADATA_MAX: usize = 16 << 20;
/// Signature, the header chunk's length and name, width, height.
const SIZE_END: usize = 24;

#[derive(Debug)]
struct Png {
    /// Its rows come in seven passes, so that all are held at once.
    interlaced: bool,
}

pub(super) fn open(input: &mut dyn Input) -> Result<Opened, Error> {
    let mut head = [0; SIZE_END];
    input.read_exact(&mut head).map_err(|error| Error::read(Format::Png, error))?;
    let number =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    // Before the crate allocates rows of it.
    let size = (number(16), number(20));
    check_bounds(size, 3)?;
    input.rewind().map_err(Error::Read)?;
    let reader = reader(input, true)?;
    let info = reader.info();
    let mut header = Header::plain(size, channels(&reader));
    header.orientation = exif::orientation(info.exif_metadata.as_deref().unwrap_or_default());
    header.animated = info.animation_control.is_some_and(|control| control.num_frames > 1);
    let gray = matches!(info.color_type, ColorType::Grayscale | ColorType::GrayscaleAlpha);
    let samples = if gray { Samples::Gray } else { Samples::Rgb };
    let profile = info.icc_profile.as_deref();
    header.profile = profile.and_then(|bytes| Profile::read(bytes, samples));
    Ok((header, Arc::new(Png { interlaced: info.interlaced })))
}

impl decoder::Decoder for Png {
    fn memory(&self, header: &Header, goal: Goal) -> u64 {
        let (width, height) = (u64::from(header.size.0), u64::from(header.size.1));
        // Rows of up to eight bytes a pixel, decompressed in pieces.
        let rows = 8 * width * 8 + (1 << 20) + header.result_bytes(goal);
        if self.interlaced { rows + width * height * 4 } else { rows }
    }

    fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
        stop: Stop<'_>,
    ) -> Result<Picture, Error> {
        let mut reader = reader(input, false)?;
        if (reader.info().size(), channels(&reader)) != (header.size, header.channels) {
            return Err(damaged("it has changed meanwhile"));
        }
        let kind = reader.output_color_type();
        let mut shrink = header.shrink(goal);
        let mut line = Vec::new();
        let stride = header.size.0 as usize * header.channels;
        let mut pixels = vec![0; if self.interlaced { stride * header.size.1 as usize } else { 0 }];
        while let Some(row) = reader.next_interlaced_row().map_err(from_crate)? {
            if stop() {
                return Err(Error::Stopped);
            }
            let samples = eight_bits(kind, row.data(), &mut line);
            match row.interlace() {
                InterlaceInfo::Adam7(pass) => {
                    let bits = header.channels as u8 * 8;
                    expand_interlaced_row(&mut pixels, stride, samples, pass, bits);
                }
                InterlaceInfo::Null(_) => shrink.row(samples),
            }
        }
        shrink.rows(&pixels);
        // To the end chunk: a file that lacks it is cut off.
        reader.finish().map_err(from_crate)?;
        Ok(shrink.finish(header.orientation))
    }
}

pub(super) fn reader(
    input: &mut dyn Input,
    with_profile: bool,
) -> Result<Reader<&mut dyn Input>, Error> {
    let mut options = DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(!with_profile);
    // As libpng: what was inflated to something else than was deflated is no picture.
    options.set_ignore_adler32(false);
    let mut decoder = Decoder::new_with_options(input, options);
    decoder.set_limits(Limits { bytes: METADATA_MAX });
    // The crate would drop eight of sixteen bits: see [`eight_bits`].
    decoder.set_transformations(Transformations::EXPAND);
    let reader = decoder.read_info().map_err(from_crate)?;
    // The crate would count on whole colours.
    if reader.info().palette.as_ref().is_some_and(|colors| colors.len() % 3 != 0) {
        return Err(damaged("its palette ends within a colour"));
    }
    Ok(reader)
}

fn channels(reader: &Reader<&mut dyn Input>) -> usize {
    match reader.output_color_type().0 {
        ColorType::GrayscaleAlpha | ColorType::Rgba => 4,
        _ => 3,
    }
}

/// A row as RGB or RGBA, of eight bits each.
pub(super) fn eight_bits<'a>(
    (color, depth): (ColorType, BitDepth),
    row: &'a [u8],
    line: &'a mut Vec<u8>,
) -> &'a [u8] {
    line.clear();
    // The nearest of eight bits, as libpng and others have it.
    let near = |[high, low]: [u8; 2]| {
        ((u32::from(u16::from_be_bytes([high, low])) * 255 + 32_895) >> 16) as u8
    };
    match (color, depth) {
        (ColorType::Grayscale, BitDepth::Sixteen) => {
            line.extend(row.as_chunks().0.iter().flat_map(|&v| [near(v); 3]));
        }
        (ColorType::GrayscaleAlpha, BitDepth::Sixteen) => {
            let pixels = row.as_chunks().0.iter();
            line.extend(pixels.flat_map(|&[a, b, c, d]| {
                let light = near([a, b]);
                [light, light, light, near([c, d])]
            }));
        }
        (_, BitDepth::Sixteen) => line.extend(row.as_chunks().0.iter().map(|&v| near(v))),
        (ColorType::Grayscale, _) => line.extend(row.iter().flat_map(|&v| [v; 3])),
        (ColorType::GrayscaleAlpha, _) => {
            line.extend(row.as_chunks().0.iter().flat_map(|&[v, alpha]| [v, v, v, alpha]));
        }
        _ => return row,
    }
    line
}

pub(super) fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Png, what)
}

pub(super) fn from_crate(error: DecodingError) -> Error {
    match error {
        DecodingError::IoError(error) => Error::read(Format::Png, error),
        other => damaged(other),
    }
}
