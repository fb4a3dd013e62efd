//! Converts rows of TIFF samples, of one to 32 bits each, into RGB or RGBA.

use tiff::decoder::DecodingResult;

use super::{SHORT, damaged, unsupported};
use crate::media::error::Error;
use crate::media::icc::{Conversion, Samples};

/// The samples of a pixel.
#[derive(Debug)]
pub(super) struct Pixels {
    pub(super) color: Color,
    /// How many there are, those that mean nothing to us included.
    pub(super) samples: usize,
    /// Of a sample.
    pub(super) bits: usize,
    pub(super) alpha: Alpha,
}

#[derive(Debug)]
pub(super) enum Color {
    Gray,
    Rgb,
    Cmyk,
    YCbCr,
    Palette(Vec<[u8; 3]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alpha {
    None,
    Plain,
    /// Colours are multiplied by it.
    Associated,
}

impl Color {
    pub(super) fn samples(&self) -> Samples {
        match self {
            Self::Gray => Samples::Gray,
            Self::Cmyk => Samples::Cmyk,
            Self::Rgb | Self::YCbCr | Self::Palette(_) => Samples::Rgb,
        }
    }
}

impl Pixels {
    /// The rows of a chunk that is `width` pixels wide.
    pub(super) fn lines<'a>(
        &self,
        chunk: &'a [u8],
        width: usize,
        height: usize,
    ) -> Result<impl Iterator<Item = &'a [u8]> + use<'a>, Error> {
        let stride = match self.bits {
            bits @ 0..8 => (width * bits).div_ceil(8),
            _ => width * self.samples,
        };
        if chunk.len() < stride * height {
            return Err(damaged(SHORT));
        }
        Ok(chunk.chunks_exact(stride.max(1)).take(height))
    }

    /// Turns the samples of a row into RGB or RGBA.
    pub(super) fn write(
        &self,
        line: &[u8],
        target: &mut [u8],
        channels: usize,
        inks: Option<&Conversion>,
    ) {
        if let Some(inks) = inks.filter(|_| channels == 3) {
            let pixels = line.chunks_exact(self.samples).take(target.len() / 3);
            let line: Vec<u8> = pixels.flat_map(|pixel| &pixel[..4]).copied().collect();
            return inks.apply(&line, target);
        }
        for (x, target) in target.chunks_exact_mut(channels).enumerate() {
            target.copy_from_slice(&self.pixel(line, x)[..channels]);
        }
    }

    fn pixel(&self, row: &[u8], x: usize) -> [u8; 4] {
        if self.bits < 8 {
            let at = x * self.bits;
            let most = (1_u16 << self.bits) - 1;
            let value = u16::from(row[at / 8] >> (8 - self.bits - at % 8)) & most;
            return match &self.color {
                Color::Palette(colors) => opaque(color(colors, value as u8)),
                _ => opaque([(value * 255 / most) as u8; 3]),
            };
        }
        let sample = &row[x * self.samples..][..self.samples];
        let (rgb, own) = match &self.color {
            Color::Gray => ([sample[0]; 3], 1),
            Color::Rgb => ([sample[0], sample[1], sample[2]], 3),
            Color::Palette(colors) => (color(colors, sample[0]), 1),
            Color::Cmyk => {
                let light = 255 - u16::from(sample[3]);
                ([0, 1, 2].map(|at| ((255 - u16::from(sample[at])) * light / 255) as u8), 4)
            }
            Color::YCbCr => (from_ycbcr(sample), 3),
        };
        let [r, g, b] = rgb;
        match self.alpha {
            Alpha::None => opaque(rgb),
            Alpha::Plain => [r, g, b, sample[own]],
            Alpha::Associated => {
                let alpha = u16::from(sample[own]);
                let [r, g, b] = rgb.map(|value| {
                    (u16::from(value) * 255).checked_div(alpha).unwrap_or(0).min(255) as u8
                });
                [r, g, b, sample[own]]
            }
        }
    }
}

fn opaque([r, g, b]: [u8; 3]) -> [u8; 4] {
    [r, g, b, 255]
}

/// Indices that the table lacks are black.
fn color(colors: &[[u8; 3]], index: u8) -> [u8; 3] {
    colors.get(usize::from(index)).copied().unwrap_or_default()
}

/// As JPEG has it (BT.601, full range).
fn from_ycbcr(sample: &[u8]) -> [u8; 3] {
    let [y, cb, cr] = [0, 1, 2].map(|at| f32::from(sample[at]));
    let (cb, cr) = (cb - 128.0, cr - 128.0);
    [y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb]
        .map(|value| value.round().clamp(0.0, 255.0) as u8)
}

/// The nearest of eight bits for each sample.
pub(super) fn bytes(samples: DecodingResult) -> Result<Vec<u8>, Error> {
    let float = |value: f32| (value.clamp(0.0, 1.0) * 255.0).round() as u8;
    let short = |value: u16| ((u32::from(value) * 255 + 32_895) >> 16) as u8;
    let long = |value: u32| short((value >> 16) as u16);
    Ok(match samples {
        DecodingResult::U8(values) => values,
        DecodingResult::U16(values) => values.into_iter().map(short).collect(),
        DecodingResult::U32(values) => values.into_iter().map(long).collect(),
        DecodingResult::F32(values) => values.into_iter().map(float).collect(),
        _ => return Err(unsupported("its kind of samples".to_owned())),
    })
}
