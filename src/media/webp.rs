//! WebP by libwebp: pictures and animations from a file that is held in memory, and thumbnails.

use std::io::Read;
use std::sync::{Arc, Once};
use std::time::Duration;

use webp::{Encoder, WebPConfig};

use super::decoder::{Decoder, Each, Goal, Header, Input, MEMORY_MAX, Opened, check_bounds};
use super::error::Error;
use super::exif;
use super::icc::{PROFILE_MAX, Profile, Samples};
use super::libwebp::{self, Container, Frames};
use super::picture::Picture;
use crate::wire::Format;

/// libwebp's scale, 0 to 100.
const QUALITY: f32 = 80.0;
/// Effort, 0 to 6: 2 is a third of the default's time for 5% more bytes.
const METHOD: i32 = 2;

#[derive(Debug)]
struct Webp {
    /// One frame, which is all of the picture.
    plain: bool,
}

pub(super) fn open(input: &mut dyn Input) -> Result<Opened, Error> {
    let file = read(input)?;
    let container = Container::read(&file).ok_or_else(|| refused(&file))?;
    let size = container.size();
    check_bounds(size, 3)?;
    let (plain, alpha) = container.first().ok_or_else(|| damaged("it contains no picture"))?;
    let mut header = Header::plain(size, if plain && !alpha { 3 } else { 4 });
    header.animated = container.frames() > 1;
    let profile = container.chunk(b"ICCP", PROFILE_MAX).unwrap_or_default();
    header.profile = Profile::read(&profile, Samples::Rgb);
    let exif = container.chunk(b"EXIF", PROFILE_MAX).unwrap_or_default();
    header.orientation = exif::orientation(&exif);
    let pixels = u64::from(size.0) * u64::from(size.1);
    // Colours without loss, or planes of others, and of alpha; of an animation also its canvases.
    let bytes = file.len() as u64 + pixels * if plain { 9 } else { 17 };
    if bytes > MEMORY_MAX {
        let why = Some(format!("decoding it takes {} MiB of memory", bytes >> 20));
        return Err(Error::NeedsTranscoder { format: Format::Webp, why });
    }
    Ok((header, Arc::new(Webp { plain })))
}

impl Decoder for Webp {
    fn decode(&self, header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
        let file = read(input)?;
        let container = Container::read(&file).ok_or_else(|| refused(&file))?;
        if container.size() != header.size {
            return Err(damaged("it changed while it was read"));
        }
        drop(container);
        let pixels = if self.plain {
            libwebp::decode(&file, header.size, header.channels)
        } else {
            let mut frames = Frames::of(&file, header.size);
            frames.as_mut().and_then(|frames| Some(frames.next()?.0.to_vec()))
        };
        Ok(header.reduced(goal, pixels.ok_or_else(|| damaged("its pixels"))?))
    }
}

/// Gives all frames as they are seen, with the time that each stays, until `each` wants no more.
pub(super) fn frames(input: &mut dyn Input, each: Each<'_>) -> Result<(), Error> {
    let file = read(input)?;
    let container = Container::read(&file).ok_or_else(|| refused(&file))?;
    let (size, mut shown) = (container.size(), 0);
    let mut frames = Frames::of(&file, size).ok_or_else(|| damaged("its frames"))?;
    while frames.has_more() {
        let (pixels, end) = frames.next().ok_or_else(|| damaged("a frame"))?;
        if !each(size, pixels, Duration::from_millis(end.saturating_sub(shown))) {
            break;
        }
        shown = end;
    }
    Ok(())
}

/// The whole file: libwebp decodes no other.
fn read(input: &mut dyn Input) -> Result<Vec<u8>, Error> {
    look();
    let mut file = Vec::new();
    input.rewind().map_err(Error::Read)?;
    Read::take(input, MEMORY_MAX + 1).read_to_end(&mut file).map_err(Error::Read)?;
    if file.len() as u64 > MEMORY_MAX {
        let why = Some(format!("it has more than {} MiB", MEMORY_MAX >> 20));
        return Err(Error::NeedsTranscoder { format: Format::Webp, why });
    }
    Ok(file)
}

/// Why libwebp refuses a container.
fn refused(file: &[u8]) -> Error {
    let length = file.get(4..8).and_then(<[u8]>::first_chunk).copied().map(u32::from_le_bytes);
    match length {
        Some(length) if u64::from(length) + 8 <= file.len() as u64 => damaged("its chunks"),
        _ => Error::Truncated(Format::Webp),
    }
}

fn damaged(what: &'static str) -> Error {
    Error::damaged(Format::Webp, what)
}

/// libwebp looks at the first picture of each kind for what the processor can do, and takes no lock
/// for it.
static LOOKED: Once = Once::new();

fn look() {
    LOOKED.call_once(|| {
        // Other threads wait at the lock. A failure is reported by the next call, which fails as well.
        for encoder in [Encoder::from_rgb(&[0; 3], 1, 1), Encoder::from_rgba(&[0, 0, 0, 128], 1, 1)]
        {
            lossy(encoder).ok().and_then(|file| libwebp::decode(&file, (1, 1), 4));
        }
    });
}

/// A thumbnail's bytes.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, Error> {
    look();
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
