//! WebP: counts the frames and finds truncated files; writes thumbnails with libwebp.
//!
//! [`super::image_crate`] decodes the first frame, [`super::webp_frames`] all of them.

use std::io::SeekFrom;
use std::sync::Once;

use image::codecs::webp::WebPDecoder;
use webp::{Encoder, WebPConfig};

use super::decoder::{Input, Opened};
use super::error::Error;
use super::icc::PROFILE_MAX;
use super::image_crate::{Create, Walked};
use super::picture::Picture;
use super::{vp8, vp8l};
use crate::wire::Format;

/// libwebp's scale, 0 to 100.
const QUALITY: f32 = 80.0;
/// Effort, 0 to 6: 2 is a third of the default's time for 5% more bytes.
const METHOD: i32 = 2;
/// Tag and length of a chunk.
pub(super) const CHUNK: u64 = 8;

/// Walks all chunks.
pub(super) fn open(input: &mut dyn Input) -> Result<Opened, Error> {
    let length = input.seek(SeekFrom::End(0)).map_err(Error::Read)?;
    input.rewind().map_err(Error::Read)?;
    let [_, _, _, _, a, b, c, d, _, _, _, _] = bytes(input)?;
    let end = u64::from(u32::from_le_bytes([a, b, c, d])) + CHUNK;
    if end > length {
        return Err(Error::Truncated(Format::Webp));
    }
    let (mut at, mut frames, mut metadata, mut largest) = (12, 0_u64, true, 0);
    let (mut canvas, mut tables) = ((0, 0), 0);
    while at + CHUNK <= end {
        let [t1, t2, t3, t4, a, b, c, d] = bytes(input)?;
        let tag = [t1, t2, t3, t4];
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        if at + CHUNK + length > end {
            return Err(Error::Truncated(Format::Webp));
        }
        match &tag {
            b"ANMF" => {
                frames += 1;
                tables = tables.max(frame(input, length)?);
            }
            b"VP8X" if length >= 10 => {
                let [_, _, _, _, w1, w2, w3, h1, h2, h3] = bytes(input)?;
                canvas = (side([w1, w2, w3]), side([h1, h2, h3]));
            }
            b"VP8 " | b"VP8L" | b"ALPH" => tables = tables.max(coded(input, &tag, length, canvas)),
            // Both are read whole.
            b"ICCP" | b"EXIF" => metadata &= length <= PROFILE_MAX as u64,
            _ => {}
        }
        largest = length.max(largest);
        // Contents are padded to an even length.
        at += CHUNK + length + length % 2;
        input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
    }
    let create: Create = |source| Ok(Box::new(WebPDecoder::new(source)?));
    // Planes of colours and alpha; of an animation the frame and its canvas, too. Coded data are
    // read whole, beside tables or copies of them.
    let scratch = (if frames > 0 { 10 } else { 4 }, largest + tables);
    let format = Format::Webp;
    Walked { format, create, animated: frames > 1, metadata, scratch }.open(input)
}

/// The memory of a frame's tables or copies; it lies before the next chunk.
fn frame(input: &mut dyn Input, length: u64) -> Result<u64, Error> {
    let (mut left, mut tables) = (length.saturating_sub(16), 0);
    let [_, _, _, _, _, _, w1, w2, w3, h1, h2, h3, _, _, _, _] = bytes(input)?;
    let size = (side([w1, w2, w3]), side([h1, h2, h3]));
    while left >= CHUNK {
        let [t1, t2, t3, t4, a, b, c, d] = bytes(input)?;
        let length = u64::from(u32::from_le_bytes([a, b, c, d])).min(left - CHUNK);
        let start = input.stream_position().map_err(Error::Read)?;
        tables = tables.max(coded(input, &[t1, t2, t3, t4], length, size));
        let padded = (length + length % 2).min(left - CHUNK);
        input.seek(SeekFrom::Start(start + padded)).map_err(Error::Read)?;
        left -= CHUNK + padded;
    }
    Ok(tables)
}

/// The memory of the tables of lossless pixels or of an alpha channel, or of copies of lossy data.
fn coded(input: &mut dyn Input, tag: &[u8; 4], length: u64, size: (u32, u32)) -> u64 {
    let tables = match tag {
        b"VP8 " => {
            let planes = vp8::beyond(input, size).unwrap_or_default();
            Some(planes + vp8::beside(input, length).unwrap_or_default())
        }
        b"VP8L" => vp8l::tables(input, length, None),
        b"ALPH" => match bytes(input) {
            Ok([how]) if how & 3 == 1 => vp8l::tables(input, length.saturating_sub(1), Some(size)),
            _ => None,
        },
        _ => None,
    };
    tables.unwrap_or_default()
}

/// Less one, in three bytes.
pub(super) fn side([low, middle, high]: [u8; 3]) -> u32 {
    u32::from_le_bytes([low, middle, high, 0]) + 1
}

/// libwebp looks at the first picture of each kind for what the processor can do, and takes no lock
/// for it.
static LOOKED: Once = Once::new();

/// A thumbnail's bytes.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, Error> {
    LOOKED.call_once(|| {
        // Other threads wait at the lock. A failure here is reported below, where it happens again.
        lossy(Encoder::from_rgb(&[0; 3], 1, 1)).ok();
        lossy(Encoder::from_rgba(&[0, 0, 0, 128], 1, 1)).ok();
    });
    let (pixels, width, height) = (picture.pixels(), picture.width(), picture.height());
    lossy(match picture.has_alpha() {
        true => Encoder::from_rgba(pixels, width, height),
        false => Encoder::from_rgb(pixels, width, height),
    })
}

fn lossy(encoder: Encoder<'_>) -> Result<Vec<u8>, Error> {
    let mut config = WebPConfig::new().map_err(|()| Error::Encode("libwebp's version".into()))?;
    config.quality = QUALITY;
    config.method = METHOD;
    let encoded = encoder
        .encode_advanced(&config)
        .map_err(|error| Error::Encode(format!("libwebp: {error:?}").into()))?;
    Ok(encoded.to_vec())
}

pub(super) fn bytes<const N: usize>(input: &mut dyn Input) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|error| Error::read(Format::Webp, error))?;
    Ok(bytes)
}
