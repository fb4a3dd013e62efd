//! Converts the samples of decoders to 8-bit RGB or RGBA.

use std::borrow::Cow;

use image::ColorType;

/// The layout of the samples of a pixel in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// 1: grey, 2: grey and alpha, 3: colours, 4: colours and alpha.
    pub(super) count: usize,
    pub(super) depth: Depth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Eight,
    /// In the processor's byte order.
    Sixteen,
    /// High byte first, as in PNG.
    SixteenBig,
    /// From 0 to 1.
    Float,
}

impl Layout {
    /// Returns `None` for kinds of samples that no supported format has.
    pub(super) fn from_color_type(color: ColorType) -> Option<Self> {
        let count = usize::from(color.channel_count());
        let depth = match usize::from(color.bytes_per_pixel()) / count {
            1 => Depth::Eight,
            2 => Depth::Sixteen,
            4 => Depth::Float,
            _ => return None,
        };
        Some(Self { count, depth })
    }

    /// Number of channels after conversion.
    pub(super) fn channels(self) -> usize {
        if self.count.is_multiple_of(2) { 4 } else { 3 }
    }

    pub(super) fn bytes(self) -> usize {
        match self.depth {
            Depth::Eight => self.count,
            Depth::Sixteen | Depth::SixteenBig => 2 * self.count,
            Depth::Float => 4 * self.count,
        }
    }

    /// Whether the samples need no conversion.
    pub(super) fn are_pixels(self) -> bool {
        self.count >= 3 && self.depth == Depth::Eight
    }

    /// Converts a row and appends its pixels; each sample is rounded to 8 bits.
    pub(super) fn append(self, row: &[u8], to: &mut Vec<u8>) {
        let samples: Cow<'_, [u8]> = match self.depth {
            Depth::Eight => row.into(),
            Depth::Sixteen => shorts(row, u16::from_ne_bytes),
            Depth::SixteenBig => shorts(row, u16::from_be_bytes),
            Depth::Float => row.as_chunks().0.iter().map(|&four| level(four)).collect(),
        };
        match self.count {
            1 => to.extend(samples.iter().flat_map(|&v| [v; 3])),
            2 => to.extend(
                samples
                    .as_chunks()
                    .0
                    .iter()
                    .flat_map(|&[v, alpha]| [v, v, v, alpha]),
            ),
            _ => to.extend_from_slice(&samples),
        }
    }
}

fn shorts(row: &[u8], of: fn([u8; 2]) -> u16) -> Cow<'_, [u8]> {
    let nearest = |&two| ((u32::from(of(two)) * 255 + 32_895) >> 16) as u8;
    row.as_chunks().0.iter().map(nearest).collect()
}

fn level(sample: [u8; 4]) -> u8 {
    (f32::from_ne_bytes(sample).clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Removes the alpha channel from RGBA pixels.
pub(super) fn drop_alpha(pixels: &mut Vec<u8>) {
    let count = pixels.len() / 4;
    for at in 0..count {
        pixels.copy_within(4 * at..4 * at + 3, 3 * at);
    }
    pixels.truncate(3 * count);
}

/// Converts premultiplied RGBA pixels to straight alpha.
pub(super) fn divide_by_alpha(pixels: &mut [u8]) {
    for [colors @ .., alpha] in pixels.as_chunks_mut::<4>().0 {
        let divided = |color: u8| (u16::from(color) * 255).checked_div(u16::from(*alpha));
        *colors = colors.map(|color| divided(color).unwrap_or(0).min(255) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_every_kind_are_converted() {
        let check = |count, depth, row: &[u8], expected: &[u8]| {
            let mut pixels = Vec::new();
            Layout { count, depth }.append(row, &mut pixels);
            assert_eq!(pixels, expected, "{count} {depth:?}");
        };
        check(1, Depth::Eight, &[7, 9], &[7, 7, 7, 9, 9, 9]);
        check(2, Depth::Eight, &[7, 9], &[7, 7, 7, 9]);
        check(4, Depth::Eight, &[1, 2, 3, 4], &[1, 2, 3, 4]);
        // Values are rounded: 0x0180 is 1.49 levels, 0x0182 is 1.5.
        let sixteen = [0x0180_u16, 0x0182, 0xffff].map(u16::to_ne_bytes).concat();
        check(3, Depth::Sixteen, &sixteen, &[1, 2, 255]);
        check(1, Depth::SixteenBig, &[0x01, 0x80], &[1, 1, 1]);
        let floats = [-1.0_f32, 0.5, f32::NAN].map(f32::to_ne_bytes).concat();
        check(3, Depth::Float, &floats, &[0, 128, 0]);
    }

    #[test]
    fn premultiplied_colors_are_divided_by_alpha() {
        let mut pixels = [[64, 0, 200, 128], [9, 9, 9, 0], [1, 2, 3, 255]];
        divide_by_alpha(pixels.as_flattened_mut());
        assert_eq!(pixels, [[127, 0, 255, 128], [0, 0, 0, 0], [1, 2, 3, 255]]);
    }
}
