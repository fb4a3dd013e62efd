//! PNG and APNG, row by row: a picture of any size takes the memory of a few rows.

use std::sync::Arc;

use png::{ColorType, DecodeOptions, Decoder, DecodingError, Limits, Reader, Transformations};

use super::decoder::{self, Goal, Header, Input, Opened, Stop, check_bounds};
use super::error::Error;
use super::exif;
use super::icc::{Profile, Samples};
use super::picture::Picture;
use crate::wire::Format;

/// What metadata may take; pixels don't count here.
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
        let kind = reader.output_color_type().0;
        let mut shrink = header.shrink(goal);
        let mut line = Vec::new();
        if self.interlaced {
            let length = reader.output_buffer_size().ok_or_else(|| damaged(TOO_LARGE))?;
            let mut pixels = vec![0; length];
            let frame = reader.next_frame(&mut pixels).map_err(from_crate)?;
            for row in pixels.chunks_exact(frame.line_size) {
                shrink.row(widened(kind, row, &mut line));
            }
        } else {
            for _ in 0..header.size.1 {
                if stop() {
                    return Err(Error::Stopped);
                }
                let row = reader.next_row().map_err(from_crate)?;
                let row = row.ok_or(Error::Truncated(Format::Png))?;
                shrink.row(widened(kind, row.data(), &mut line));
            }
        }
        // To the end chunk: a file that lacks it is cut off.
        reader.finish().map_err(from_crate)?;
        Ok(shrink.finish(header.orientation))
    }
}

const TOO_LARGE: &str = "a row is too long";

fn reader(input: &mut dyn Input, with_profile: bool) -> Result<Reader<&mut dyn Input>, Error> {
    let mut options = DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(!with_profile);
    // As libpng: what was inflated to something else than was deflated is no picture.
    options.set_ignore_adler32(false);
    let mut decoder = Decoder::new_with_options(input, options);
    decoder.set_limits(Limits { bytes: METADATA_MAX });
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder.read_info().map_err(from_crate)
}

fn channels(reader: &Reader<&mut dyn Input>) -> usize {
    match reader.output_color_type().0 {
        ColorType::GrayscaleAlpha | ColorType::Rgba => 4,
        _ => 3,
    }
}

/// A row as RGB or RGBA.
fn widened<'a>(kind: ColorType, row: &'a [u8], line: &'a mut Vec<u8>) -> &'a [u8] {
    line.clear();
    match kind {
        ColorType::Grayscale => line.extend(row.iter().flat_map(|&v| [v; 3])),
        ColorType::GrayscaleAlpha => {
            line.extend(row.chunks_exact(2).flat_map(|v| [v[0], v[0], v[0], v[1]]));
        }
        _ => return row,
    }
    line
}

fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Png, what)
}

fn from_crate(error: DecodingError) -> Error {
    match error {
        DecodingError::IoError(error) => Error::read(Format::Png, error),
        other => damaged(other),
    }
}
