//! libwebp's decoders, behind an interface without `unsafe`: the properties of a file in memory, its
//! pixels, and its frames, which libwebp lays over each other.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use libwebp_sys::{
    WEBP_CSP_MODE, WebPAnimDecoder, WebPAnimDecoderDelete, WebPAnimDecoderGetNext,
    WebPAnimDecoderHasMoreFrames, WebPAnimDecoderNewInternal, WebPAnimDecoderOptions,
    WebPAnimDecoderOptionsInitInternal, WebPChunkIterator, WebPData, WebPDecodeRGBAInto,
    WebPDecodeRGBInto, WebPDemuxDelete, WebPDemuxGetChunk, WebPDemuxGetFrame, WebPDemuxGetI,
    WebPDemuxInternal, WebPDemuxReleaseChunkIterator, WebPDemuxReleaseIterator, WebPDemuxer,
    WebPFormatFeature, WebPGetDemuxABIVersion, WebPIterator,
};

/// The container of a whole file.
pub(super) struct Container<'a> {
    demuxer: NonNull<WebPDemuxer>,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Container<'a> {
    /// None of a file that is damaged or truncated.
    pub(super) fn read(file: &'a [u8]) -> Option<Self> {
        let data = WebPData { bytes: file.as_ptr(), size: file.len() };
        // SAFETY: the data outlive the demuxer, which keeps the pointer to their bytes alone.
        let demuxer =
            unsafe { WebPDemuxInternal(&data, 0, ptr::null_mut(), WebPGetDemuxABIVersion()) };
        Some(Self { demuxer: NonNull::new(demuxer)?, data: PhantomData })
    }

    fn number(&self, feature: WebPFormatFeature) -> u32 {
        // SAFETY: the demuxer lives as long as this.
        unsafe { WebPDemuxGetI(self.demuxer.as_ptr(), feature) }
    }

    pub(super) fn size(&self) -> (u32, u32) {
        let width = self.number(WebPFormatFeature::WEBP_FF_CANVAS_WIDTH);
        (width, self.number(WebPFormatFeature::WEBP_FF_CANVAS_HEIGHT))
    }

    pub(super) fn frames(&self) -> u32 {
        self.number(WebPFormatFeature::WEBP_FF_FRAME_COUNT)
    }

    /// Whether the first frame is all of the picture, and has alpha.
    pub(super) fn first(&self) -> Option<(bool, bool)> {
        // SAFETY: zeros are a valid iterator, which the next call fills.
        let mut frame: WebPIterator = unsafe { std::mem::zeroed() };
        // SAFETY: the demuxer lives; libwebp counts frames from 1.
        let found = unsafe { WebPDemuxGetFrame(self.demuxer.as_ptr(), 1, &mut frame) } != 0;
        // SAFETY: filled or zeros, either may be released.
        unsafe { WebPDemuxReleaseIterator(&mut frame) };
        let size = (frame.width as u32, frame.height as u32);
        found.then(|| (self.frames() == 1 && size == self.size(), frame.has_alpha != 0))
    }

    /// The content of the first chunk of this name, up to `most` bytes.
    pub(super) fn chunk(&self, name: &[u8; 4], most: usize) -> Option<Vec<u8>> {
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
pub(super) fn decode(file: &[u8], (width, height): (u32, u32), channels: usize) -> Option<Vec<u8>> {
    let stride = width as usize * channels;
    let mut pixels = vec![0; stride * height as usize];
    let decode = if channels == 4 { WebPDecodeRGBAInto } else { WebPDecodeRGBInto };
    let (to, size) = (pixels.as_mut_ptr(), pixels.len());
    // SAFETY: libwebp writes no more than the size that it is told, and fails if that is too little.
    let done = unsafe { decode(file.as_ptr(), file.len(), to, size, stride as c_int) };
    (!done.is_null()).then_some(pixels)
}

/// The frames of a file, one after another, each with all that is seen.
pub(super) struct Frames<'a> {
    decoder: NonNull<WebPAnimDecoder>,
    bytes: usize,
    data: PhantomData<&'a [u8]>,
}

impl<'a> Frames<'a> {
    pub(super) fn of(file: &'a [u8], (width, height): (u32, u32)) -> Option<Self> {
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

    pub(super) fn has_more(&self) -> bool {
        // SAFETY: the decoder lives as long as this.
        unsafe { WebPAnimDecoderHasMoreFrames(self.decoder.as_ptr()) != 0 }
    }

    /// The next frame's pixels, RGBA, and the millisecond at which it ends. None if it is damaged.
    pub(super) fn next(&mut self) -> Option<(&[u8], u64)> {
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
