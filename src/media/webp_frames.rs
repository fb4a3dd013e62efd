//! The frames of an animated WebP. The crate decodes each by itself, from a copy that is made a file of
//! its own: when the crate decodes all of them, it never clears the canvas, whatever the file says.

use std::io::{Cursor, SeekFrom};
use std::time::Duration;

use image::ImageDecoder;
use image::codecs::webp::WebPDecoder;

use super::canvas::{Blend, Canvas, Disposal, FrameArea};
use super::decoder::{Input, MEMORY_MAX};
use super::error::Error;
use super::image_crate::{from_crate, limits};
use super::webp::{CHUNK, bytes, side};
use crate::wire::Format;

/// Place, size, time and flags, before a frame's chunks.
const HEAD: u64 = 16;
const REPLACES: u8 = 2;
const GOES: u8 = 1;
/// A flag of the header of a file.
const ALPHA: u8 = 0x10;

/// Gives all frames as they are seen, with the time that each stays, until `each` wants no more.
pub(super) fn frames(
    input: &mut dyn Input,
    each: &mut dyn FnMut(&Canvas, Duration) -> bool,
) -> Result<(), Error> {
    input.rewind().map_err(Error::Read)?;
    let [_, _, _, _, a, b, c, d, _, _, _, _] = bytes(input)?;
    let end = u64::from(u32::from_le_bytes([a, b, c, d])) + CHUNK;
    let (mut at, mut canvas) = (12, None);
    while at + CHUNK <= end {
        let [t1, t2, t3, t4, a, b, c, d] = bytes(input)?;
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        match &[t1, t2, t3, t4] {
            b"VP8X" if length >= 10 => {
                let [_, _, _, _, w1, w2, w3, h1, h2, h3] = bytes(input)?;
                let size = (side([w1, w2, w3]), side([h1, h2, h3]));
                // Planes of colours, alpha, and the pixels that are made of them.
                let frame = 7 * u64::from(size.0) * u64::from(size.1);
                canvas = Some(Canvas::new(Format::Webp, size, frame)?);
            }
            b"ANMF" if length > HEAD => {
                let canvas = canvas.as_mut().ok_or_else(|| damaged("a frame without a canvas"))?;
                let stays = frame(input, length, canvas)?;
                if !each(canvas, stays) {
                    return Ok(());
                }
            }
            _ => {}
        }
        // Contents are padded to an even length.
        at += CHUNK + length + length % 2;
        input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
    }
    Ok(())
}

/// Lays the next frame down, and says how long it stays.
fn frame(input: &mut dyn Input, length: u64, canvas: &mut Canvas) -> Result<Duration, Error> {
    let [x1, x2, x3, y1, y2, y3, w1, w2, w3, h1, h2, h3, d1, d2, d3, flags] = bytes(input)?;
    // Counted in twos.
    let at = |bytes| (side(bytes) - 1) * 2;
    let place = FrameArea {
        left: at([x1, x2, x3]),
        top: at([y1, y2, y3]),
        width: side([w1, w2, w3]),
        height: side([h1, h2, h3]),
    };
    if !canvas.has(place) {
        return Err(damaged("a frame is not on its canvas"));
    }
    let (blend, disposal) = (
        if flags & REPLACES != 0 { Blend::Replace } else { Blend::Over },
        if flags & GOES != 0 { Disposal::Clear } else { Disposal::Keep },
    );
    let file = alone(input, length - HEAD, (place.width, place.height))?;
    let failed = |error| from_crate(Format::Webp, error);
    let mut decoder = WebPDecoder::new(Cursor::new(file)).map_err(failed)?;
    decoder.set_limits(limits()).map_err(failed)?;
    if decoder.dimensions() != (place.width, place.height) {
        return Err(damaged("a frame is of another size than it says"));
    }
    let channels = usize::from(decoder.color_type().channel_count());
    let mut pixels = vec![0; decoder.total_bytes() as usize];
    decoder.read_image(&mut pixels).map_err(failed)?;
    canvas.begin(place, disposal);
    let mut line = Vec::new();
    for (y, row) in (0..).zip(pixels.chunks_exact(place.width as usize * channels)) {
        if channels == 4 {
            canvas.row(y, row, blend);
            continue;
        }
        line.clear();
        line.extend(row.as_chunks().0.iter().flat_map(|&[r, g, b]| [r, g, b, 255]));
        canvas.row(y, &line, blend);
    }
    Ok(Duration::from_millis(u64::from(side([d1, d2, d3]) - 1)))
}

/// The chunks of a frame, as a file.
fn alone(input: &mut dyn Input, length: u64, size: (u32, u32)) -> Result<Vec<u8>, Error> {
    if length > MEMORY_MAX / 4 {
        return Err(damaged("a frame is too long"));
    }
    let mut file = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0".to_vec();
    let flags_at = file.len();
    let side = |side: u32| (side - 1).to_le_bytes();
    let ([w1, w2, w3, _], [h1, h2, h3, _]) = (side(size.0), side(size.1));
    file.extend([0, 0, 0, 0, w1, w2, w3, h1, h2, h3]);
    let start = file.len();
    std::io::copy(&mut std::io::Read::take(input, length), &mut file)
        .map_err(|error| Error::read(Format::Webp, error))?;
    if ((file.len() - start) as u64) < length {
        return Err(Error::Truncated(Format::Webp));
    }
    // Pixels without loss have their alpha with them.
    if file[start..].starts_with(b"ALPH") || file[start..].starts_with(b"VP8L") {
        file[flags_at] = ALPHA;
    }
    let all = (file.len() as u32) - 8;
    file[4..8].copy_from_slice(&all.to_le_bytes());
    Ok(file)
}

fn damaged(what: &'static str) -> Error {
    Error::damaged(Format::Webp, what)
}
