//! The canvas on which the frames of an animated GIF or PNG are drawn.
//!
//! Each frame covers a part of the canvas, and is disposed of in one of three ways before the next
//! frame.

use super::decoder::check_memory;
use super::error::Error;
use crate::wire::Format;

pub(super) struct Canvas {
    width: usize,
    height: usize,
    /// RGBA, not premultiplied.
    pixels: Vec<u8>,
    /// The rectangle of the last frame.
    place: FrameArea,
    disposal: Disposal,
    /// The pixels under the last frame, if they are to be restored.
    covered: Vec<u8>,
}

/// The area of a frame; may extend beyond the canvas.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameArea {
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// How the area of a frame is cleared before the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposal {
    Keep,
    /// The area becomes transparent, whatever the file's background colour, as in browsers.
    Clear,
    /// The area is restored to what it was before the frame.
    Restore,
}

/// How a frame's pixels are combined with the canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blend {
    Over,
    Replace,
}

impl Canvas {
    /// Creates a transparent canvas. `frame` is the memory in bytes that a frame needs while it is
    /// decoded, including a copy of the area that it covers.
    pub(super) fn new(format: Format, size: (u32, u32), frame: u64) -> Result<Self, Error> {
        let bytes = u64::from(size.0) * u64::from(size.1) * 4;
        // Memory for the canvas and for a copy of it.
        check_memory(format, 2 * bytes + frame)?;
        Ok(Self {
            width: size.0 as usize,
            height: size.1 as usize,
            pixels: vec![0; bytes as usize],
            place: FrameArea::default(),
            disposal: Disposal::Keep,
            covered: Vec::new(),
        })
    }

    /// Disposes of the last frame and prepares for the next.
    pub(super) fn begin(&mut self, place: FrameArea, disposal: Disposal) {
        let mut covered = std::mem::take(&mut self.covered);
        match self.disposal {
            Disposal::Keep => {}
            Disposal::Clear => self.rows(|row| row.fill(0)),
            Disposal::Restore => {
                let mut from = covered.as_slice();
                self.rows(|row| {
                    let (before, rest) = from.split_at(row.len());
                    row.copy_from_slice(before);
                    from = rest;
                });
            }
        }
        (self.place, self.disposal) = (place, disposal);
        covered.clear();
        if disposal == Disposal::Restore {
            self.rows(|row| covered.extend_from_slice(row));
        }
        self.covered = covered;
    }

    /// Draws a row of the frame, RGBA; pixels outside the canvas are ignored.
    pub(super) fn row(&mut self, y: u32, row: &[u8], blend: Blend) {
        if y >= self.place.height {
            return;
        }
        let at = FrameArea {
            top: self.place.top.saturating_add(y),
            height: 1,
            ..self.place
        };
        self.rows_of(at, |below| match blend {
            Blend::Replace => below.copy_from_slice(&row[..below.len()]),
            Blend::Over => {
                for (below, pixel) in below.as_chunks_mut().0.iter_mut().zip(row.as_chunks().0) {
                    *below = over(*pixel, *below);
                }
            }
        });
    }

    pub(super) fn size(&self) -> (u32, u32) {
        (self.width as u32, self.height as u32)
    }

    /// The visible pixels.
    pub(super) fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    pub(super) fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }

    fn rows(&mut self, each: impl FnMut(&mut [u8])) {
        self.rows_of(self.place, each);
    }

    /// Passes the rows of an area, clipped to the canvas.
    fn rows_of(&mut self, place: FrameArea, mut each: impl FnMut(&mut [u8])) {
        let end = |from: u32, length: u32, most: usize| {
            (from as usize).saturating_add(length as usize).min(most)
        };
        let (left, top) = (place.left as usize, place.top as usize);
        let right = end(place.left, place.width, self.width);
        let bottom = end(place.top, place.height, self.height);
        for y in top..bottom {
            if left < right {
                let line = y * self.width;
                each(&mut self.pixels[(line + left) * 4..(line + right) * 4]);
            }
        }
    }
}

/// Composites one pixel over another; neither is premultiplied.
pub(super) fn over(pixel: [u8; 4], below: [u8; 4]) -> [u8; 4] {
    let (alpha, left) = (u32::from(pixel[3]), u32::from(255 - pixel[3]));
    match alpha {
        255 => return pixel,
        0 => return below,
        _ => {}
    }
    // Scaled by 255 * 255.
    let behind = u32::from(below[3]) * left;
    let all = alpha * 255 + behind;
    let mix = |at: usize| {
        let sum = u32::from(pixel[at]) * alpha * 255 + u32::from(below[at]) * behind;
        ((sum + all / 2) / all) as u8
    };
    [mix(0), mix(1), mix(2), ((all + 127) / 255) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: [u8; 4] = [255, 0, 0, 255];
    const BLUE: [u8; 4] = [0, 0, 255, 255];
    const NONE: [u8; 4] = [0; 4];

    #[test]
    fn frames_are_disposed_as_requested() {
        let check = |disposal, expected: [[u8; 4]; 3]| {
            let mut canvas = Canvas::new(Format::Gif, (3, 1), 0).unwrap();
            let mut lay = |left, color: [u8; 4], disposal| {
                canvas.begin(
                    FrameArea {
                        left,
                        top: 0,
                        width: 1,
                        height: 1,
                    },
                    disposal,
                );
                canvas.row(0, &color, Blend::Over);
                canvas.pixels().to_vec()
            };
            lay(0, RED, Disposal::Keep);
            // A frame that covers the first and is then disposed of.
            assert_eq!(lay(0, BLUE, disposal), [BLUE, NONE, NONE].as_flattened());
            assert_eq!(
                lay(2, BLUE, Disposal::Keep),
                expected.as_flattened(),
                "{disposal:?}"
            );
        };
        check(Disposal::Keep, [BLUE, NONE, BLUE]);
        check(Disposal::Clear, [NONE, NONE, BLUE]);
        check(Disposal::Restore, [RED, NONE, BLUE]);
    }

    #[test]
    fn restored_area_stays_cleared() {
        let mut canvas = Canvas::new(Format::Png, (1, 1), 0).unwrap();
        let place = FrameArea {
            left: 0,
            top: 0,
            width: 1,
            height: 1,
        };
        for (color, disposal) in [(RED, Disposal::Clear), (BLUE, Disposal::Restore)] {
            canvas.begin(place, disposal);
            canvas.row(0, &color, Blend::Replace);
        }
        canvas.begin(place, Disposal::Keep);
        assert_eq!(canvas.pixels(), NONE);
    }

    #[test]
    fn frame_is_clipped_to_the_canvas() {
        let mut canvas = Canvas::new(Format::Gif, (2, 2), 0).unwrap();
        for (left, top) in [(1, 1), (2, 0), (0, 2), (u32::MAX, u32::MAX)] {
            canvas.begin(
                FrameArea {
                    left,
                    top,
                    width: 5,
                    height: 5,
                },
                Disposal::Restore,
            );
            (0..6).for_each(|y| canvas.row(y, &RED.repeat(5), Blend::Replace));
            let seen = if (left, top) == (1, 1) { RED } else { NONE };
            assert_eq!(
                canvas.pixels(),
                [NONE, NONE, NONE, seen].as_flattened(),
                "{left}, {top}"
            );
        }
    }

    #[test]
    fn pixels_are_blended_by_alpha() {
        let check = |pixel, below, expected| assert_eq!(over(pixel, below), expected);
        check([9, 8, 7, 0], [1, 2, 3, 4], [1, 2, 3, 4]);
        check([9, 8, 7, 255], [1, 2, 3, 4], [9, 8, 7, 255]);
        check([9, 8, 7, 6], [1, 2, 3, 0], [9, 8, 7, 6]);
        check([255, 0, 0, 51], [0, 0, 255, 255], [51, 0, 204, 255]);
        // Half-transparent pixels on half-transparent ones.
        check([200, 0, 0, 128], [0, 100, 0, 128], [134, 33, 0, 192]);
    }
}
