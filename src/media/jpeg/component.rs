//! A component of a scaled JPEG: the plane of its samples, and how blocks get there.

use super::bits::Bits;
use super::huffman::{END, Table};
use super::idct::{Size, transform};
use super::scaled::{Damage, NO_CODE};

/// In which order the frequencies of a block are coded: column + 8 × row.
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// How a picture is to be decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    /// Samples to a block's side.
    pub(super) side: usize,
    /// Of each block of a progressive picture, only the mean is held.
    pub(super) means: bool,
    pub(super) progressive: bool,
    /// Of the picture, in pixels.
    pub(super) size: (usize, usize),
    /// Blocks in a unit of the component that has most, across and down.
    pub(super) most: (usize, usize),
    /// Units of interleaved blocks, across and down.
    pub(super) units: (usize, usize),
}

pub(super) struct Component {
    pub(super) id: u8,
    /// Blocks in a unit, across and down.
    pub(super) blocks: (usize, usize),
    pub(super) quantiser: usize,
    /// Blocks that the picture covers, across and down.
    pub(super) covered: (usize, usize),
    /// Blocks in a row of the plane.
    pub(super) stride: usize,
    /// Samples of a block.
    size: Size,
    /// How often each sample stands in the plane, across and down.
    repeat: (usize, usize),
    /// The frequencies that are needed: place in the coded order, place in `size`.
    wanted: Vec<(u8, u8)>,
    /// The last of those, in the coded order.
    last_wanted: usize,
    pub(super) plane: Vec<u8>,
    /// Of a progressive picture: so many coefficients of each block, in the coded order.
    pub(super) kept: usize,
    pub(super) coefficients: Vec<i16>,
    pub(super) prediction: i32,
}

impl Component {
    pub(super) fn new(
        plan: &Plan,
        id: u8,
        blocks: (usize, usize),
        quantiser: usize,
    ) -> Result<Self, Damage> {
        let Plan { side, size: whole, most, units, .. } = *plan;
        let ratio = |most: usize, own: usize| match most.checked_div(own) {
            Some(ratio @ (1 | 2 | 4)) if ratio * own == most => Ok(ratio),
            _ => Err("its components are of odd sizes"),
        };
        let ratio = (ratio(most.0, blocks.0)?, ratio(most.1, blocks.1)?);
        // A component of fewer blocks gives more samples of each: nothing need be stretched.
        let means = plan.progressive && plan.means;
        let samples = |ratio: usize| if means { 1 } else { (side * ratio).min(8) };
        let size = Size { width: samples(ratio.0), height: samples(ratio.1) };
        let wanted: Vec<_> = (0..64_u8)
            .filter_map(|at| {
                let place = usize::from(ZIGZAG[usize::from(at)]);
                let (column, row) = (place % 8, place / 8);
                let inside = column < size.width && row < size.height;
                inside.then_some((at, (row * size.width + column) as u8))
            })
            .collect();
        let covered = |length: usize, own: usize, most: usize| (length * own).div_ceil(8 * most);
        let stride = units.0 * blocks.0;
        let total = stride * units.1 * blocks.1;
        let kept = if !plan.progressive {
            0
        } else if means {
            1
        } else {
            64
        };
        let plane = units.0 * most.0 * side * (units.1 * most.1 * side);
        Ok(Self {
            id,
            blocks,
            quantiser,
            covered: (covered(whole.0, blocks.0, most.0), covered(whole.1, blocks.1, most.1)),
            stride,
            repeat: (side * ratio.0 / size.width, side * ratio.1 / size.height),
            last_wanted: wanted.last().map_or(0, |&(at, _)| usize::from(at)),
            wanted,
            size,
            plane: vec![0; plane],
            kept,
            coefficients: vec![0; total * kept],
            prediction: 0,
        })
    }

    /// A block that is coded in one go.
    #[inline]
    pub(super) fn plain(
        &mut self,
        dc: &Table,
        ac: &Table,
        quantiser: &[f32; 64],
        place: (usize, usize),
        bits: &mut Bits<'_>,
    ) -> Result<(), Damage> {
        // A copy of its own, which stays in registers.
        let mut local = *bits;
        let mut block = [0_i16; 64];
        self.prediction = self.prediction.wrapping_add(mean(dc, &mut local)?);
        block[0] = self.prediction as i16;
        let (mut at, mut seen) = (1, 0);
        while at < 64 {
            local.refill();
            if at > self.last_wanted
                && let Some(next) = ac.pass_over(at, &mut local)
            {
                at = next;
                continue;
            }
            let entry = ac.coefficient(&local).ok_or(NO_CODE)?;
            at += entry.zeros();
            if at <= self.last_wanted {
                local.skip(entry.bits() - entry.rest());
                let rest = entry.rest();
                let value = if rest > 0 { local.value(rest) } else { entry.value() };
                block[at & 63] = value as i16;
                seen = at;
            } else {
                local.skip(entry.bits());
            }
            at += 1;
        }
        *bits = local;
        if at > 64 && at < END {
            return Err(NO_CODE);
        }
        self.transform(&block, seen, quantiser, place);
        Ok(())
    }

    /// Turns all that several passes have left into samples.
    pub(super) fn transform_all(&mut self, quantiser: &[f32; 64]) {
        let coefficients = std::mem::take(&mut self.coefficients);
        for (number, kept) in coefficients.chunks_exact(self.kept).enumerate() {
            let mut block = [0; 64];
            block[..self.kept].copy_from_slice(kept);
            let place = (number % self.stride, number / self.stride);
            self.transform(&block, 63, quantiser, place);
        }
    }

    /// Writes the samples of a block; beyond `last` all coefficients are zero.
    #[inline]
    fn transform(
        &mut self,
        block: &[i16; 64],
        last: usize,
        quantiser: &[f32; 64],
        (x, y): (usize, usize),
    ) {
        let Size { width, height } = self.size;
        let stride = self.plane_stride();
        let start = y * height * self.repeat.1 * stride + x * width * self.repeat.0;
        if last == 0 {
            // Nothing but its mean: an eighth of it, rounded, cast with clamping.
            let mean = (f32::from(block[0]) * quantiser[0] * 0.125 + 128.5) as u8;
            let width = width * self.repeat.0;
            for row in self.plane[start..].chunks_mut(stride).take(height * self.repeat.1) {
                row[..width].fill(mean);
            }
            return;
        }
        let mut wanted = [0.0; 64];
        for &(at, to) in &self.wanted {
            let at = usize::from(at);
            if at > last {
                break;
            }
            wanted[usize::from(to)] = f32::from(block[at]) * quantiser[at];
        }
        if self.repeat == (1, 1) {
            transform(&wanted, self.size, &mut self.plane[start..], stride);
            return;
        }
        let mut samples = [0; 64];
        transform(&wanted, self.size, &mut samples, width);
        for row in 0..height * self.repeat.1 {
            for column in 0..width * self.repeat.0 {
                let from = row / self.repeat.1 * width + column / self.repeat.0;
                self.plane[start + row * stride + column] = samples[from];
            }
        }
    }

    pub(super) fn plane_stride(&self) -> usize {
        self.stride * self.size.width * self.repeat.0
    }
}

/// The difference of a block's mean to the one before.
#[inline]
pub(super) fn mean(table: &Table, bits: &mut Bits<'_>) -> Result<i32, Damage> {
    bits.refill();
    let size = u32::from(table.symbol(bits).ok_or(NO_CODE)?);
    if size > 16 { Err(NO_CODE) } else { Ok(bits.value(size)) }
}
