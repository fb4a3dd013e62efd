//! Reduces a picture by averaging boxes of pixels while a decoder produces its rows.
//!
//! So only the result and one row are in memory, and all formats use the same arithmetic: equal
//! pixels give equal results.

use super::exif::Orientation;
use super::picture::Picture;

/// Sums of up to 128 rows of bytes fit into 16 bits.
const FACTOR_MAX: u32 = 128;

pub(super) struct Shrink {
    width: usize,
    height: usize,
    /// 3 (RGB) or 4 (RGBA, not premultiplied).
    channels: usize,
    factor: usize,
    /// Number of rows since the last complete row of boxes.
    pending: usize,
    /// Column sums of an opaque picture.
    sums: Vec<u16>,
    /// Column sums of a picture with alpha, colours premultiplied.
    weighted: Vec<u32>,
    pixels: Vec<u8>,
}

impl Shrink {
    /// Returns the largest box side with which the result is not smaller than `goal`.
    pub(super) fn factor(size: (u32, u32), goal: (u32, u32)) -> u32 {
        (size.0 / goal.0.max(1))
            .min(size.1 / goal.1.max(1))
            .clamp(1, FACTOR_MAX)
    }

    pub(super) fn new(size: (u32, u32), channels: usize, factor: u32) -> Self {
        let (width, height, factor) = (size.0 as usize, size.1 as usize, factor as usize);
        let boxed = factor > 1;
        let length = |wanted: bool| if boxed && wanted { width * channels } else { 0 };
        Self {
            width,
            height,
            channels,
            factor,
            pending: 0,
            sums: vec![0; length(channels == 3)],
            weighted: vec![0; length(channels == 4)],
            pixels: Vec::with_capacity(width.div_ceil(factor) * height.div_ceil(factor) * channels),
        }
    }

    /// Size of the result in bytes.
    pub(super) fn bytes(size: (u32, u32), channels: usize, factor: u32) -> u64 {
        u64::from(size.0.div_ceil(factor)) * u64::from(size.1.div_ceil(factor)) * channels as u64
    }

    /// Adds the next row.
    pub(super) fn row(&mut self, row: &[u8]) {
        debug_assert_eq!(row.len(), self.width * self.channels);
        if self.factor == 1 {
            self.pixels.extend_from_slice(row);
            return;
        }
        if self.channels == 3 {
            for (sum, &value) in self.sums.iter_mut().zip(row) {
                *sum += u16::from(value);
            }
        } else {
            for (sum, pixel) in self.weighted.chunks_exact_mut(4).zip(row.chunks_exact(4)) {
                let alpha = u32::from(pixel[3]);
                sum[0] += u32::from(pixel[0]) * alpha;
                sum[1] += u32::from(pixel[1]) * alpha;
                sum[2] += u32::from(pixel[2]) * alpha;
                sum[3] += alpha;
            }
        }
        self.pending += 1;
        if self.pending == self.factor {
            self.flush();
        }
    }

    /// Adds several rows.
    pub(super) fn rows(&mut self, rows: &[u8]) {
        for row in rows.chunks_exact(self.width * self.channels) {
            self.row(row);
        }
    }

    /// Returns the result; missing rows are not added.
    pub(super) fn finish(mut self, orientation: Orientation) -> Picture {
        if self.pending > 0 {
            self.flush();
        }
        let factor = self.factor as f64;
        let extent = (self.width as f64 / factor, self.height as f64 / factor);
        let size = (
            self.width.div_ceil(self.factor) as u32,
            self.height.div_ceil(self.factor) as u32,
        );
        Picture::new(size, self.channels, self.pixels, orientation).covering(extent)
    }

    fn flush(&mut self) {
        if self.channels == 3 {
            self.flush_opaque()
        } else {
            self.flush_weighted()
        }
        self.pending = 0;
    }

    fn flush_opaque(&mut self) {
        // The last box may be narrower than the others.
        for columns in self.sums.chunks(3 * self.factor) {
            let count = (columns.len() / 3 * self.pending) as u64;
            // One division for three channels: multiplies in 32.32 fixed point, rounded.
            let scale = (1_u64 << 32) / count + 1;
            let mut total = [count / 2; 3];
            for pixel in columns.chunks_exact(3) {
                for (total, &value) in total.iter_mut().zip(pixel) {
                    *total += u64::from(value);
                }
            }
            self.pixels
                .extend(total.map(|total| ((total * scale) >> 32) as u8));
        }
        self.sums.fill(0);
    }

    fn flush_weighted(&mut self) {
        for columns in self.weighted.chunks(4 * self.factor) {
            let count = (columns.len() / 4 * self.pending) as u64;
            let mut total = [0_u64; 4];
            for pixel in columns.chunks_exact(4) {
                for (total, &value) in total.iter_mut().zip(pixel) {
                    *total += u64::from(value);
                }
            }
            let [r, g, b, alpha] = total;
            let color = |sum: u64| (sum + alpha / 2).checked_div(alpha).unwrap_or(0) as u8;
            let alpha = ((alpha + count / 2) / count) as u8;
            self.pixels.extend([color(r), color(g), color(b), alpha]);
        }
        self.weighted.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(size: (u32, u32), channels: usize, factor: u32, pixels: &[u8]) -> Vec<u8> {
        let mut shrink = Shrink::new(size, channels, factor);
        shrink.rows(pixels);
        shrink.finish(Orientation::NoTransforms).pixels().to_vec()
    }

    #[test]
    fn boxes_are_averaged_and_rounded() {
        let check = |size, channels, factor, pixels: &[u8], expected: &[u8]| {
            assert_eq!(shrunk(size, channels, factor, pixels), expected);
        };
        check((1, 1), 3, 1, &[1, 2, 3], &[1, 2, 3]);
        check((2, 1), 3, 2, &[0, 10, 255, 1, 20, 255], &[1, 15, 255]);
        // An incomplete box at the right edge, and one at the bottom.
        check(
            (3, 1),
            3,
            2,
            &[0, 0, 0, 2, 2, 2, 9, 9, 9],
            &[1, 1, 1, 9, 9, 9],
        );
        check(
            (1, 3),
            3,
            2,
            &[0, 0, 0, 2, 2, 2, 9, 9, 9],
            &[1, 1, 1, 9, 9, 9],
        );
        // Transparent pixels do not affect the colour.
        check(
            (2, 1),
            4,
            2,
            &[200, 100, 0, 255, 7, 7, 7, 0],
            &[200, 100, 0, 128],
        );
        check((2, 1), 4, 2, &[5, 5, 5, 0, 7, 7, 7, 0], &[0, 0, 0, 0]);
    }

    #[test]
    fn white_stays_white_at_the_largest_factor() {
        let size = (300, 300);
        let white = vec![255; 300 * 300 * 4];
        assert!(
            shrunk(size, 3, FACTOR_MAX, &white[..300 * 300 * 3])
                .iter()
                .all(|&v| v == 255)
        );
        assert!(
            shrunk(size, 4, FACTOR_MAX, &white)
                .iter()
                .all(|&v| v == 255)
        );
    }

    #[test]
    fn factor_keeps_the_result_above_the_goal() {
        let check = |size, goal, factor| assert_eq!(Shrink::factor(size, goal), factor);
        check((3840, 2160), (1000, 562), 3);
        check((400, 300), (1000, 750), 1);
        check((65535, 10), (1000, 2), 5);
        check((65535, 8000), (1, 1), FACTOR_MAX);
        check((10, 10), (0, 0), 10);
    }
}
