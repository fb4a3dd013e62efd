//! Decodes TIFF and BigTIFF: decides whether a file is decoded by the `image` crate or by ffmpeg,
//! or is refused, and decodes CMYK with a colour profile.
//!
//! `is_right_in_ffmpeg` lists the files that ffmpeg decodes like libtiff, as a comparison has shown.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use image::codecs::tiff::TiffDecoder;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::Tag;
use tiff::{TiffError, TiffResult};

use super::decoder::{Goal, Header, Input, MEMORY_MAX, check_bounds};
use super::error::Error;
use super::exif::Orientation;
use super::icc::{PROFILE_MAX, Profile, Samples};
use super::image_crate::Variety;
use super::jpeg;
use super::picture::Picture;
use crate::wire::Format;

const LZW: u16 = 5;
const OLD_JPEG: u16 = 6;
const JPEG: u16 = 7;
/// The compressions that the crate supports: none, Fax 4, LZW, JPEG, Deflate (two numbers),
/// PackBits.
const KNOWN: [u16; 7] = [1, 4, LZW, JPEG, 8, 32946, PACK_BITS];
const PACK_BITS: u16 = 32773;
const CMYK: u16 = 5;
const YCBCR: u16 = 6;
const UNSIGNED: u16 = 1;
const ASSOCIATED: u16 = 1;
/// XMP, and above it Photoshop, IPTC, EXIF and ICC. All numbers that the decoding needs are below.
const FIRST_METADATA: u64 = 700;

/// The tags of the first directory that matter here.
struct Directory {
    size: (u32, u32),
    photometric: u16,
    compression: u16,
    bits: u16,
    samples: u16,
    /// Unsigned or signed integers, or floating point.
    sample_format: u16,
    extra: Option<u16>,
    orientation: Orientation,
    /// Bits are stored from the lowest to the highest.
    reversed: bool,
    planar: bool,
    tiled: bool,
    profile: Option<Vec<u8>>,
}

pub(super) fn open(input: &mut dyn Input) -> Result<Header, Error> {
    let directory = Directory::from_input(input)?;
    check_bounds(directory.size, 3)?;
    if let Some(header) = directory.inks() {
        return Ok(header);
    }
    if directory.is_ycc() {
        return Ok(Header {
            orientation: directory.orientation,
            ..Header::plain(directory.size, 3)
        });
    }
    // The `image` crate takes them for floating point if the file does not say.
    if directory.bits == 32 && directory.sample_format == UNSIGNED {
        return Err(directory.not_by_image("integers of 32 bits"));
    }
    if directory.reversed {
        return Err(directory.not_by_image("reversed bit order (FillOrder 2)"));
    }
    if !KNOWN.contains(&directory.compression) {
        return Err(directory.not_by_image("an uncommon compression"));
    }
    let mut header = directory
        .variety()
        .open(input)
        .map_err(|error| match error {
            Error::NeedsTranscoder { why: Some(why), .. } => directory.not_by_image(&why),
            error => error,
        })?;
    // Damaged metadata does not make the image unusable.
    let samples = if directory.photometric < 2 {
        Samples::Gray
    } else {
        Samples::Rgb
    };
    header.profile = directory
        .profile
        .and_then(|profile| Profile::read(&profile, samples));
    header.orientation = directory.orientation;
    Ok(header)
}

pub(super) fn decode(header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
    let directory = Directory::from_input(input)?;
    let decoded = directory.decode(header, input, goal);
    if decoded.is_err() && directory.tiled && directory.compression == LZW {
        directory.decode(header, &mut ByByte(input), goal)
    } else {
        decoded
    }
}

impl Directory {
    fn from_input(input: &mut dyn Input) -> Result<Self, Error> {
        let read = reader(input).and_then(|mut file| Self::read(&mut file));
        read.map_err(from_crate)
    }

    fn read(file: &mut Decoder<BufReader<&mut dyn Input>>) -> TiffResult<Self> {
        let size = file.dimensions()?;
        let numbers = |file: &mut Decoder<_>, tag| file.find_tag_unsigned_vec::<u16>(tag);
        let mut first = |tag, default| -> TiffResult<u16> {
            let numbers = numbers(file, tag)?;
            Ok(numbers
                .and_then(|numbers| numbers.first().copied())
                .unwrap_or(default))
        };
        let orientation = u8::try_from(first(Tag::Orientation, 1)?).ok();
        Ok(Self {
            size,
            photometric: first(Tag::PhotometricInterpretation, 0)?,
            compression: first(Tag::Compression, 1)?,
            bits: first(Tag::BitsPerSample, 1)?,
            samples: first(Tag::SamplesPerPixel, 1)?,
            sample_format: first(Tag::SampleFormat, UNSIGNED)?,
            reversed: first(Tag::FillOrder, 1)? == 2,
            planar: first(Tag::PlanarConfiguration, 1)? == 2,
            tiled: first(Tag::TileWidth, 0)? != 0,
            orientation: orientation
                .and_then(Orientation::from_exif)
                .unwrap_or(Orientation::NoTransforms),
            extra: numbers(file, Tag::ExtraSamples)?.and_then(|extra| extra.first().copied()),
            profile: profile(file),
        })
    }

    /// The error for an image that the `image` crate cannot decode: it is left to ffmpeg only if
    /// ffmpeg decodes it correctly.
    fn not_by_image(&self, why: &str) -> Error {
        let format = Format::Tiff;
        let Self {
            photometric,
            compression,
            bits,
            samples,
            ..
        } = self;
        let what = format!(
            "{why} (photometric interpretation {photometric}, compression {compression}, \
             {samples} samples of {bits} bits)"
        );
        if self.is_right_in_ffmpeg() {
            Error::special(format, what)
        } else {
            Error::Unsupported { format, what }
        }
    }

    /// Whether ffmpeg 5 and 7 decode this variety as libtiff does. They ignore the orientation, decode
    /// tiles and JPEG as noise, YCbCr in the wrong range, and floating point as integers; and they
    /// reverse no bits of pixels smaller than a byte, unless a compression has bytes of its own.
    fn is_right_in_ffmpeg(&self) -> bool {
        let is_compared = match (self.photometric, self.samples) {
            (0 | 1, 1) | (1, 2) | (2, 3 | 4) => self.bits <= 16,
            (3, 1) | (CMYK, 4) => self.bits <= 8,
            _ => false,
        };
        let is_mixed_up =
            self.reversed && self.bits < 8 && matches!(self.compression, 1 | PACK_BITS);
        is_compared
            && !is_mixed_up
            && !self.tiled
            && self.sample_format == UNSIGNED
            && self.extra != Some(ASSOCIATED)
            && ![OLD_JPEG, JPEG].contains(&self.compression)
            && self.orientation == Orientation::NoTransforms
    }

    /// Whether the pixels are YCbCr, which the `tiff` crate reads and murald converts.
    fn is_ycc(&self) -> bool {
        let Self {
            photometric,
            samples,
            bits,
            ..
        } = *self;
        (photometric, samples, bits, self.planar) == (YCBCR, 3, 8, false)
            && KNOWN.contains(&self.compression)
            && !self.reversed
    }

    fn variety(&self) -> Variety {
        Variety {
            format: Format::Tiff,
            create: |source| Ok(Box::new(TiffDecoder::new(source)?)),
            premultiplied: self.extra == Some(ASSOCIATED),
            // The crate's buffer in addition to the result.
            scratch: (
                u64::from(self.samples) * u64::from(self.bits).div_ceil(8),
                1 << 20,
            ),
        }
    }

    fn decode(&self, header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
        let inks = header.profile.as_ref().and_then(Profile::of_inks);
        if inks.is_none() && !self.is_ycc() {
            return self.variety().decode(header, input, goal);
        }
        let read = reader(input)
            .and_then(|mut file| file.read_image())
            .map_err(from_crate)?;
        let DecodingResult::U8(read) = read else {
            return Err(Error::damaged(Format::Tiff, "it changed while it was read"));
        };
        let mut shrink = header.shrink(goal);
        let mut colors = vec![0; 3 * header.size.0 as usize];
        for row in read
            .chunks_exact(usize::from(self.samples) * header.size.0 as usize)
            .take(header.size.1 as usize)
        {
            match &inks {
                Some(inks) => inks.apply(row, &mut colors),
                None => jpeg::to_rgb(row, &mut colors),
            }
            shrink.row(&colors);
        }
        Ok(shrink.finish(header.orientation))
    }

    /// Returns the header of a CMYK image with a profile, which the `image` crate would ignore.
    fn inks(&self) -> Option<Header> {
        let Self {
            size, orientation, ..
        } = *self;
        if (self.photometric, self.samples, self.bits, self.planar) != (CMYK, 4, 8, false) {
            return None;
        }
        let profile = Some(Profile::read(self.profile.as_deref()?, Samples::Cmyk)?);
        profile.as_ref().and_then(Profile::of_inks)?;
        Some(Header {
            orientation,
            profile,
            ..Header::plain(size, 3)
        })
    }
}

/// Reads one byte at a time. The crate reads tiles row by row, and its LZW decoder fails if it has read
/// the last byte of a tile before the last row: then each byte must wait for its codes.
struct ByByte<'a>(&'a mut dyn Input);

impl Read for ByByte<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(1);
        self.0.read(&mut buffer[..count])
    }
}

impl BufRead for ByByte<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let read = self.0.fill_buf()?;
        Ok(&read[..read.len().min(1)])
    }

    fn consume(&mut self, count: usize) {
        self.0.consume(count);
    }
}

impl Seek for ByByte<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// Reads the colour profile; ignores damaged ones. Reads bytes, as the crate converts only bytes of
/// one type to numbers.
fn profile(file: &mut Decoder<BufReader<&mut dyn Input>>) -> Option<Vec<u8>> {
    let mut directory = file.image_ifd();
    let count = directory.find_entry(Tag::IccProfile)?.count();
    let mut bytes = vec![
        0;
        usize::try_from(count)
            .ok()
            .filter(|&count| count <= PROFILE_MAX)?
    ];
    let read = directory.find_tag_bytes(Tag::IccProfile, &mut bytes, 0);
    read.ok().flatten().map(|_| bytes)
}

fn reader(input: &mut dyn Input) -> TiffResult<Decoder<BufReader<&mut dyn Input>>> {
    let mut limits = Limits::default();
    limits.decoding_buffer_size = MEMORY_MAX as usize;
    limits.intermediate_buffer_size = MEMORY_MAX as usize;
    check_counts(input)?;
    input.rewind()?;
    Ok(Decoder::new(BufReader::new(input))?.with_limits(limits))
}

/// Refuses a file that is shorter than a field of its first directory. The crate allocates 32 bytes for
/// each value of a field before a limit can be set. Damaged metadata is accepted: only its own reader
/// reads it, within limits.
fn check_counts(input: &mut dyn Input) -> io::Result<()> {
    let length = input.seek(SeekFrom::End(0))?;
    input.rewind()?;
    let mut start = [0; 4];
    input.read_exact(&mut start)?;
    let (is_little, is_big_tiff) = (start[0] == b'I', start.contains(&43));
    let number = |input: &mut dyn Input, width| {
        let mut bytes = [0; 8];
        input.read_exact(&mut bytes[..width])?;
        let big_endian = u64::from_be_bytes(bytes) >> (64 - 8 * width);
        io::Result::Ok(if is_little {
            u64::from_le_bytes(bytes)
        } else {
            big_endian
        })
    };
    input.seek(SeekFrom::Start(if is_big_tiff { 8 } else { 4 }))?;
    let (word, entries) = if is_big_tiff { (8, 8) } else { (4, 2) };
    let directory = number(input, word)?;
    input.seek(SeekFrom::Start(directory))?;
    for _ in 0..number(input, entries)? {
        let (tag, kind, count) = (number(input, 2)?, number(input, 2)?, number(input, word)?);
        number(input, word)?;
        let size = match kind {
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16.. => 8,
            _ => 1,
        };
        if tag < FIRST_METADATA && count.saturating_mul(size) > length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn from_crate(error: TiffError) -> Error {
    let format = Format::Tiff;
    match error {
        TiffError::IoError(error) => Error::read(format, error),
        TiffError::UnsupportedError(what) => Error::Unsupported {
            format,
            what: what.to_string(),
        },
        other => Error::damaged(format, other),
    }
}
