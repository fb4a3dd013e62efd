//! Decodes WebP images and animations, and encodes thumbnails, with libwebp. Wraps the decoders in
//! a safe interface; a file is read into memory as a whole.

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

/// libwebp's quality, from 0 to 100.
const QUALITY: f32 = 80.0;
/// libwebp's effort, from 0 to 6: 2 takes a third of the default's time, for 5% more bytes.
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
    // Memory for lossless pixels, or for planes of lossy ones and of alpha; for animations also the
    // canvases.
    check_memory(
        Format::Webp,
        file.len() as u64 + pixels * if plain { 9 } else { 17 },
    )?;
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
        let mut frames = Frames::new(&file, header.size);
        frames
            .as_mut()
            .and_then(|frames| Some(frames.next()?.0.to_vec()))
    };
    Ok(header.reduced(
        goal,
        pixels.ok_or_else(|| damaged("its pixels cannot be decoded"))?,
    ))
}

/// Number of decoded channels: composited frames have alpha.
fn channels(plain: bool, alpha: bool) -> usize {
    if plain && !alpha { 3 } else { 4 }
}

/// Passes all frames with their delays until `each` returns `false`.
pub(super) fn frames(input: &mut dyn Input, each: Each<'_>) -> Result<(), Error> {
    let file = read(input)?;
    let container = Container::read(&file)?;
    let size = container.size();
    let mut shown = 0;
    let mut frames =
        Frames::new(&file, size).ok_or_else(|| damaged("its frames cannot be decoded"))?;
    while frames.has_more() {
        let (pixels, end) = frames
            .next()
            .ok_or_else(|| damaged("a frame cannot be decoded"))?;
        if !each(
            size,
            pixels,
            Duration::from_millis(end.saturating_sub(shown)),
        ) {
            break;
        }
        shown = end;
    }
    Ok(())
}

/// Reads the whole file, as libwebp requires.
fn read(input: &mut dyn Input) -> Result<Vec<u8>, Error> {
    look();
    whole(input)
}

/// The error for a container that libwebp refuses.
fn refused(file: &[u8]) -> Error {
    let length = file
        .get(4..8)
        .and_then(<[u8]>::first_chunk)
        .copied()
        .map(u32::from_le_bytes);
    match length {
        Some(length) if u64::from(length) + 8 <= file.len() as u64 => {
            damaged("its chunks are invalid")
        }
        _ => Error::Truncated(Format::Webp),
    }
}

fn damaged(what: &'static str) -> Error {
    Error::damaged(Format::Webp, what)
}

/// libwebp detects processor features at the first image of each kind, without a lock.
static LOOKED: Once = Once::new();

fn look() {
    LOOKED.call_once(|| {
        // Other threads wait here. Failures are ignored, as the next call fails as well and reports
        // them.
        for encoder in [
            Encoder::from_rgb(&[0; 3], 1, 1),
            Encoder::from_rgba(&[0, 0, 0, 128], 1, 1),
        ] {
            lossy(encoder)
                .ok()
                .and_then(|file| pixels(&file, (1, 1), 4));
        }
    });
}

/// Encodes a thumbnail.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, Error> {
    look();
    let (pixels, width, height) = (picture.pixels(), picture.width(), picture.height());
    lossy(if picture.has_alpha() {
        Encoder::from_rgba(pixels, width, height)
    } else {
        Encoder::from_rgb(pixels, width, height)
    })
}

fn lossy(encoder: Encoder<'_>) -> Result<Vec<u8>, Error> {
    let mut config =
        WebPConfig::new().map_err(|()| Error::Encode("incompatible libwebp".into()))?;
    config.quality = QUALITY;
    config.method = METHOD;
    let encoded = encoder
        .encode_advanced(&config)
        .map_err(|error| Error::Encode(format!("libwebp: {error:?}").into()))?;
    Ok(encoded.to_vec())
}

/// The container of a file.
struct Container<'a> {
    demuxer: NonNull<WebPDemuxer>,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Container<'a> {
    fn read(file: &'a [u8]) -> Result<Self, Error> {
        let data = WebPData {
            bytes: file.as_ptr(),
            size: file.len(),
        };
        // SAFETY: the file outlives the demuxer, which keeps only the pointer to its bytes.
        let demuxer =
            unsafe { WebPDemuxInternal(&data, 0, ptr::null_mut(), WebPGetDemuxABIVersion()) };
        let demuxer = NonNull::new(demuxer).ok_or_else(|| refused(file))?;
        Ok(Self {
            demuxer,
            data: PhantomData,
        })
    }

    fn number(&self, feature: WebPFormatFeature) -> u32 {
        // SAFETY: the demuxer exists as long as `self`.
        unsafe { WebPDemuxGetI(self.demuxer.as_ptr(), feature) }
    }

    fn size(&self) -> (u32, u32) {
        let width = self.number(WebPFormatFeature::WEBP_FF_CANVAS_WIDTH);
        (width, self.number(WebPFormatFeature::WEBP_FF_CANVAS_HEIGHT))
    }

    fn frames(&self) -> u32 {
        self.number(WebPFormatFeature::WEBP_FF_FRAME_COUNT)
    }

    /// Returns whether the first frame is the whole image, and whether it has alpha.
    fn first(&self) -> Result<(bool, bool), Error> {
        // SAFETY: all zeros is a valid iterator, which the next call fills.
        let mut frame: WebPIterator = unsafe { std::mem::zeroed() };
        // SAFETY: the demuxer exists; libwebp counts frames from 1.
        let found = unsafe { WebPDemuxGetFrame(self.demuxer.as_ptr(), 1, &mut frame) } != 0;
        // SAFETY: the iterator is filled or zero; both may be released.
        unsafe { WebPDemuxReleaseIterator(&mut frame) };
        let size = (frame.width as u32, frame.height as u32);
        let facts = (
            self.frames() == 1 && size == self.size(),
            frame.has_alpha != 0,
        );
        if found {
            Ok(facts)
        } else {
            Err(damaged("it contains no picture"))
        }
    }

    /// Returns the content of the first chunk with this name, if it has at most `most` bytes.
    fn chunk(&self, name: &[u8; 4], most: usize) -> Option<Vec<u8>> {
        // SAFETY: all zeros is a valid iterator, which the next call fills.
        let mut chunk: WebPChunkIterator = unsafe { std::mem::zeroed() };
        let name = name.as_ptr().cast();
        // SAFETY: the demuxer exists and reads four bytes of the name.
        let found = unsafe { WebPDemuxGetChunk(self.demuxer.as_ptr(), name, 1, &mut chunk) } != 0;
        let WebPData { bytes, size } = chunk.chunk;
        let content = (found && size <= most && !bytes.is_null()).then(|| {
            // SAFETY: the chunk is a part of the file, which outlives the demuxer.
            unsafe { slice::from_raw_parts(bytes, size) }.to_vec()
        });
        // SAFETY: the iterator is filled or zero; both may be released.
        unsafe { WebPDemuxReleaseChunkIterator(&mut chunk) };
        content
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        // SAFETY: created by libwebp, and deleted once.
        unsafe { WebPDemuxDelete(self.demuxer.as_ptr()) };
    }
}

/// Decodes a file with a single image to RGB or RGBA. Returns `None` if it is damaged.
fn pixels(file: &[u8], (width, height): (u32, u32), channels: usize) -> Option<Vec<u8>> {
    let stride = width as usize * channels;
    let mut pixels = vec![0; stride * height as usize];
    let decode = if channels == 4 {
        WebPDecodeRGBAInto
    } else {
        WebPDecodeRGBInto
    };
    let (to, size) = (pixels.as_mut_ptr(), pixels.len());
    // SAFETY: libwebp writes at most the given size, and fails if it is too small.
    let done = unsafe { decode(file.as_ptr(), file.len(), to, size, stride as c_int) };
    (!done.is_null()).then_some(pixels)
}

/// Iterates over the frames of a file, each as it is to be shown.
struct Frames<'a> {
    decoder: NonNull<WebPAnimDecoder>,
    bytes: usize,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Frames<'a> {
    fn new(file: &'a [u8], (width, height): (u32, u32)) -> Option<Self> {
        let version = WebPGetDemuxABIVersion();
        // SAFETY: the struct has only numbers, for which zeros are valid; the next call fills them.
        let mut options: WebPAnimDecoderOptions = unsafe { std::mem::zeroed() };
        // SAFETY: only writes to the options.
        if unsafe { WebPAnimDecoderOptionsInitInternal(&mut options, version) } == 0 {
            return None;
        }
        options.color_mode = WEBP_CSP_MODE::MODE_RGBA;
        let data = WebPData {
            bytes: file.as_ptr(),
            size: file.len(),
        };
        // SAFETY: the file outlives the decoder, which keeps only the pointer to its bytes.
        let decoder = unsafe { WebPAnimDecoderNewInternal(&data, &options, version) };
        let bytes = 4 * width as usize * height as usize;
        Some(Self {
            decoder: NonNull::new(decoder)?,
            bytes,
            data: PhantomData,
        })
    }

    fn has_more(&self) -> bool {
        // SAFETY: the decoder exists as long as `self`.
        unsafe { WebPAnimDecoderHasMoreFrames(self.decoder.as_ptr()) != 0 }
    }

    /// Decodes the next frame; returns its RGBA pixels and its end time in milliseconds. `None` if
    /// it is damaged.
    fn next(&mut self) -> Option<(&[u8], u64)> {
        let mut pixels = ptr::null_mut();
        let mut end = 0;
        // SAFETY: the decoder exists; it writes the address of its canvas, and a number.
        let done = unsafe { WebPAnimDecoderGetNext(self.decoder.as_ptr(), &mut pixels, &mut end) };
        if done == 0 || pixels.is_null() {
            return None;
        }
        // SAFETY: the canvas has four bytes per pixel of the container's size, and does not change
        // before the next call, which needs `&mut self`.
        let pixels = unsafe { slice::from_raw_parts(pixels, self.bytes) };
        Some((pixels, u64::try_from(end).unwrap_or(0)))
    }
}

impl Drop for Frames<'_> {
    fn drop(&mut self) {
        // SAFETY: created by libwebp, and deleted once.
        unsafe { WebPAnimDecoderDelete(self.decoder.as_ptr()) };
    }
}
