//! PNG, row by row: a picture of any size needs the memory of a few rows. The frames of an animated one.

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

/// The limit of metadata; pixels are not counted here.
const METADATA_MAX: usize = 16 << 20;
const SIGNATURE: u64 = 8;
/// Signature, the header chunk's length and name, width, height.
const SIZE_END: usize = 24;

pub(super) fn open(input: &mut dyn Input) -> Result<Header, Error> {
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
    // The rows of seven passes are held until the last has come.
    let passes = if reader.info().interlaced { header.size.1 as usize } else { 0 };
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
    // To the end chunk.
    reader.finish().map_err(from_crate)?;
    Ok(shrink.finish(header.orientation))
}

/// Gives all frames as they are seen, with the time that each stays, until `each` wants no more.
pub(super) fn frames(input: &mut dyn Input, each: Each<'_>) -> Result<(), Error> {
    input.rewind().map_err(Error::Read)?;
    let mut reader = reader(input, false)?;
    let info = reader.info();
    let Some(count) = info.animation_control.map(|control| control.num_frames) else {
        return Ok(());
    };
    // The first picture is not always a frame.
    let mut begun = info.frame_control.is_some();
    let pixels = u64::from(info.width) * u64::from(info.height);
    let mut canvas = Canvas::new(Format::Png, info.size(), pixels * 8)?;
    for _ in 0..count {
        if !begun {
            reader.next_frame_info().map_err(from_crate)?;
        }
        begun = false;
        let control = reader.info().frame_control.ok_or_else(|| damaged("a frame is missing"))?;
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
        // Hundredths where nothing is said.
        let parts = if control.delay_den == 0 { 100 } else { u32::from(control.delay_den) };
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

/// Reads a frame, and lays it down.
fn lay(
    reader: &mut Reader<&mut dyn Input>,
    canvas: &mut Canvas,
    place: FrameArea,
    blend: Blend,
) -> Result<(), Error> {
    let layout = layout(reader);
    // As large as the picture, whatever the frame has of it.
    let size = reader.output_buffer_size().ok_or_else(|| damaged("it is too large"))?;
    let mut samples = vec![0; size];
    let frame = reader.next_frame(&mut samples).map_err(from_crate)?;
    // The crate puts the passes of a small frame into rows of the picture's width.
    let info = reader.info();
    let across = if info.interlaced { info.width } else { frame.width };
    let (mut pixels, mut row) = (Vec::new(), Vec::new());
    let (stride, width) = (across as usize * layout.bytes(), place.width as usize * layout.bytes());
    for (y, samples) in (0..place.height).zip(samples.chunks_exact(stride.max(1))) {
        pixels.clear();
        layout.append(&samples[..width.min(stride)], &mut pixels);
        if layout.channels() == 4 {
            canvas.row(y, &pixels, blend);
            continue;
        }
        row.clear();
        row.extend(pixels.as_chunks().0.iter().flat_map(|&[r, g, b]| [r, g, b, 255]));
        canvas.row(y, &row, blend);
    }
    Ok(())
}

fn reader(input: &mut dyn Input, with_profile: bool) -> Result<Reader<&mut dyn Input>, Error> {
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
fn layout(reader: &Reader<&mut dyn Input>) -> Layout {
    let (color, depth) = reader.output_color_type();
    let depth = if depth == BitDepth::Sixteen { Depth::SixteenBig } else { Depth::Eight };
    Layout { count: color.samples(), depth }
}

/// The end of the chunks, if none of them ends the file. Reads no contents.
fn lacks_end(input: &mut dyn Input) -> Result<Option<u64>, Error> {
    let mut at = SIGNATURE;
    input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
    loop {
        // Length and name; contents and checksum follow.
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
        // Within the buffer if it can be: many files have a chunk every eight kilobytes.
        input.seek_relative(i64::from(length)).map_err(Error::Read)?;
    }
}

/// The chunks up to a place, and the one that ends a file: without it the crate gives no last row.
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
