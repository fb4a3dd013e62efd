//! WebP through libwebp: reading, and writing thumbnails.

use std::io::{Read, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use webp::{Decoder, Encoder, WebPConfig};

use super::Error;
use super::exif::Orientation;
use super::icc::{Conversion, PROFILE_MAX};
use super::picture::Picture;
use super::probe::{Goal, Header, Input, check_bounds};
use super::shrink::Shrink;
use crate::wire::Format;

/// libwebp's scale, 0 to 100.
const QUALITY: f32 = 80.0;
/// Effort, 0 to 6: 2 is a third of the default's time for 5% more bytes.
const METHOD: i32 = 2;
/// Tag and length of a chunk.
const CHUNK: u64 = 8;
/// What stands before a frame's own chunks: its place, duration and flags.
const FRAME_HEAD: u64 = 16;
/// An orientation stands in the first bytes of its block.
const EXIF_MAX: u64 = 64 << 10;

/// The parts of a file that matter.
#[derive(Clone, Debug)]
pub(super) struct Details {
    /// What libwebp decodes: the whole file, or the chunks of an animation's first frame.
    picture: Range<u64>,
    /// The size of that.
    frame: (u32, u32),
    /// And where it lies on the canvas.
    place: (usize, usize),
    lossless: bool,
    alpha: bool,
    /// 0 where it is no animation.
    frames: u64,
    canvas: Option<(u32, u32)>,
    orientation: Orientation,
    pub(super) icc: Option<Arc<Conversion>>,
}

/// Walks all chunks, so that a cut is seen.
pub(super) fn header(input: &mut dyn Input) -> Result<(Header, Details), Error> {
    let length = input.seek(SeekFrom::End(0)).map_err(Error::Read)?;
    input.rewind().map_err(Error::Read)?;
    let [_, _, _, _, a, b, c, d, _, _, _, _] = bytes::<12>(input)?;
    let end = u64::from(u32::from_le_bytes([a, b, c, d])) + CHUNK;
    if end > length {
        return Err(Error::Truncated(Format::Webp));
    }
    let mut details = Details {
        picture: 0..end,
        frame: (0, 0),
        place: (0, 0),
        lossless: false,
        alpha: false,
        frames: 0,
        canvas: None,
        orientation: Orientation::default(),
        icc: None,
    };
    details.walk(input, 12, end)?;
    let size = details.canvas.unwrap_or(details.frame);
    if details.frame.0 == 0 || details.frame.1 == 0 {
        return Err(damaged("it holds no picture"));
    }
    check_bounds(size, 3)?;
    let alpha = details.alpha || size != details.frame;
    let header = Header {
        size,
        channels: if alpha { 4 } else { 3 },
        orientation: details.orientation,
        animated: details.frames > 1,
    };
    Ok((header, details))
}

impl Details {
    pub(super) fn memory(&self, header: &Header) -> u64 {
        let pixels = u64::from(self.frame.0) * u64::from(self.frame.1);
        // A lossless picture is decoded into words first, and alpha is a plane apart.
        let planes = if self.lossless { 4 } else { u64::from(self.alpha) };
        let line = 4 * u64::from(header.size.0);
        self.picture.end - self.picture.start + pixels * (3 + u64::from(self.alpha) + planes) + line
    }

    pub(super) fn decode(
        &self,
        header: &Header,
        input: &mut dyn Input,
        goal: Goal,
    ) -> Result<Picture, Error> {
        let mut data = Vec::with_capacity((self.picture.end - self.picture.start) as usize);
        input.seek(SeekFrom::Start(self.picture.start)).map_err(Error::Read)?;
        input
            .take(self.picture.end - self.picture.start)
            .read_to_end(&mut data)
            .map_err(Error::Read)?;
        let frame = Decoder::new(&data).decode().ok_or_else(|| damaged("its pixels"))?;
        drop(data);
        let channels = if frame.is_alpha() { 4 } else { 3 };
        let mut shrink =
            Shrink::new(header.size, header.channels, Shrink::factor(header.size, goal.ample));
        if (frame.width(), frame.height()) == header.size && channels == header.channels {
            shrink.rows(&frame);
        } else {
            let rows = frame.chunks_exact(frame.width() as usize * channels);
            place(header, self.place, rows, channels, &mut shrink);
        }
        Ok(shrink.finish(header.orientation))
    }

    /// Takes note of the chunks from `at` to `end`.
    fn walk(&mut self, input: &mut dyn Input, mut at: u64, end: u64) -> Result<(), Error> {
        while at + CHUNK <= end {
            input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
            let [t1, t2, t3, t4, a, b, c, d] = bytes(input)?;
            let length = u64::from(u32::from_le_bytes([a, b, c, d]));
            let content = at + CHUNK..at + CHUNK + length;
            if content.end > end {
                return Err(Error::Truncated(Format::Webp));
            }
            // Contents are padded to an even length.
            at = content.end + length % 2;
            self.chunk(input, &[t1, t2, t3, t4], content)?;
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        input: &mut dyn Input,
        tag: &[u8; 4],
        content: Range<u64>,
    ) -> Result<(), Error> {
        match tag {
            b"VP8X" => {
                let head: [u8; 10] = bytes(input)?;
                self.alpha |= head[0] & 0x10 != 0;
                self.canvas = Some((u24(&head, 4) + 1, u24(&head, 7) + 1));
            }
            b"EXIF" => {
                let mut block = Vec::new();
                let length = (content.end - content.start).min(EXIF_MAX);
                input.take(length).read_to_end(&mut block).map_err(Error::Read)?;
                self.orientation = Orientation::of_exif(&block);
            }
            b"ICCP" => {
                let mut profile = Vec::new();
                let length = (content.end - content.start).min(PROFILE_MAX as u64);
                input.take(length).read_to_end(&mut profile).map_err(Error::Read)?;
                self.icc = Conversion::of(&profile).map(Arc::new);
            }
            b"ANMF" => {
                self.frames += 1;
                let head: [u8; FRAME_HEAD as usize] = bytes(input)?;
                if self.frames == 1 {
                    self.place = (2 * u24(&head, 0) as usize, 2 * u24(&head, 3) as usize);
                    self.picture = (content.start + FRAME_HEAD).min(content.end)..content.end;
                    self.walk(input, self.picture.start, self.picture.end)?;
                }
            }
            b"VP8 " if self.frame == (0, 0) => {
                let head: [u8; 10] = bytes(input)?;
                // Fourteen bits each; the upper two are hints for scaling.
                let side =
                    |at: usize| u32::from(u16::from_le_bytes([head[at], head[at + 1]]) & 0x3fff);
                self.frame = (side(6), side(8));
            }
            b"VP8L" if self.frame == (0, 0) => {
                let [_, a, b, c, d] = bytes(input)?;
                let bits = u32::from_le_bytes([a, b, c, d]);
                self.frame = ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1);
                self.alpha |= bits >> 28 & 1 == 1;
                self.lossless = true;
            }
            b"ALPH" => self.alpha = true,
            _ => {}
        }
        Ok(())
    }
}

/// Lays the first frame of an animation, which is smaller than the canvas, where it belongs.
fn place<'a>(
    header: &Header,
    (left, top): (usize, usize),
    mut rows: impl Iterator<Item = &'a [u8]>,
    channels: usize,
    shrink: &mut Shrink,
) {
    let mut line = vec![0; header.size.0 as usize * header.channels];
    for y in 0..header.size.1 as usize {
        let row = if y < top { None } else { rows.next() };
        let start = (left * header.channels).min(line.len());
        match row {
            None => line.fill(0),
            Some(row) => {
                let targets = line[start..].chunks_exact_mut(header.channels);
                for (target, pixel) in targets.zip(row.chunks_exact(channels)) {
                    target[..3].copy_from_slice(&pixel[..3]);
                    if header.channels == 4 {
                        target[3] = if channels == 4 { pixel[3] } else { 255 };
                    }
                }
            }
        }
        shrink.row(&line);
    }
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

fn u24(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0])
}

fn damaged(what: &'static str) -> Error {
    Error::damaged(Format::Webp, what)
}
