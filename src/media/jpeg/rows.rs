//! Assembles rows of pixels from the samples of the components: upsamples components with lower
//! resolution, and converts colours to RGB. Upsampling by two interpolates neighbours with weights
//! 3 and 1, as libjpeg does and encoders expect.

use super::component::Component;
use super::frame::Output;
use super::idct::rounded;

/// Called with each row of the picture, from the top.
pub(super) type Sink<'a> = &'a mut dyn FnMut(&[u8]);

/// The meaning of a pixel's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colors {
    Grey,
    Rgb,
    YCbCr,
    /// CMYK as Adobe's programs write it: 255 means no ink.
    Cmyk,
    /// The CMY channels are stored as the YCbCr of their complements.
    Ycck,
}

impl Colors {
    /// Decides from the markers in the file, with the same precedence as libjpeg.
    pub(super) fn from_markers(components: &[Component], jfif: bool, adobe: Option<u8>) -> Self {
        match (components, adobe) {
            ([_], _) => Self::Grey,
            ([_, _, _, _], Some(0) | None) => Self::Cmyk,
            ([_, _, _, _], _) => Self::Ycck,
            (_, Some(0)) if !jfif => Self::Rgb,
            ([r, g, b, ..], None) if !jfif && [r, g, b].map(|c| c.header.id) == *b"RGB" => {
                Self::Rgb
            }
            _ => Self::YCbCr,
        }
    }
}

pub(super) struct Rows {
    /// The size of the result in pixels.
    size: (usize, usize),
    /// The number of pixel rows per row of MCUs.
    most: usize,
    colors: Colors,
    /// A line of each component, for upsampling.
    lines: [Vec<u8>; 4],
    sums: Vec<u16>,
    pixels: Vec<u8>,
    output: Output,
}

impl Rows {
    pub(super) fn new(size: (u32, u32), most: usize, colors: Colors, output: Output) -> Self {
        let size = (size.0 as usize, size.1 as usize);
        let channels = match output {
            Output::Colors => 3,
            Output::Inks => 4,
        };
        Self {
            size,
            most,
            colors,
            lines: Default::default(),
            sums: Vec::new(),
            pixels: vec![0; size.0 * channels],
            output,
        }
    }

    /// Passes on the pixel rows of the row of MCUs `mcu`, which is the one before the current one.
    pub(super) fn write(&mut self, components: &[Component], mcu: usize, sink: Sink<'_>) {
        let from = mcu * self.most;
        for y in from..(from + self.most).min(self.size.1) {
            let mut lines: [&[u8]; 4] = [&[]; 4];
            let width = self.size.0;
            for ((line, own), component) in lines.iter_mut().zip(&mut self.lines).zip(components) {
                *line = stretched(component, mcu, y, width, (&mut self.sums, own));
            }
            match self.output {
                Output::Colors => self.colors.write(lines, &mut self.pixels),
                Output::Inks => self.colors.write_inks(lines, &mut self.pixels),
            }
            sink(&self.pixels);
        }
    }
}

/// Returns row `y` of a component, upsampled to the picture's width.
fn stretched<'a>(
    component: &'a Component,
    mcu: usize,
    y: usize,
    width: usize,
    (sums, line): (&mut Vec<u16>, &'a mut Vec<u8>),
) -> &'a [u8] {
    let (across, down) = component.shape.repeat;
    let row = |at: usize| row(component, mcu, at);
    if (across, down) == (1, 1) {
        return &row(y)[..width];
    }
    let this = row(y / down);
    // libjpeg does not interpolate such narrow components either.
    let narrow = component.shape.samples.0 <= 2 && across == 2;
    let blended = matches!((across, down), (1 | 2, 1 | 2)) && !narrow;
    // Four times the row's samples, or 3 + 1 times those of the row and its neighbour.
    sums.clear();
    if blended && down == 2 {
        let next = if y % 2 == 1 {
            y / 2 + 1
        } else {
            (y / 2).saturating_sub(1)
        };
        let blend = |(&a, &b): (&u8, &u8)| 3 * u16::from(a) + u16::from(b);
        sums.extend(this.iter().zip(row(next)).map(blend));
    } else {
        sums.extend(this.iter().map(|&value| 4 * u16::from(value)));
    }
    line.clear();
    line.resize(sums.len() * across, 0);
    match across {
        2 if blended => double(sums, line, if down == 2 { (8, 7) } else { (4, 8) }),
        1 if blended => {
            // libjpeg rounds like this.
            let half = if y % 2 == 1 { 2 } else { 1 };
            line.iter_mut()
                .zip(&*sums)
                .for_each(|(to, &sum)| *to = ((sum + half) >> 2) as u8);
        }
        _ => {
            for (to, &sum) in line.chunks_exact_mut(across).zip(&*sums) {
                to.fill(((sum + 2) >> 2) as u8);
            }
        }
    }
    &line[..width]
}

/// Doubles a line of sums, interpolating neighbours with weights 3 and 1.
fn double(sums: &[u16], line: &mut [u8], (left, right): (u16, u16)) {
    let end = sums.len() - 1;
    for (pair, three) in line[2..].chunks_exact_mut(2).zip(sums.windows(3)) {
        pair[0] = ((3 * three[1] + three[0] + left) >> 4) as u8;
        pair[1] = ((3 * three[1] + three[2] + right) >> 4) as u8;
    }
    let (first, last) = (0, 2 * end + 1);
    line[first] = ((4 * sums[0] + left) >> 4) as u8;
    line[last] = ((4 * sums[end] + right) >> 4) as u8;
    if end > 0 {
        line[1] = ((3 * sums[0] + sums[1] + right) >> 4) as u8;
        line[last - 1] = ((3 * sums[end] + sums[end - 1] + left) >> 4) as u8;
    }
}

/// Returns a row of a component's samples; beyond the picture, its last row.
fn row(component: &Component, mcu: usize, at: usize) -> &[u8] {
    let shape = &component.shape;
    let (stride, (width, height)) = (shape.plane_stride(), shape.samples);
    let rows = component.header.blocks.1 * shape.size.height;
    let at = at.min(height - 1);
    match at.cmp(&(mcu * rows)) {
        std::cmp::Ordering::Less => &component.above[..width],
        _ if at - mcu * rows >= rows => &component.plane[..width],
        _ => &component.before[(at - mcu * rows) * stride..][..width],
    }
}

impl Colors {
    fn write(self, [a, b, c, d]: [&[u8]; 4], pixels: &mut [u8]) {
        let pixels = pixels.as_chunks_mut::<3>().0;
        match self {
            Self::Grey => pixels
                .iter_mut()
                .zip(a)
                .for_each(|(to, &value)| *to = [value; 3]),
            Self::Rgb | Self::Cmyk => {
                for (((to, &a), &b), &c) in pixels.iter_mut().zip(a).zip(b).zip(c) {
                    *to = [a, b, c];
                }
            }
            Self::YCbCr | Self::Ycck => ycc(a, b, c, pixels),
        }
        for (pixel, &key) in pixels.iter_mut().zip(d) {
            let color = if self == Self::Ycck {
                pixel.map(|value| 255 - value)
            } else {
                *pixel
            };
            *pixel = color.map(|value| ((u32::from(value) * u32::from(key) + 127) / 255) as u8);
        }
    }
}

impl Colors {
    /// Writes the inks; 255 is the full amount.
    fn write_inks(self, [a, b, c, d]: [&[u8]; 4], pixels: &mut [u8]) {
        let mut colors = vec![0; 3 * (pixels.len() / 4)];
        self.write([a, b, c, &[]], &mut colors);
        let colors = colors.chunks_exact(3);
        for ((to, color), &key) in pixels.chunks_exact_mut(4).zip(colors).zip(d) {
            // For YCCK, the decoded RGB values are the inks themselves.
            let ink = |value: u8| {
                if self == Self::Ycck {
                    value
                } else {
                    255 - value
                }
            };
            to.copy_from_slice(&[ink(color[0]), ink(color[1]), ink(color[2]), 255 - key]);
        }
    }
}

/// Number of pixels processed at a time.
const LANES: usize = 16;

/// Converts a row of YCbCr pixels to RGB.
pub(in crate::media) fn to_rgb(row: &[u8], pixels: &mut [u8]) {
    let plane = |at| -> Vec<u8> { row.iter().skip(at).step_by(3).copied().collect() };
    ycc(&plane(0), &plane(1), &plane(2), pixels.as_chunks_mut().0);
}

/// Converts YCbCr (BT.601, full range) to RGB.
fn ycc(y: &[u8], cb: &[u8], cr: &[u8], pixels: &mut [[u8; 3]]) {
    let lanes = |line| <[u8]>::as_chunks::<LANES>(line);
    let ((y, y_rest), (cb, cb_rest), (cr, cr_rest)) = (lanes(y), lanes(cb), lanes(cr));
    let (whole, rest) = pixels.as_chunks_mut::<LANES>();
    for (((to, y), cb), cr) in whole.iter_mut().zip(y).zip(cb).zip(cr) {
        let words = rgb(y, cb, cr);
        let to = to.as_flattened_mut();
        // Writes four bytes per pixel, the last of which the next pixel overwrites: one store
        // instead of three.
        for (at, word) in words[..LANES - 1].iter().enumerate() {
            to[3 * at..3 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        to[3 * LANES - 3..].copy_from_slice(&words[LANES - 1].to_le_bytes()[..3]);
    }
    let filled = |rest: &[u8]| {
        let mut line = [0; LANES];
        line[..rest.len()].copy_from_slice(rest);
        line
    };
    let words = rgb(&filled(y_rest), &filled(cb_rest), &filled(cr_rest));
    for (pixel, word) in rest.iter_mut().zip(words) {
        pixel.copy_from_slice(&word.to_le_bytes()[..3]);
    }
}

/// Returns red in the lowest byte, then green and blue.
#[inline(always)]
fn rgb(y: &[u8; LANES], cb: &[u8; LANES], cr: &[u8; LANES]) -> [u32; LANES] {
    let mut words = [0; LANES];
    for at in 0..LANES {
        let light = f32::from(y[at]);
        let (cb, cr) = (f32::from(cb[at]) - 128.0, f32::from(cr[at]) - 128.0);
        let (red, blue) = (light + 1.402 * cr, light + 1.772 * cb);
        let green = light - 0.344_136_3 * cb - 0.714_136_3 * cr;
        words[at] = rounded(red) | rounded(green) << 8 | rounded(blue) << 16;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upsampling_interpolates_neighbors_three_to_one() {
        let check = |samples: &[u16], expected: &[u8]| {
            let sums: Vec<_> = samples.iter().map(|sample| 4 * sample).collect();
            let mut line = vec![0; 2 * sums.len()];
            double(&sums, &mut line, (4, 8));
            assert_eq!(line, expected);
        };
        check(&[7], &[7, 7]);
        check(&[0, 100], &[0, 25, 75, 100]);
        check(&[0, 100, 200], &[0, 25, 75, 125, 175, 200]);
    }

    #[test]
    fn ycbcr_is_converted_by_bt601() {
        let check = |samples: [u8; 3], expected: [u8; 3]| {
            let [y, cb, cr] = samples.map(|sample| [sample; 17]);
            let mut pixels = [[0; 3]; 17];
            ycc(&y, &cb, &cr, &mut pixels);
            assert_eq!(pixels, [expected; 17]);
        };
        check([0, 128, 128], [0, 0, 0]);
        check([255, 128, 128], [255, 255, 255]);
        check([76, 85, 255], [254, 0, 0]);
        check([29, 255, 107], [0, 0, 254]);
    }
}
