//! Decodes PNG row by row, so that only a few rows are in memory unless the image is interlaced;
//! also decodes the frames of an animated PNG.

use std::io::{Cursor, ErrorKind, Read, SeekFrom};
use std::time::Duration;

use png::{
    BitDepth, BlendOp, ColorType, DecodeOptions, Decoder, DecodingError, DisposeOp, InterlaceInfo,
    Limits, Reader, Transformations, expand_interlaced_row,
};

use super::canvas::{Blend, Canvas, Disposal, FrameArea};
use super::decoder::{Each, Goal, Header, Input, Note, check_bounds};
use super::error::Error;
use super::exif;
use super::icc::{Profile, Samples};
use super::picture::Picture;
use super::samples::{Depth, Layout};
use crate::wire::Format;

/// Maximum size of metadata in bytes.
const METADATA_MAX: usize = 16 << 20;
const SIGNATURE: u64 = 8;
/// The end of the width and height in the header chunk.
const SIZE_END: usize = 24;

pub(super) fn open(input: &mut dyn Input) -> Result<Header, Error> {
    let mut head = [0; SIZE_END];
    input
        .read_exact(&mut head)
        .map_err(|error| Error::read(Format::Png, error))?;
    let number =
        |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    // Checked before the crate allocates memory for rows.
    let size = (number(16), number(20));
    check_bounds(size, 3)?;
    input.rewind().map_err(Error::Read)?;
    let reader = reader(input, true)?;
    let info = reader.info();
    let mut header = Header::plain(size, layout(&reader).channels());
    header.orientation = exif::orientation(info.exif_metadata.as_deref().unwrap_or_default());
    header.animated = info
        .animation_control
        .is_some_and(|control| control.num_frames > 1);
    let gray = matches!(
        info.color_type,
        ColorType::Grayscale | ColorType::GrayscaleAlpha
    );
    let samples = if gray { Samples::Gray } else { Samples::Rgb };
    let points = info.coding_independent_code_points.filter(|_| !gray);
    let points = points.map(|points| (points.color_primaries, points.transfer_function));
    let profile = info.icc_profile.as_deref();
    // Code points take precedence over a profile.
    header.profile = points
        .and_then(Profile::from_code_points)
        .or_else(|| profile.and_then(|bytes| Profile::read(bytes, samples)));
    drop(reader);
    let cut_at = lacks_end(input)?;
    if cut_at.is_some() && header.animated {
        return Err(Error::Truncated(Format::Png));
    }
    header.note = cut_at.map(|_| Note::NoEnd);
    Ok(header)
}

pub(super) fn decode(header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
    let mut completed;
    let input = match header.note.map(|_| lacks_end(input)).transpose()?.flatten() {
        None => input,
        Some(at) => {
            completed = complete(input, at)?;
            &mut completed
        }
    };
    input.rewind().map_err(Error::Read)?;
    let mut reader = reader(input, false)?;
    let layout = layout(&reader);
    header.check(Format::Png, reader.info().size(), layout.channels())?;
    let mut shrink = header.shrink(goal);
    let mut line = Vec::new();
    let stride = header.size.0 as usize * header.channels;
    // All rows of an interlaced image are in memory until the last of seven passes is read.
    let passes = if reader.info().interlaced {
        header.size.1 as usize
    } else {
        0
    };
    let mut pixels = vec![0; stride * passes];
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
    // Read up to the end chunk.
    reader.finish().map_err(from_crate)?;
    Ok(shrink.finish(header.orientation))
}

/// Passes all frames with their delays until `each` returns `false`.
pub(super) fn frames(input: &mut dyn Input, each: Each<'_>) -> Result<(), Error> {
    input.rewind().map_err(Error::Read)?;
    let mut reader = reader(input, false)?;
    let info = reader.info();
    let Some(count) = info.animation_control.map(|control| control.num_frames) else {
        return Ok(());
    };
    // The default image may not be part of the animation.
    let mut begun = info.frame_control.is_some();
    let pixels = u64::from(info.width) * u64::from(info.height);
    let mut canvas = Canvas::new(Format::Png, info.size(), pixels * 8)?;
    for _ in 0..count {
        if !begun {
            reader.next_frame_info().map_err(from_crate)?;
        }
        begun = false;
        let control = reader
            .info()
            .frame_control
            .ok_or_else(|| damaged("a frame is missing"))?;
        let place = FrameArea {
            left: control.x_offset,
            top: control.y_offset,
            width: control.width,
            height: control.height,
        };
        let disposal = match control.dispose_op {
            DisposeOp::None => Disposal::Keep,
            DisposeOp::Background => Disposal::Clear,
            DisposeOp::Previous => Disposal::Restore,
        };
        let blend = match control.blend_op {
            BlendOp::Source => Blend::Replace,
            BlendOp::Over => Blend::Over,
        };
        canvas.begin(place, disposal);
        lay(&mut reader, &mut canvas, place, blend)?;
        // A denominator of 0 means hundredths of a second.
        let parts = if control.delay_den == 0 {
            100
        } else {
            u32::from(control.delay_den)
        };
        if !each(
            canvas.size(),
            canvas.pixels(),
            Duration::from_secs(1) * u32::from(control.delay_num) / parts,
        ) {
            break;
        }
    }
    Ok(())
}

/// Decodes a frame and draws it on the canvas.
fn lay(
    reader: &mut Reader<&mut dyn Input>,
    canvas: &mut Canvas,
    place: FrameArea,
    blend: Blend,
) -> Result<(), Error> {
    let layout = layout(reader);
    // The crate needs a buffer for the whole image, however small the frame is.
    let size = reader
        .output_buffer_size()
        .ok_or_else(|| damaged("it is too large"))?;
    let mut samples = vec![0; size];
    let frame = reader.next_frame(&mut samples).map_err(from_crate)?;
    // The crate writes an interlaced frame into rows of the image's width.
    let info = reader.info();
    let across = if info.interlaced {
        info.width
    } else {
        frame.width
    };
    let (mut pixels, mut row) = (Vec::new(), Vec::new());
    let stride = across as usize * layout.bytes();
    let width = place.width as usize * layout.bytes();
    for (y, samples) in (0..place.height).zip(samples.chunks_exact(stride.max(1))) {
        pixels.clear();
        layout.append(&samples[..width.min(stride)], &mut pixels);
        if layout.channels() == 4 {
            canvas.row(y, &pixels, blend);
            continue;
        }
        row.clear();
        row.extend(
            pixels
                .as_chunks()
                .0
                .iter()
                .flat_map(|&[r, g, b]| [r, g, b, 255]),
        );
        canvas.row(y, &row, blend);
    }
    Ok(())
}

fn reader(input: &mut dyn Input, with_profile: bool) -> Result<Reader<&mut dyn Input>, Error> {
    let mut options = DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(!with_profile);
    // Refuse an image if the checksum of its decompressed data is wrong, as libpng does.
    options.set_ignore_adler32(false);
    let mut decoder = Decoder::new_with_options(input, options);
    decoder.set_limits(Limits {
        bytes: METADATA_MAX,
    });
    // Samples with 16 bits are rounded later (see [`Layout`]); the crate would cut off the low
    // byte.
    decoder.set_transformations(Transformations::EXPAND);
    let reader = decoder.read_info().map_err(from_crate)?;
    // The crate assumes that the palette ends with a whole colour.
    if reader
        .info()
        .palette
        .as_ref()
        .is_some_and(|colors| colors.len() % 3 != 0)
    {
        return Err(damaged("the last colour of its palette is incomplete"));
    }
    Ok(reader)
}

/// Returns the layout of the crate's samples.
fn layout(reader: &Reader<&mut dyn Input>) -> Layout {
    let (color, depth) = reader.output_color_type();
    let depth = if depth == BitDepth::Sixteen {
        Depth::SixteenBig
    } else {
        Depth::Eight
    };
    Layout {
        count: color.samples(),
        depth,
    }
}

/// Returns the end of the last complete chunk if the end chunk is missing. Reads chunk headers
/// only.
fn lacks_end(input: &mut dyn Input) -> Result<Option<u64>, Error> {
    let mut at = SIGNATURE;
    input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
    loop {
        // The chunk's length and name, and four more bytes; content and checksum follow.
        let mut head = [0; 12];
        match input.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Some(at)),
            read => read.map_err(Error::Read)?,
        }
        let [a, b, c, d, kind @ ..] = head;
        if kind.starts_with(b"IEND") {
            return Ok(None);
        }
        let length = u32::from_be_bytes([a, b, c, d]);
        at += u64::from(length) + 12;
        // Stays within the buffer if possible: many files have a chunk every eight kilobytes.
        input
            .seek_relative(i64::from(length))
            .map_err(Error::Read)?;
    }
}

/// Reads the chunks up to `at` and appends an end chunk, without which the crate does not return
/// the last row.
fn complete(input: &mut dyn Input, at: u64) -> Result<Cursor<Vec<u8>>, Error> {
    let mut file = Vec::new();
    input.rewind().map_err(Error::Read)?;
    input.take(at).read_to_end(&mut file).map_err(Error::Read)?;
    file.extend(b"\0\0\0\0IEND\xae\x42\x60\x82");
    Ok(Cursor::new(file))
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
