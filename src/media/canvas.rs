//! The canvas that the frames of an animated GIF or PNG are drawn on.
//!
//! Each frame covers a part of the canvas and is disposed of in one of three ways before the next. Runs
//! on the thread that decodes; holds the canvas, and the part under a frame that is to be restored.

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

/// The position of a frame: the part of it that is on the canvas.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameArea {
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// How a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposal {
    Keep,
    /// Its area becomes transparent, whatever background colour the file has, as in browsers.
    Clear,
    /// Its area is restored.
    Restore,
}

/// How a frame lies over what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blend {
    Over,
    Replace,
}

impl Canvas {
    /// One that can be seen through. `frame`: bytes that a frame takes at most while it is decoded, and
    /// what it covers where that may come back.
    pub(super) fn new(format: Format, size: (u32, u32), frame: u64) -> Result<Self, Error> {
        let bytes = u64::from(size.0) * u64::from(size.1) * 4;
        // Itself, and the picture of it that is given away.
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

    /// Takes the last frame away, and makes ready for the next.
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

    /// Lays a row of the frame down, RGBA; what is beside the canvas is not seen.
    pub(super) fn row(&mut self, y: u32, row: &[u8], blend: Blend) {
        if y >= self.place.height {
            return;
        }
        let at = FrameArea { top: self.place.top.saturating_add(y), height: 1, ..self.place };
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

    /// Gives the pixels of a part, as far as it is on the canvas, row by row.
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

/// One pixel over another, neither premultiplied.
pub(super) fn over(pixel: [u8; 4], below: [u8; 4]) -> [u8; 4] {
    let (alpha, left) = (u32::from(pixel[3]), u32::from(255 - pixel[3]));
    match alpha {
        255 => return pixel,
        0 => return below,
        _ => {}
    }
    // In parts of 255 * 255.
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
    fn frames_go_as_they_are_to() {
        let check = |disposal, expected: [[u8; 4]; 3]| {
            let mut canvas = Canvas::new(Format::Gif, (3, 1), 0).unwrap();
            let mut lay = |left, color: [u8; 4], disposal| {
                canvas.begin(FrameArea { left, top: 0, width: 1, height: 1 }, disposal);
                canvas.row(0, &color, Blend::Over);
                canvas.pixels().to_vec()
            };
            lay(0, RED, Disposal::Keep);
            // One that covers it, and goes.
            assert_eq!(lay(0, BLUE, disposal), [BLUE, NONE, NONE].as_flattened());
            assert_eq!(lay(2, BLUE, Disposal::Keep), expected.as_flattened(), "{disposal:?}");
        };
        check(Disposal::Keep, [BLUE, NONE, BLUE]);
        check(Disposal::Clear, [NONE, NONE, BLUE]);
        check(Disposal::Restore, [RED, NONE, BLUE]);
    }

    #[test]
    fn cleared_frame_restores_the_previous_pixels() {
        let mut canvas = Canvas::new(Format::Png, (1, 1), 0).unwrap();
        let place = FrameArea { left: 0, top: 0, width: 1, height: 1 };
        for (color, disposal) in [(RED, Disposal::Clear), (BLUE, Disposal::Restore)] {
            canvas.begin(place, disposal);
            canvas.row(0, &color, Blend::Replace);
        }
        canvas.begin(place, Disposal::Keep);
        assert_eq!(canvas.pixels(), NONE);
    }

    #[test]
    fn frame_beside_its_canvas_is_cut() {
        let mut canvas = Canvas::new(Format::Gif, (2, 2), 0).unwrap();
        for (left, top) in [(1, 1), (2, 0), (0, 2), (u32::MAX, u32::MAX)] {
            canvas.begin(FrameArea { left, top, width: 5, height: 5 }, Disposal::Restore);
            (0..6).for_each(|y| canvas.row(y, &RED.repeat(5), Blend::Replace));
            let seen = if (left, top) == (1, 1) { RED } else { NONE };
            assert_eq!(canvas.pixels(), [NONE, NONE, NONE, seen].as_flattened(), "{left}, {top}");
        }
    }

    #[test]
    fn colours_are_mixed_as_they_are_seen() {
        let check = |pixel, below, expected| assert_eq!(over(pixel, below), expected);
        check([9, 8, 7, 0], [1, 2, 3, 4], [1, 2, 3, 4]);
        check([9, 8, 7, 255], [1, 2, 3, 4], [9, 8, 7, 255]);
        check([9, 8, 7, 6], [1, 2, 3, 0], [9, 8, 7, 6]);
        check([255, 0, 0, 51], [0, 0, 255, 255], [51, 0, 204, 255]);
        // As much again of what half of is left.
        check([200, 0, 0, 128], [0, 100, 0, 128], [134, 33, 0, 192]);
    }
}
