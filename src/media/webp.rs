//! WebP: counts the frames, and sees whether the file is whole; the first one is decoded by
//! [`super::whole`]. Thumbnails are written by libwebp.

use std::io::SeekFrom;

use image::codecs::webp::WebPDecoder;
use webp::{Encoder, WebPConfig};

use super::decoder::{Input, Opened};
use super::error::Error;
use super::icc::PROFILE_MAX;
use super::picture::Picture;
use super::whole::{Create, Walked};
use crate::wire::Format;

/// libwebp's scale, 0 to 100.
const QUALITY: f32 = 80.0;
/// Effort, 0 to 6: 2 is a third of the default's time for 5% more bytes.
const METHOD: i32 = 2;
/// Tag and length of a chunk.
const CHUNK: u64 = 8;

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
    while at + CHUNK <= end {
        let [t1, t2, t3, t4, a, b, c, d] = bytes(input)?;
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        if at + CHUNK + length > end {
            return Err(Error::Truncated(Format::Webp));
        }
        match &[t1, t2, t3, t4] {
            b"ANMF" => frames += 1,
            // Both are read whole.
            b"ICCP" | b"EXIF" => metadata &= length <= PROFILE_MAX as u64,
            _ => {}
        }
        largest = length.max(largest);
        // Contents are padded to an even length.
        let padded = length + length % 2;
        input.seek_relative(padded as i64).map_err(Error::Read)?;
        at += CHUNK + padded;
    }
    let create: Create = |source| Ok(Box::new(WebPDecoder::new(source)?));
    // Planes of colours and alpha; of an animation the frame and its canvas, too. Coded data are
    // read whole.
    let scratch = (if frames > 0 { 10 } else { 4 }, largest);
    let format = Format::Webp;
    Walked { format, create, animated: frames > 1, metadata, scratch }.open(input)
}

/// A thumbnail's bytes.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, Error> {
    let (pixels, width, height) = (picture.pixels(), picture.width(), picture.height());
    let encoder = if picture.has_alpha() {
        Encoder::from_rgba(pixels, width, height)
    } else {
        Encoder::from_rgb(pixels, width, height)
    };
    let mut config = WebPConfig::new().map_err(|()| Error::Encode("libwebp's version".into()))?;
    config.quality = QUALITY;
    config.method = METHOD;
    let encoded = encoder
        .encode_advanced(&config)
        .map_err(|error| Error::Encode(format!("libwebp: {error:?}").into()))?;
    Ok(encoded.to_vec())
}

fn bytes<const N: usize>(input: &mut dyn Input) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(|error| Error::read(Format::Webp, error))?;
    Ok(bytes)
}
