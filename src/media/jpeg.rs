//! JPEG: ordinary pictures through zune-jpeg, very large ones scaled while they are decoded.

use std::io::Read;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::Error;
use super::exif::Orientation;
use super::picture::Picture;
use super::probe::{Header, Input, check_bounds};
use super::shrink::Shrink;
use crate::wire::Format;

/// Pictures whose decoding takes no more than this are decoded whole: zune-jpeg is so much faster
/// that it beats scaled decoding (15 ms against 23 for 4K).
const WHOLE_MAX: u64 = 96 << 20;

#[derive(Clone, Debug)]
pub(super) struct Details {
    /// Of the file, in bytes.
    length: u64,
    /// What the coefficients take where all of them are held at once: progressive pictures.
    coefficients: u64,
}

/// Walks all segments. A file without its end marker is cut off, whatever a decoder makes of it.
pub(super) fn header(input: &mut dyn Input) -> Result<(Header, Details), Error> {
    let mut frame = None;
    let mut orientation = Orientation::default();
    let mut scans = 0;
    loop {
        match marker(input)? {
            // End of image.
            0xd9 => break,
            // Start of image and markers without content.
            0xd8 | 0x01 => {}
            // Start of frame; c4, c8 and cc are something else.
            kind @ 0xc0..=0xcf if !matches!(kind, 0xc4 | 0xc8 | 0xcc) => {
                let content = segment(input)?;
                frame.get_or_insert(Frame::read(kind, &content)?);
            }
            0xe1 if scans == 0 => {
                let content = segment(input)?;
                if content.starts_with(b"Exif\0\0") {
                    orientation = Orientation::of_exif(&content);
                }
            }
            kind => {
                scans += u32::from(kind == 0xda);
                segment(input)?;
            }
        }
    }
    let length = input.stream_position().map_err(Error::Read)?;
    let frame = frame.filter(|_| scans > 0).ok_or_else(|| damaged("it holds no picture"))?;
    let header = Header { size: frame.size, channels: 3, orientation, animated: false };
    Ok((header, Details { length, coefficients: frame.coefficients }))
}

struct Frame {
    size: (u32, u32),
    coefficients: u64,
}

impl Frame {
    fn read(kind: u8, content: &[u8]) -> Result<Self, Error> {
        let [_precision, h1, h2, w1, w2, _count, components @ ..] = content else {
            return Err(damaged("its frame header is too short"));
        };
        let size =
            (u32::from(u16::from_be_bytes([*w1, *w2])), u32::from(u16::from_be_bytes([*h1, *h2])));
        if size.0 == 0 || size.1 == 0 {
            return Err(damaged("it has no pixels"));
        }
        check_bounds(size, 3)?;
        let sampling =
            || components.chunks_exact(3).map(|c| (u64::from(c[1] >> 4), u64::from(c[1] & 15)));
        let (h, v) = sampling().fold((1, 1), |(h, v), s| (s.0.max(h), s.1.max(v)));
        let pixels = u64::from(size.0) * u64::from(size.1);
        // Two bytes each.
        let all = sampling().map(|s| 2 * pixels * s.0 * s.1 / (h * v)).sum();
        // c0 and c1 are decoded block by block.
        Ok(Self { size, coefficients: if kind > 0xc1 { all } else { 0 } })
    }
}

impl Details {
    pub(super) fn memory(&self, header: &Header, goal: (u32, u32)) -> u64 {
        let whole = self.whole(header);
        if whole <= WHOLE_MAX {
            return whole;
        }
        let (width, height) = scaled(header.size, divisor(header.size, goal));
        // Planes, then pixels made of them.
        self.coefficients + 2 * 3 * u64::from(width) * u64::from(height)
    }

    pub(super) fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: (u32, u32),
    ) -> Result<Picture, Error> {
        if self.whole(header) <= WHOLE_MAX {
            self.decode_whole(header, input, goal)
        } else {
            decode_scaled(header, input, goal)
        }
    }

    fn whole(&self, header: &Header) -> u64 {
        let (width, height) = header.size;
        self.length + self.coefficients + 3 * u64::from(width) * u64::from(height)
    }

    fn decode_whole(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: (u32, u32),
    ) -> Result<Picture, Error> {
        let mut data = Vec::with_capacity(self.length as usize);
        input.take(self.length).read_to_end(&mut data).map_err(Error::Read)?;
        let options = DecoderOptions::default()
            .set_max_width(usize::from(u16::MAX))
            .set_max_height(usize::from(u16::MAX))
            .jpeg_set_out_colorspace(ColorSpace::RGB);
        // Strict, or what is missing in the middle would be made up in grey.
        let strict =
            JpegDecoder::new_with_options(ZCursor::new(&data), options.set_strict_mode(true))
                .decode();
        let pixels = match strict {
            // Some cameras leave fill between the segments; nothing is missing then.
            Err(error) if error.to_string().contains("Extra bytes between headers") => {
                JpegDecoder::new_with_options(ZCursor::new(&data), options).decode()
            }
            other => other,
        }
        .map_err(|error| damaged(error.to_string()))?;
        drop(data);
        finish(header, header.size, pixels, goal)
    }
}

/// Decodes at a half, a quarter or an eighth: no more than that is ever in memory.
///
/// The crate runs a thread of its own for each component here.
fn decode_scaled(
    header: &Header,
    input: &mut dyn Input,
    goal: (u32, u32),
) -> Result<Picture, Error> {
    use jpeg_decoder::PixelFormat;
    let mut decoder = jpeg_decoder::Decoder::new(input);
    let (width, height) = scaled(header.size, divisor(header.size, goal));
    let size = decoder.scale(width as u16, height as u16).map_err(from_crate)?;
    let size = (u32::from(size.0), u32::from(size.1));
    let pixels = decoder.decode().map_err(from_crate)?;
    let format = decoder.info().map(|info| info.pixel_format);
    let pixels = match format {
        Some(PixelFormat::RGB24) => pixels,
        Some(PixelFormat::L8) => pixels.iter().flat_map(|&v| [v; 3]).collect(),
        Some(PixelFormat::L16) => pixels
            .chunks_exact(2)
            .flat_map(|v| [u16::from_ne_bytes([v[0], v[1]]).to_be_bytes()[0]; 3])
            .collect(),
        Some(PixelFormat::CMYK32) => pixels.chunks_exact(4).flat_map(from_cmyk).collect(),
        None => return Err(damaged("it holds no picture")),
    };
    finish(header, size, pixels, goal)
}

/// Cyan, magenta, yellow and black as light, not ink: the way that both crates give them.
fn from_cmyk(pixel: &[u8]) -> [u8; 3] {
    let black = 255 - u16::from(pixel[3]);
    [0, 1, 2].map(|at| ((255 - u16::from(pixel[at])) * black / 255) as u8)
}

fn finish(
    header: &Header,
    size: (u32, u32),
    pixels: Vec<u8>,
    goal: (u32, u32),
) -> Result<Picture, Error> {
    if pixels.len() != size.0 as usize * size.1 as usize * 3 {
        return Err(damaged("it holds another number of pixels than it says"));
    }
    let factor = Shrink::factor(size, goal);
    let mut shrink = Shrink::new(size, 3, factor);
    shrink.rows(&pixels);
    Ok(shrink.finish(header.orientation))
}

/// The largest of 8, 4, 2, 1 that leaves at least `goal`.
fn divisor(size: (u32, u32), goal: (u32, u32)) -> u32 {
    let enough = |&divisor: &u32| {
        let (width, height) = scaled(size, divisor);
        width >= goal.0 && height >= goal.1
    };
    [8, 4, 2].into_iter().find(enough).unwrap_or(1)
}

fn scaled(size: (u32, u32), divisor: u32) -> (u32, u32) {
    (size.0.div_ceil(divisor), size.1.div_ceil(divisor))
}

/// Skips to the next marker that is neither fill nor part of coded data.
fn marker(input: &mut dyn Input) -> Result<u8, Error> {
    loop {
        input.skip_until(0xff).map_err(Error::Read)?;
        let mut kind = 0xff;
        while kind == 0xff {
            kind = byte(input)?;
        }
        // A zero stands for a coded 0xff; d0 to d7 are restarts.
        if !matches!(kind, 0 | 0xd0..=0xd7) {
            return Ok(kind);
        }
    }
}

/// The content of the segment that begins here.
fn segment(input: &mut dyn Input) -> Result<Vec<u8>, Error> {
    let length = u16::from_be_bytes([byte(input)?, byte(input)?]);
    let length = length.checked_sub(2).ok_or_else(|| damaged("a segment has no length"))?;
    let mut content = vec![0; usize::from(length)];
    input.read_exact(&mut content).map_err(|error| Error::read(Format::Jpg, error))?;
    Ok(content)
}

fn byte(input: &mut dyn Input) -> Result<u8, Error> {
    let mut byte = [0];
    input.read_exact(&mut byte).map_err(|error| Error::read(Format::Jpg, error))?;
    Ok(byte[0])
}

fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Jpg, what)
}

fn from_crate(error: jpeg_decoder::Error) -> Error {
    match error {
        jpeg_decoder::Error::Io(error) => Error::read(Format::Jpg, error),
        other => damaged(other),
    }
}
