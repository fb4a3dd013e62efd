//! GIF: counts the frames, and sees whether the file is whole; the first one is decoded by
//! [`super::whole`].

use image::codecs::gif::GifDecoder;

use super::decoder::{Input, Opened, check_bounds};
use super::error::Error;
use super::interlaced::{FLAG, Interlaced};
use super::whole::{Create, Walked};
use crate::wire::Format;

/// Bytes of fill between the blocks of a file.
const FILL_MAX: u32 = 64 << 10;

/// Walks all blocks to the trailer.
pub(super) fn open(input: &mut dyn Input) -> Result<Opened, Error> {
    let head: [u8; 13] = bytes(input)?;
    skip(input, table(head[10]))?;
    let canvas = (u16_at(&head, 6), u16_at(&head, 8));
    let (mut first, mut interlaced, mut frames, mut fill) = (None, None, 0_u64, 0);
    loop {
        match bytes::<1>(input)?[0] {
            // Extension.
            0x21 => {
                skip(input, 1)?;
                sub_blocks(input)?;
            }
            0x2c => {
                let place: [u8; 9] = bytes(input)?;
                let [left, top, width, height] = [0, 2, 4, 6].map(|at| u16_at(&place, at));
                if frames == 0 && place[8] & FLAG != 0 && top + height <= canvas.1 {
                    let flags_at = input.stream_position().map_err(Error::Read)? - 1;
                    interlaced = Some(Interlaced { flags_at, top, height });
                }
                first.get_or_insert([left, top, width, height]);
                frames += 1;
                // Colour table, code size, data.
                skip(input, table(place[8]) + 1)?;
                sub_blocks(input)?;
            }
            0x3b => break,
            // Fill, which some writers leave between blocks; a file of holes is nothing else.
            0 if fill < FILL_MAX => fill += 1,
            _ => return Err(Error::damaged(Format::Gif, "an unknown block")),
        }
    }
    let first = first.ok_or_else(|| Error::damaged(Format::Gif, "it holds no picture"))?;
    let [left, top, width, height] = first;
    check_bounds((width, height), 3)?;
    let create: Create = |source| Ok(Box::new(GifDecoder::new(source)?));
    // A frame that is not as wide as its canvas, or ends below it, is decoded beside it.
    let fits = left == 0 && width == canvas.0 && top + height <= canvas.1;
    let frame = if fits { 0 } else { u64::from(width) * u64::from(height) * 4 };
    let (format, scratch) = (Format::Gif, (0, frame));
    Walked { format, create, animated: frames > 1, metadata: true, interlaced, scratch }.open(input)
}

/// Bytes of the colour table that these flags announce.
fn table(flags: u8) -> u64 {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

fn sub_blocks(input: &mut dyn Input) -> Result<(), Error> {
    loop {
        match bytes::<1>(input)?[0] {
            0 => return Ok(()),
            length => skip(input, u64::from(length))?,
        }
    }
}

/// Skips inside what is buffered; past the end it fails at the next read.
fn skip(input: &mut dyn Input, mut length: u64) -> Result<(), Error> {
    while length > 0 {
        let have = input.fill_buf().map_err(|error| Error::read(Format::Gif, error))?.len();
        if have == 0 {
            return Err(Error::Truncated(Format::Gif));
        }
        let step = length.min(have as u64);
        input.consume(step as usize);
        length -= step;
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn bytes<const N: usize>(input: &mut dyn Input) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|error| Error::read(Format::Gif, error))?;
    Ok(bytes)
}
