//! WebP by libwebp: pictures and animations from a file that is held in memory, and thumbnails. Its
//! decoders are called behind an interface without `unsafe`.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Once;
use std::time::Duration;

use libwebp_sys::{
    WEBP_CSP_MODE, WebPAnimDecoder, WebPAnimDecoderDelete, WebPAnimDecoderGetNext,
    WebPAnimDecoderHasMoreFrames, WebPAnimDecoderNewInternal, WebPAnimDecoderOptions,
    WebPAnimDecoderOptionsInitInternal, WebPChunkIterator, WebPData, WebPDecodeRGBAInto,
    WebPDecodeRGBInto, WebPDemuxDelete, WebPDemuxGetChunk, WebPDemuxGetFrame, WebPDemuxGetI,
    WebPDemuxInternal, WebPDemuxReleaseChunkIterator, WebPDemuxReleaseIterator, WebPDemuxer,
    WebPFormatFeature, WebPGetDemuxABIVersion, WebPIterator,
};
use webp::{Encoder, WebPConfig};

use super::decoder::{Each, Goal, Header, Input, check_bounds, check_memory, whole};
use super::error::Error;
use super::exif;
use super::icc::{PROFILE_MAX, Profile, Samples};
use super::picture::Picture;
use crate::wire::Format;

/// libwebp's scale, 0 to 100.
const QUALITY: f32 = 80.0;
/// Effort, 0 to 6: 2 is a third of the default's time for 5% more bytes.
const METHOD: i32 = 2;

pub(super) fn open(input: &mut dyn Input) -> Result<Header, Error> {
    let file = read(input)?;
    let container = Container::read(&file)?;
    let size = container.size();
    check_bounds(size, 3)?;
    let (plain, alpha) = container.first()?;
    let mut header = Header::plain(size, channels(plain, alpha));
    header.animated = container.frames() > 1;
    let profile = container.chunk(b"ICCP", PROFILE_MAX).unwrap_or_default();
    header.profile = Profile::read(&profile, Samples::Rgb);
    let exif = container.chunk(b"EXIF", PROFILE_MAX).unwrap_or_default();
    header.orientation = exif::orientation(&exif);
    let pixels = u64::from(size.0) * u64::from(size.1);
    // Colours without loss, or planes of others, and of alpha; of an animation also its canvases.
    check_memory(Format::Webp, file.len() as u64 + pixels * if plain { 9 } else { 17 })?;
    Ok(header)
}

pub(super) fn decode(header: &Header, input: &mut dyn Input, goal: Goal) -> Result<Picture, Error> {
    let file = read(input)?;
    let container = Container::read(&file)?;
    let (plain, alpha) = container.first()?;
    header.check(Format::Webp, container.size(), channels(plain, alpha))?;
    drop(container);
    let pixels = if plain {
        pixels(&file, header.size, header.channels)
    } else {
        let mut frames = Frames::of(&file, header.size);
        frames.as_mut().and_then(|frames| Some(frames.next()?.0.to_vec()))
    };
    Ok(header.reduced(goal, pixels.ok_or_else(|| damaged("its pixels"))?))
}

/// How many are decoded: frames that are laid one over another have alpha.
fn channels(plain: bool, alpha: bool) -> usize {
    if plain && !alpha { 3 } else { 4 }
}

/// Gives all frames as they are seen, with the time that each stays, until `each` wants no more.
pub(super) fn frames(input: &mut dyn Input, each: Each<'_>) -> Result<(), Error> {
    let file = read(input)?;
    let container = Container::read(&file)?;
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
    whole(input)
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
            lossy(encoder).ok().and_then(|file| pixels(&file, (1, 1), 4));
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

/// The container of a whole file.
struct Container<'a> {
    demuxer: NonNull<WebPDemuxer>,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Container<'a> {
    fn read(file: &'a [u8]) -> Result<Self, Error> {
        let data = WebPData { bytes: file.as_ptr(), size: file.len() };
        // SAFETY: the data outlive the demuxer, which keeps the pointer to their bytes alone.
        let demuxer =
            unsafe { WebPDemuxInternal(&data, 0, ptr::null_mut(), WebPGetDemuxABIVersion()) };
        let demuxer = NonNull::new(demuxer).ok_or_else(|| refused(file))?;
        Ok(Self { demuxer, data: PhantomData })
    }

    fn number(&self, feature: WebPFormatFeature) -> u32 {
        // SAFETY: the demuxer lives as long as this.
        unsafe { WebPDemuxGetI(self.demuxer.as_ptr(), feature) }
    }

    fn size(&self) -> (u32, u32) {
        let width = self.number(WebPFormatFeature::WEBP_FF_CANVAS_WIDTH);
        (width, self.number(WebPFormatFeature::WEBP_FF_CANVAS_HEIGHT))
    }

    fn frames(&self) -> u32 {
        self.number(WebPFormatFeature::WEBP_FF_FRAME_COUNT)
    }

    /// Whether the first frame is all of the picture, and has alpha.
    fn first(&self) -> Result<(bool, bool), Error> {
        // SAFETY: zeros are a valid iterator, which the next call fills.
        let mut frame: WebPIterator = unsafe { std::mem::zeroed() };
        // SAFETY: the demuxer lives; libwebp counts frames from 1.
        let found = unsafe { WebPDemuxGetFrame(self.demuxer.as_ptr(), 1, &mut frame) } != 0;
        // SAFETY: filled or zeros, either may be released.
        unsafe { WebPDemuxReleaseIterator(&mut frame) };
        let size = (frame.width as u32, frame.height as u32);
        let facts = (self.frames() == 1 && size == self.size(), frame.has_alpha != 0);
        if found { Ok(facts) } else { Err(damaged("it contains no picture")) }
    }

    /// The content of the first chunk of this name, up to `most` bytes.
    fn chunk(&self, name: &[u8; 4], most: usize) -> Option<Vec<u8>> {
        // SAFETY: zeros are a valid iterator, which the next call fills.
        let mut chunk: WebPChunkIterator = unsafe { std::mem::zeroed() };
        let name = name.as_ptr().cast();
        // SAFETY: the demuxer lives, and reads four bytes of the name.
        let found = unsafe { WebPDemuxGetChunk(self.demuxer.as_ptr(), name, 1, &mut chunk) } != 0;
        let WebPData { bytes, size } = chunk.chunk;
        let content = (found && size <= most && !bytes.is_null()).then(|| {
            // SAFETY: a part of the data that the demuxer was given, which outlive it.
            unsafe { slice::from_raw_parts(bytes, size) }.to_vec()
        });
        // SAFETY: filled or zeros, either may be released.
        unsafe { WebPDemuxReleaseChunkIterator(&mut chunk) };
        content
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        // SAFETY: made by libwebp, and deleted once.
        unsafe { WebPDemuxDelete(self.demuxer.as_ptr()) };
    }
}

/// The pixels of a file that is one picture, RGB or RGBA. None if they are damaged.
fn pixels(file: &[u8], (width, height): (u32, u32), channels: usize) -> Option<Vec<u8>> {
    let stride = width as usize * channels;
    let mut pixels = vec![0; stride * height as usize];
    let decode = if channels == 4 { WebPDecodeRGBAInto } else { WebPDecodeRGBInto };
    let (to, size) = (pixels.as_mut_ptr(), pixels.len());
    // SAFETY: libwebp writes no more than the size that it is told, and fails if that is too little.
    let done = unsafe { decode(file.as_ptr(), file.len(), to, size, stride as c_int) };
    (!done.is_null()).then_some(pixels)
}

/// The frames of a file, one after another, each with all that is seen.
struct Frames<'a> {
    decoder: NonNull<WebPAnimDecoder>,
    bytes: usize,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Frames<'a> {
    fn of(file: &'a [u8], (width, height): (u32, u32)) -> Option<Self> {
        let version = WebPGetDemuxABIVersion();
        // SAFETY: numbers alone, for which zeros are valid; the next call fills them.
        let mut options: WebPAnimDecoderOptions = unsafe { std::mem::zeroed() };
        // SAFETY: writes to the options.
        if unsafe { WebPAnimDecoderOptionsInitInternal(&mut options, version) } == 0 {
            return None;
        }
        options.color_mode = WEBP_CSP_MODE::MODE_RGBA;
        let data = WebPData { bytes: file.as_ptr(), size: file.len() };
        // SAFETY: the data outlive the decoder, which keeps the pointer to their bytes alone.
        let decoder = unsafe { WebPAnimDecoderNewInternal(&data, &options, version) };
        let bytes = 4 * width as usize * height as usize;
        Some(Self { decoder: NonNull::new(decoder)?, bytes, data: PhantomData })
    }

    fn has_more(&self) -> bool {
        // SAFETY: the decoder lives as long as this.
        unsafe { WebPAnimDecoderHasMoreFrames(self.decoder.as_ptr()) != 0 }
    }

    /// The next frame's pixels, RGBA, and the millisecond at which it ends. None if it is damaged.
    fn next(&mut self) -> Option<(&[u8], u64)> {
        let (mut pixels, mut end) = (ptr::null_mut(), 0);
        // SAFETY: the decoder lives; it writes the address of its canvas, and a number.
        let done = unsafe { WebPAnimDecoderGetNext(self.decoder.as_ptr(), &mut pixels, &mut end) };
        if done == 0 || pixels.is_null() {
            return None;
        }
        // SAFETY: the canvas has four bytes for each pixel of the size that the container says, and
        // stays as it is until the next call, for which this must be borrowed again.
        let pixels = unsafe { slice::from_raw_parts(pixels, self.bytes) };
        Some((pixels, u64::try_from(end).unwrap_or(0)))
    }
}

impl Drop for Frames<'_> {
    fn drop(&mut self) {
        // SAFETY: made by libwebp, and deleted once.
        unsafe { WebPAnimDecoderDelete(self.decoder.as_ptr()) };
    }
}
