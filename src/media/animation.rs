//! The frames of a picture that moves, each as it is seen, decoded when it is asked for.

use std::io::BufReader;
use std::time::Duration;

use image::codecs::gif::GifDecoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder, Frames, ImageDecoder, ImageResult};

use super::decoder::Input;
use super::error::Error;
use super::exif::Orientation;
use super::picture::Picture;
use super::probe::Probe;
use super::whole::{from_crate, limits};
use crate::wire::Format;

/// Read at once: the crate asks for a few bytes at a time.
const BUFFER: usize = 64 << 10;
/// What is said to stay no longer than this stays for [`USUAL`], as browsers have it.
const TOO_SHORT: Duration = Duration::from_millis(10);
const USUAL: Duration = Duration::from_millis(100);

impl Probe {
    /// Gives all frames in their order, with the time that each stays, until `each` wants no more.
    pub fn frames(
        &self,
        input: &mut dyn Input,
        each: &mut dyn FnMut(Picture, Duration) -> bool,
    ) -> Result<(), Error> {
        input.rewind().map_err(Error::Read)?;
        let failed = |error| from_crate(self.format, error);
        for frame in frames(self.format, input).map_err(failed)? {
            let frame = frame.map_err(failed)?;
            let said = Duration::from(frame.delay());
            let stays = if said > TOO_SHORT { said } else { USUAL };
            let buffer = frame.into_buffer();
            let (width, height) = buffer.dimensions();
            let extent = (f64::from(width), f64::from(height));
            let (pixels, upright) = (buffer.into_raw(), Orientation::NoTransforms);
            let mut picture = Picture::new(width, height, extent, 4, pixels, upright);
            if let Some(profile) = self.profile() {
                picture.convert(profile);
            }
            if !each(picture, stays) {
                break;
            }
        }
        Ok(())
    }
}

fn frames(format: Format, input: &mut dyn Input) -> ImageResult<Frames<'_>> {
    let source = BufReader::with_capacity(BUFFER, input);
    // Any frame but the first may be of another size than what was probed.
    Ok(match format {
        Format::Gif => {
            let mut decoder = GifDecoder::new(source)?;
            decoder.set_limits(limits())?;
            decoder.into_frames()
        }
        Format::Webp => {
            let mut decoder = WebPDecoder::new(source)?;
            decoder.set_limits(limits())?;
            decoder.into_frames()
        }
        Format::Png => PngDecoder::with_limits(source, limits())?.apng()?.into_frames(),
        // Nothing else moves.
        _ => Frames::new(Box::new(std::iter::empty())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::codecs::gif::GifEncoder;
    use image::{Delay, Frame, Rgba, RgbaImage};
    use std::io::Cursor;

    #[test]
    fn frames_come_whole_with_their_times() {
        let mut bytes = Vec::new();
        let frame = |color: [u8; 4], milliseconds| {
            let delay = Delay::from_numer_denom_ms(milliseconds, 1);
            Frame::from_parts(RgbaImage::from_pixel(4, 3, Rgba(color)), 0, 0, delay)
        };
        let (red, blue) = ([255, 0, 0, 255], [0, 0, 255, 255]);
        let mut encoder = GifEncoder::new(&mut bytes);
        encoder.encode_frames([frame(red, 50), frame(blue, 0)]).unwrap();
        drop(encoder);
        let mut input = Cursor::new(bytes);
        let probe = super::super::probe(&mut input).unwrap();
        let mut seen = Vec::new();
        let mut note = |picture: Picture, stays: Duration| {
            seen.push((picture.pixels()[..4].to_vec(), picture.pixels().len(), stays.as_millis()));
            true
        };
        probe.frames(&mut input, &mut note).unwrap();
        assert_eq!(seen, [(red.to_vec(), 48, 50), (blue.to_vec(), 48, 100)]);
        let mut count = 0;
        let mut first = |_: Picture, _: Duration| {
            count += 1;
            false
        };
        probe.frames(&mut input, &mut first).unwrap();
        assert_eq!(count, 1);
    }

    #[test]
    fn frame_that_is_larger_than_its_picture_is_bounded() {
        let mut bytes = Vec::new();
        let mut encoder = GifEncoder::new(&mut bytes);
        let pixels = |color| Frame::new(RgbaImage::from_pixel(4, 3, Rgba(color)));
        encoder.encode_frames([pixels([255, 0, 0, 255]), pixels([0, 0, 255, 255])]).unwrap();
        drop(encoder);
        // The second one's width and height.
        let place = [0x2c, 0, 0, 0, 0, 4, 0, 3, 0];
        let second = bytes.windows(9).rposition(|window| window == place).unwrap();
        bytes[second + 5..second + 9].fill(0xff);
        let mut input = Cursor::new(bytes);
        let probe = super::super::probe(&mut input).unwrap();
        let mut count = 0;
        let mut each = |_: Picture, _: Duration| {
            count += 1;
            true
        };
        let error = probe.frames(&mut input, &mut each).unwrap_err();
        assert!(matches!(error, Error::NeedsTranscoder { .. }), "{error}");
        assert_eq!(count, 1);
    }
}
