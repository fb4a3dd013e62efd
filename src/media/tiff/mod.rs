//! TIFF and BigTIFF: the first picture of the file, strip by strip or one row of tiles at a time.
//!
//! Uses the `tiff` crate directly: `image`, which is built on it, refuses palettes, YCbCr, samples of
//! two or four bits and planar inks, and would hold a whole photograph twice.

mod ifd;
mod jpegs;
mod pixels;

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use tiff::TiffError;
use tiff::decoder::{ChunkType, Decoder, Limits};
use tiff::tags::Tag;

use super::decoder::{self, Goal, Header, Input, MEMORY_MAX, Opened, Stop, check_bounds};
use super::error::Error;
use super::exif::Orientation;
use super::icc::{PROFILE_MAX, Profile};
use super::picture::Picture;
use crate::wire::Format;
use jpegs::Jpegs;
use pixels::{Alpha, Color, Pixels, bytes};

/// None, Fax4, LZW, JPEG, Deflate under both of its numbers, and PackBits.
const COMPRESSIONS: [u16; 7] = [1, 4, 5, JPEG, 8, 32773, 32946];
const JPEG: u16 = 7;

#[derive(Debug)]
struct Tiff {
    pixels: Pixels,
    /// The samples of a kind stand together.
    planar: bool,
    /// Width and height of a strip or tile. A tile may be larger than the picture.
    chunk: (u32, u32),
    jpegs: Option<Jpegs>,
    /// Bytes that the crate is to read instead of those that the file has.
    patches: Vec<(u64, u8)>,
}

pub(super) fn open(input: &mut dyn Input) -> Result<Opened, Error> {
    let ifd::Directory { photometric, width, patches } = ifd::read(input)?;
    let mut decoder = reader(input, &patches)?;
    let (read, height) = decoder.dimensions().map_err(from_crate)?;
    let size = (width.unwrap_or(read), height);
    if size.0 == 0 || size.1 == 0 {
        return Err(damaged("it has no pixels"));
    }
    check_bounds(size, 3)?;
    let number = |decoder: &mut Decoder<_>, tag, default| {
        decoder
            .find_tag_unsigned::<u16>(tag)
            .map(|value| value.unwrap_or(default))
            .map_err(from_crate)
    };
    if number(&mut decoder, Tag::FillOrder, 1)? == 2 {
        return Err(unsupported("bits from the lowest to the highest (FillOrder 2)".to_owned()));
    }
    // The crate says so only where it comes upon it.
    let compression = number(&mut decoder, Tag::Compression, 1)?;
    if !COMPRESSIONS.contains(&compression) {
        return Err(unsupported(format!("compression {compression}")));
    }
    let samples = number(&mut decoder, Tag::SamplesPerPixel, 1)?;
    let planar = number(&mut decoder, Tag::PlanarConfiguration, 1)? == 2;
    let orientation = number(&mut decoder, Tag::Orientation, 1)?;
    let bits = decoder.find_tag_unsigned_vec::<u16>(Tag::BitsPerSample).map_err(from_crate)?;
    let bits = bits.and_then(|bits| bits.first().copied()).unwrap_or(1);
    let (color, own) = match photometric {
        0 | 1 => (Color::Gray, 1),
        2 => (Color::Rgb, 3),
        3 => (Color::Palette(palette(&mut decoder)?), 1),
        5 => (Color::Cmyk, 4),
        6 => (Color::YCbCr, 3),
        other => return Err(unsupported(format!("photometric interpretation {other}"))),
    };
    let whole = matches!(bits, 1 | 2 | 4) || bits >= 8;
    if samples < own || !whole || (bits < 8 && samples > 1) {
        return Err(unsupported(format!("{samples} samples of {bits} bits")));
    }
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).map_err(from_crate)?;
    let alpha = match extra.and_then(|extra| extra.first().copied()) {
        Some(1) if samples > own => Alpha::Associated,
        Some(2) if samples > own => Alpha::Plain,
        // Against the standard, and yet written often.
        None if photometric == 2 && samples == 4 => Alpha::Plain,
        _ => Alpha::None,
    };
    let mut chunk = decoder.chunk_dimensions();
    if decoder.get_chunk_type() == ChunkType::Strip {
        chunk.1 = chunk.1.min(height);
    }
    let mut header = Header::plain(size, if alpha == Alpha::None { 3 } else { 4 });
    let orientation = u8::try_from(orientation).ok().and_then(Orientation::from_exif);
    header.orientation = orientation.unwrap_or(Orientation::NoTransforms);
    header.profile = profile(&mut decoder).and_then(|it| Profile::read(&it, color.samples()));
    let (samples, bits) = (usize::from(samples), usize::from(bits));
    let jpegs = if compression == JPEG {
        if bits != 8 {
            return Err(unsupported(format!("JPEGs of {bits} bits")));
        }
        Some(Jpegs::read(&mut decoder, photometric == 0)?)
    } else {
        None
    };
    drop(decoder);
    let pixels = Pixels { color, samples, bits, alpha };
    Ok((header, Arc::new(Tiff { pixels, planar, chunk, jpegs, patches })))
}

impl decoder::Decoder for Tiff {
    fn memory(&self, header: &Header, goal: Goal) -> u64 {
        let (width, height) = (u64::from(self.chunk.0), u64::from(self.chunk.1.min(header.size.1)));
        // Each factor is as large as the file says.
        let pixel = (self.pixels.samples as u64 * self.pixels.bits as u64).div_ceil(8);
        // Of a JPEG all is made, by the crate only what the picture covers.
        let rows = if self.jpegs.is_some() { u64::from(self.chunk.1) } else { height };
        let chunk = (width * rows).saturating_mul(pixel);
        let band = u64::from(header.size.0) * header.channels as u64;
        let band = if self.is_tiled(header) { band * height } else { band };
        // Samples of more than a byte are made into bytes, planes into pixels.
        let bytes = if self.pixels.bits > 8 { chunk / 2 } else { 0 };
        let pixels = if self.planar { chunk } else { 0 };
        let jpegs = self.jpegs.as_ref();
        let jpegs = jpegs.map_or(0, |it| it.memory(self.chunk.0, self.stored_samples()));
        [bytes, pixels, jpegs, band, header.result_bytes(goal)]
            .into_iter()
            .fold(chunk, u64::saturating_add)
    }

    fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
        stop: Stop<'_>,
    ) -> Result<Picture, Error> {
        let mut decoder = reader(input, &self.patches)?;
        let (width, channels) = (header.size.0 as usize, header.channels);
        let mut shrink = header.shrink(goal);
        let inks = header.profile.as_ref().and_then(Profile::of_inks);
        let inks = inks.as_ref();
        let across = header.size.0.div_ceil(self.chunk.0.max(1));
        let down = header.size.1.div_ceil(self.chunk.1.max(1));
        let mut band = Vec::new();
        for row in 0..down {
            if stop() {
                return Err(Error::Stopped);
            }
            let height = self.chunk.1.min(header.size.1 - row * self.chunk.1) as usize;
            if !self.is_tiled(header) {
                // A strip may be the whole picture: no second copy of it is made.
                let (chunk, read) = self.chunk(&mut decoder, row, down, stop)?;
                if read < width {
                    return Err(damaged(SHORT));
                }
                band.resize(width * channels, 0);
                for line in self.pixels.lines(&chunk, read, height)? {
                    self.pixels.write(line, &mut band, channels, inks);
                    shrink.row(&band);
                }
                continue;
            }
            band.resize(width * channels * height, 0);
            for column in 0..across {
                let index = row * across + column;
                let (chunk, read) = self.chunk(&mut decoder, index, across * down, stop)?;
                let left = (column * self.chunk.0) as usize;
                // Of the last tile a part may be seen, and yet all be read.
                let seen = left..width.min(left + read);
                let lines = self.pixels.lines(&chunk, read, height)?;
                for (line, target) in lines.zip(band.chunks_exact_mut(width * channels)) {
                    let target = target.get_mut(seen.start * channels..seen.end * channels);
                    let target = target.ok_or_else(|| damaged(SHORT))?;
                    self.pixels.write(line, target, channels, inks);
                }
            }
            shrink.rows(&band);
        }
        Ok(shrink.finish(header.orientation))
    }
}

impl Tiff {
    fn is_tiled(&self, header: &Header) -> bool {
        self.chunk.0 < header.size.0
    }

    /// Samples that are stored together for a pixel.
    fn stored_samples(&self) -> usize {
        if self.planar { 1 } else { self.pixels.samples }
    }

    /// The samples of a strip or tile as bytes, interleaved, and how many pixels wide they are.
    fn chunk(
        &self,
        decoder: &mut Decoder<Patched<'_>>,
        index: u32,
        chunks: u32,
        stop: Stop<'_>,
    ) -> Result<(Vec<u8>, usize), Error> {
        let mut read = |index| match &self.jpegs {
            Some(jpegs) => {
                let size = (self.chunk, self.stored_samples());
                jpegs.samples(decoder.inner(), index, size, stop)
            }
            None => bytes(decoder.read_chunk(index).map_err(from_crate)?),
        };
        let samples = self.samples(index, chunks, &mut read)?;
        let width = match &self.jpegs {
            Some(_) => self.chunk.0,
            None => decoder.chunk_data_dimensions(index).0,
        };
        Ok((samples, width as usize))
    }

    fn samples(
        &self,
        index: u32,
        chunks: u32,
        read: &mut dyn FnMut(u32) -> Result<Vec<u8>, Error>,
    ) -> Result<Vec<u8>, Error> {
        if !self.planar || self.pixels.samples == 1 {
            return read(index);
        }
        let mut interleaved = Vec::new();
        for plane in 0..self.pixels.samples {
            let chunk = read(index + plane as u32 * chunks)?;
            interleaved.resize(chunk.len() * self.pixels.samples, 0);
            for (pixel, value) in interleaved.chunks_exact_mut(self.pixels.samples).zip(chunk) {
                pixel[plane] = value;
            }
        }
        Ok(interleaved)
    }
}

const SHORT: &str = "a strip or tile is too short";

/// Reds, greens, blues, of 16 bits each.
fn palette(decoder: &mut Decoder<Patched<'_>>) -> Result<Vec<[u8; 3]>, Error> {
    let map = decoder.get_tag_u16_vec(Tag::ColorMap).map_err(from_crate)?;
    let count = map.len() / 3;
    Ok((0..count).map(|at| [0, 1, 2].map(|c| (map[c * count + at] >> 8) as u8)).collect())
}

/// What is damaged about it is no reason to refuse the picture. As bytes: of values, the crate would
/// make 32 times as much.
fn profile(decoder: &mut Decoder<Patched<'_>>) -> Option<Vec<u8>> {
    let mut directory = decoder.image_ifd();
    let count = directory.find_entry(Tag::IccProfile)?.count();
    let mut bytes = vec![0; usize::try_from(count).ok().filter(|&count| count <= PROFILE_MAX)?];
    let read = directory.find_tag_bytes(Tag::IccProfile, &mut bytes, 0);
    read.ok().flatten().map(|_| bytes)
}

fn reader<'a>(
    input: &'a mut dyn Input,
    patches: &'a [(u64, u8)],
) -> Result<Decoder<Patched<'a>>, Error> {
    let mut limits = Limits::default();
    limits.decoding_buffer_size = MEMORY_MAX as usize;
    limits.intermediate_buffer_size = MEMORY_MAX as usize;
    limits.ifd_value_size = 16 << 20;
    input.rewind().map_err(Error::Read)?;
    let patched = Patched { input, patches };
    Ok(Decoder::new(patched).map_err(from_crate)?.with_limits(limits))
}

/// A file some of whose bytes are read as others.
struct Patched<'a> {
    input: &'a mut dyn Input,
    patches: &'a [(u64, u8)],
}

impl Read for Patched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.patches.is_empty() {
            return self.input.read(buffer);
        }
        let start = self.input.stream_position()?;
        let count = self.input.read(buffer)?;
        for &(at, byte) in self.patches {
            if let Some(at) = at.checked_sub(start).filter(|&at| at < count as u64) {
                buffer[at as usize] = byte;
            }
        }
        Ok(count)
    }
}

impl Seek for Patched<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        // Where we are already, the buffer is kept.
        match position {
            SeekFrom::Start(at) if self.input.stream_position()? == at => Ok(at),
            position => self.input.seek(position),
        }
    }
}

fn unsupported(why: String) -> Error {
    Error::NeedsTranscoder { format: Format::Tiff, why: Some(why) }
}

fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Tiff, what)
}

fn from_crate(error: TiffError) -> Error {
    match error {
        TiffError::IoError(error) => Error::read(Format::Tiff, error),
        TiffError::UnsupportedError(what) => unsupported(what.to_string()),
        other => damaged(other),
    }
}
