//! Decodes the frames of an animated image on demand, each as it is to be shown.

use std::time::Duration;

use super::decoder::Input;
use super::error::Error;
use super::picture::Picture;
use super::probe::Probe;
use super::{gif, png, webp};
use crate::wire::Format;

/// Delays up to this become [`USUAL`], as in browsers.
const TOO_SHORT: Duration = Duration::from_millis(10);
const USUAL: Duration = Duration::from_millis(100);

impl Probe {
    /// Passes all frames in order, upright, with their delays, until `each` returns `false`.
    /// Ignores the number of repetitions in the file: wallpapers are animated for as long as they
    /// are shown.
    pub fn frames(
        &self,
        input: &mut dyn Input,
        each: &mut dyn FnMut(Picture, Duration) -> bool,
    ) -> Result<(), Error> {
        let mut each = |size: (u32, u32), pixels: &[u8], said: Duration| {
            let stays = if said > TOO_SHORT { said } else { USUAL };
            let mut picture = Picture::new(size, 4, pixels.to_vec(), self.orientation());
            if let Some(profile) = self.profile() {
                picture.convert(profile);
            }
            each(picture.upright(), stays)
        };
        match self.format {
            Format::Gif => gif::frames(input, &mut each),
            Format::Png => png::frames(input, &mut each),
            Format::Webp => webp::frames(input, &mut each),
            // No other format is decoded frame by frame.
            Format::Jpg
            | Format::Bmp
            | Format::Tiff
            | Format::Avif
            | Format::Jxl
            | Format::Heic
            | Format::Svg
            | Format::Mp4
            | Format::Webm
            | Format::Mkv
            | Format::Mov
            | Format::Avi
            | Format::Html => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::gif::{DisposalMethod, Frame};
    use std::borrow::Cow;
    use std::io::Cursor;

    const RED: [u8; 4] = [255, 0, 0, 255];
    const BLUE: [u8; 4] = [0, 0, 255, 255];
    const NONE: [u8; 4] = [0; 4];

    /// Encodes an animation of 4 x 3 pixels with a palette of red, blue and transparent.
    fn animation(frames: &[Frame<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let colors = [255, 0, 0, 0, 0, 255, 0, 0, 0];
        let mut encoder = ::gif::Encoder::new(&mut bytes, 4, 3, &colors).unwrap();
        frames
            .iter()
            .for_each(|frame| encoder.write_frame(frame).unwrap());
        drop(encoder);
        bytes
    }

    fn frame(height: u16, index: u8, delay: u16) -> Frame<'static> {
        let buffer = Cow::Owned(vec![index; 4 * usize::from(height)]);
        Frame {
            delay,
            width: 4,
            height,
            buffer,
            transparent: Some(2),
            ..Frame::default()
        }
    }

    /// The colours of a frame's rows, and its delay in milliseconds.
    type Seen = ([[u8; 4]; 3], u128);

    /// Decodes all frames; returns them with the final result.
    fn seen(bytes: Vec<u8>) -> (Vec<Seen>, Result<(), Error>) {
        let mut seen = Vec::new();
        let mut input = Cursor::new(bytes);
        let outcome = gif::frames(&mut input, &mut |_, pixels, stays| {
            let row = |y: usize| *pixels[y * 16..].first_chunk().unwrap();
            seen.push(([row(0), row(1), row(2)], stays.as_millis()));
            true
        });
        (seen, outcome)
    }

    #[test]
    fn frames_are_complete_and_have_their_delays() {
        let mut input = Cursor::new(animation(&[frame(3, 0, 5), frame(3, 1, 0), frame(3, 1, 1)]));
        let probe = super::super::probe(&mut input).unwrap();
        let mut seen = Vec::new();
        let mut note = |picture: Picture, stays: Duration| {
            seen.push((
                picture.pixels()[..4].to_vec(),
                picture.pixels().len(),
                stays.as_millis(),
            ));
            true
        };
        probe.frames(&mut input, &mut note).unwrap();
        let expected = [(RED, 50), (BLUE, 100), (BLUE, 100)];
        assert_eq!(
            seen,
            expected.map(|(color, stays)| (color.to_vec(), 48, stays))
        );
        let mut count = 0;
        let mut first = |_: Picture, _: Duration| {
            count += 1;
            false
        };
        probe.frames(&mut input, &mut first).unwrap();
        assert_eq!(count, 1);
    }

    #[test]
    fn gif_frame_without_all_pixels_shows_those_it_has() {
        // The second frame has the data of a frame with one row, but claims three.
        let mut bytes = animation(&[frame(3, 0, 5), frame(1, 1, 6), frame(3, 1, 7)]);
        let place = [0x2c, 0, 0, 0, 0, 4, 0, 1, 0];
        let second = bytes.windows(9).position(|window| window == place).unwrap();
        bytes[second + 7] = 3;
        let (frames, outcome) = seen(bytes.clone());
        outcome.unwrap();
        assert_eq!(
            frames,
            [([RED; 3], 50), ([BLUE, RED, RED], 60), ([BLUE; 3], 70)]
        );
        // Truncate the file within the third frame: the frames before it are still shown.
        bytes.truncate(second + 9 + 3);
        let (frames, outcome) = seen(bytes);
        assert!(
            matches!(outcome, Err(Error::Truncated(Format::Gif))),
            "{outcome:?}"
        );
        assert_eq!(frames.len(), 2);
        assert_eq!(frames[1].0[2], RED);
    }

    #[test]
    fn gif_first_frame_is_disposed_like_any_other() {
        let first = |dispose| Frame {
            dispose,
            ..frame(3, 0, 5)
        };
        for (dispose, below) in [
            (DisposalMethod::Keep, RED),
            (DisposalMethod::Background, NONE),
            (DisposalMethod::Previous, NONE),
        ] {
            let (frames, outcome) = seen(animation(&[first(dispose), frame(1, 1, 5)]));
            outcome.unwrap();
            assert_eq!(frames[1].0, [BLUE, below, below], "{dispose:?}");
        }
    }

    #[test]
    fn interlaced_gif_is_decoded() {
        // Rows are stored in the order 0, 2, 1. The crate's own row reader fails if the bottom rows
        // are uniform.
        let rows = [[0; 4], [1; 4], [2; 4]].as_flattened().to_vec();
        let interlaced = || Frame {
            interlaced: true,
            buffer: rows.clone().into(),
            ..frame(3, 0, 5)
        };
        let (frames, outcome) = seen(animation(&[interlaced(), interlaced()]));
        outcome.unwrap();
        assert_eq!(frames, [([RED, NONE, BLUE], 50), ([RED, NONE, BLUE], 50)]);
    }

    #[test]
    fn oversized_gif_frame_is_refused() {
        let mut bytes = animation(&[frame(3, 0, 5), frame(3, 1, 5)]);
        // Width and height of the second frame.
        let place = [0x2c, 0, 0, 0, 0, 4, 0, 3, 0];
        let second = bytes
            .windows(9)
            .rposition(|window| window == place)
            .unwrap();
        bytes[second + 5..second + 9].fill(0xff);
        let (frames, outcome) = seen(bytes);
        assert!(matches!(outcome, Err(Error::Damaged { .. })), "{outcome:?}");
        assert_eq!(frames.len(), 1);
    }
}
