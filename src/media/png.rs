//! PNG and APNG, row by row: a picture of any size needs the memory of a few rows.

use std::io::{Cursor, ErrorKind, Read, SeekFrom};
use std::sync::Arc;

use png::{
    BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, InterlaceInfo, Limits, Reader,
    Transformations, expand_interlaced_row,
};

use super::decoder::{self, Goal, Header, Input, Note, Opened, check_bounds};
use super::error::Error;
use super::exif;
use super::icc::{Profile, Samples};
use super::picture::Picture;
use super::samples::{Depth, Layout};
use crate::wire::Format;

/// The limit of metadata; pixels are not counted here.
const METADATA_MAX: usize = 16 << 20;
const SIGNATURE: u64 = 8;
/// Signature, the header chunk's length and name, width, height.
const SIZE_END: usize = 24;

#[derive(Debug)]
struct Png {
    /// Its rows come in seven passes, so that all are held at once.
    interlaced: bool,
    /// The end of its chunks, if it lacks the last one.
    cut_at: Option<u64>,
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
    let mut header = Header::plain(size, layout(&reader).channels());
    header.orientation = exif::orientation(info.exif_metadata.as_deref().unwrap_or_default());
    header.animated = info.animation_control.is_some_and(|control| control.num_frames > 1);
    let gray = matches!(info.color_type, ColorType::Grayscale | ColorType::GrayscaleAlpha);
    let samples = if gray { Samples::Gray } else { Samples::Rgb };
    let points = info.coding_independent_code_points.filter(|_| !gray);
    let points = points.map(|points| (points.color_primaries, points.transfer_function));
    let profile = info.icc_profile.as_deref();
    // Code points come before a profile.
    header.profile = points
        .and_then(Profile::of_code_points)
        .or_else(|| profile.and_then(|bytes| Profile::read(bytes, samples)));
    let interlaced = info.interlaced;
    drop(reader);
    let cut_at = lacks_end(input)?;
    if cut_at.is_some() && header.animated {
        return Err(Error::Truncated(Format::Png));
    }
    header.note = cut_at.map(|_| Note::NoEnd);
    Ok((header, Arc::new(Png { interlaced, cut_at })))
}

impl decoder::Decoder for Png {
    fn decode(&self, header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
        let mut whole;
        let input = match self.cut_at {
            None => input,
            Some(at) => {
                whole = completed(input, at)?;
                &mut whole
            }
        };
        let mut reader = reader(input, false)?;
        let layout = layout(&reader);
        if (reader.info().size(), layout.channels()) != (header.size, header.channels) {
            return Err(damaged("it changed while it was read"));
        }
        let mut shrink = header.shrink(goal);
        let mut line = Vec::new();
        let stride = header.size.0 as usize * header.channels;
        let mut pixels = vec![0; if self.interlaced { stride * header.size.1 as usize } else { 0 }];
        while let Some(row) = reader.next_interlaced_row().map_err(from_crate)? {
            line.clear();
            layout.append(row.data(), &mut line);
            match row.interlace() {
                InterlaceInfo::Adam7(pass) => {
                    let bits = header.channels as u8 * 8;
                    expand_interlaced_row(&mut pixels, stride, &line, pass, bits);
                }
                InterlaceInfo::Null(_) => shrink.row(&line),
            }
        }
        shrink.rows(&pixels);
        // To the end chunk.
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

/// How the crate gives the samples of a pixel.
pub(super) fn layout(reader: &Reader<&mut dyn Input>) -> Layout {
    let (color, depth) = reader.output_color_type();
    let depth = if depth == BitDepth::Sixteen { Depth::SixteenBig } else { Depth::Eight };
    Layout { count: color.samples(), depth }
}

/// The end of the chunks, if none of them ends the file. Reads no contents.
fn lacks_end(input: &mut dyn Input) -> Result<Option<u64>, Error> {
    let mut at = SIGNATURE;
    loop {
        // Length and name; contents and checksum follow.
        let mut head = [0; 12];
        input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
        match input.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Some(at)),
            read => read.map_err(Error::Read)?,
        }
        let [a, b, c, d, kind @ ..] = head;
        if kind.starts_with(b"IEND") {
            return Ok(None);
        }
        at += u64::from(u32::from_be_bytes([a, b, c, d])) + 12;
    }
}

/// The chunks up to a place, and the one that ends a file: without it the crate gives no last row.
fn completed(input: &mut dyn Input, at: u64) -> Result<Cursor<Vec<u8>>, Error> {
    let mut file = Vec::new();
    input.rewind().map_err(Error::Read)?;
    input.take(at).read_to_end(&mut file).map_err(Error::Read)?;
    file.extend(b"\0\0\0\0IEND\xae\x42\x60\x82");
    Ok(Cursor::new(file))
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
