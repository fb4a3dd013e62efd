//! A component of a JPEG: buffers coefficients if necessary, and turns blocks into samples.

use super::bits::Bits;
use super::frame::{ComponentHeader, Damage, NO_CODE, Shape};
use super::huffman::{END, Table};
use super::idct::{PLACES, rounded, transform};
use super::progressive::{Scan, Stretch};

/// Root mean square error of samples that is invisible in a reduced picture: about 45 dB for luma
/// and chroma together.
const UNSEEN: f32 = 0.8;

pub(super) struct Component {
    pub(super) header: ComponentHeader,
    pub(super) shape: Shape,
    /// The last coefficient needed for the size, in zigzag order.
    pub(super) last_wanted: usize,
    /// The buffered coefficients: the first [`Shape::kept`] of each block.
    coefficients: Vec<i16>,
    /// A bit set of the nonzero coefficients of each block, if [`Shape::tracked`].
    known: Vec<u64>,
    pub(super) prediction: i32,
    /// The table as of its first scan, indexed by [`PLACES`].
    pub(super) quantiser: Option<Box<[f32; 64]>>,
    /// Number of low bits that each coefficient still lacks; `None` if it was never sent.
    pub(super) lacking: [Option<u32>; 64],
    /// Samples of the current row of MCUs, and of the previous one.
    pub(super) plane: Vec<u8>,
    pub(super) before: Vec<u8>,
    /// The last row of samples before `before`.
    pub(super) above: Vec<u8>,
}

impl Component {
    pub(super) fn new(header: ComponentHeader, shape: Shape) -> Self {
        let stride = shape.plane_stride();
        let plane = vec![0; stride * header.blocks.1 * shape.size.height];
        Self {
            header,
            last_wanted: shape.size.last_wanted(),
            coefficients: vec![0; shape.stride * shape.rows * shape.kept],
            known: vec![
                0;
                if shape.tracked {
                    shape.stride * shape.rows
                } else {
                    0
                }
            ],
            prediction: 0,
            quantiser: None,
            lacking: [None; 64],
            before: plane.clone(),
            plane,
            above: vec![0; stride],
            shape,
        }
    }

    /// Returns the buffered coefficients of a block.
    #[inline]
    pub(super) fn buffered(&mut self, (x, y): (usize, usize)) -> &mut [i16] {
        let start = (y * self.shape.stride + x) * self.shape.kept;
        &mut self.coefficients[start..start + self.shape.kept]
    }

    /// Returns `count` blocks of a row, starting at `from`.
    pub(super) fn stretch(&mut self, y: usize, from: usize, count: usize) -> Stretch<'_> {
        let start = y * self.shape.stride + from;
        let kept = self.shape.kept;
        Stretch {
            coefficients: &mut self.coefficients[start * kept..(start + count) * kept],
            known: &mut self.known[start..start + count],
        }
    }

    /// Reads a block of a sequential JPEG; returns the index of its last nonzero coefficient among
    /// those wanted.
    #[inline]
    pub(super) fn read(
        &mut self,
        (dc, ac): (&Table, &Table),
        bits: &mut Bits<'_>,
        block: &mut [i16; 64],
    ) -> Result<usize, Damage> {
        // A local copy stays in registers.
        let mut local = *bits;
        self.prediction = self.prediction.wrapping_add(dc_difference(dc, &mut local)?);
        block[0] = self.prediction as i16;
        let mut at = 1;
        let mut seen = 0;
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
                block[usize::from(PLACES[at & 63])] = entry.take(&mut local) as i16;
                seen = at;
            } else {
                local.skip(entry.bits());
            }
            at += 1;
        }
        *bits = local;
        if at > 64 && at < END {
            Err(NO_CODE)
        } else {
            Ok(seen)
        }
    }

    /// Whether an AC scan must be read. No scan is needed if only DC coefficients are wanted.
    /// Otherwise all are, as each depends on those before, except final refinements too small to be
    /// visible.
    pub(super) fn wants(&self, scan: &Scan) -> bool {
        let is_seen = || self.error(if scan.high > 0 { scan.high } else { scan.low }) > UNSEEN;
        let is_wanted = scan.high == 0 && scan.first <= self.last_wanted;
        self.last_wanted > 0 && (is_wanted || is_seen())
    }

    /// Returns the maximum error of samples, as root mean square, if all wanted AC coefficients
    /// lack this many bits.
    fn error(&self, bits: u32) -> f32 {
        let whole = (self.shape.size.width, self.shape.size.height) == (8, 8);
        let Some(quantiser) = self.quantiser.as_ref().filter(|_| !whole) else {
            return f32::INFINITY;
        };
        let wanted = |place: &&u8| self.shape.size.has(**place);
        let places = PLACES[1..].iter().filter(wanted);
        let steps = places
            .map(|&place| quantiser[usize::from(place)].powi(2))
            .sum::<f32>()
            .sqrt();
        // A coefficient contributes an eighth to the samples.
        ((1 << bits) - 1) as f32 * steps / 8.0
    }

    /// Transforms a row of MCUs from buffered coefficients into samples.
    pub(super) fn transform_row(&mut self, mcu: usize) {
        let down = self.header.blocks.1;
        let kept = self.shape.kept;
        for y in 0..down {
            for x in 0..self.shape.stride {
                let mut block = [0; 64];
                let place = (x, mcu * down + y);
                let buffered = self.buffered(place);
                for (&value, &to) in buffered.iter().zip(&PLACES) {
                    block[usize::from(to & 63)] = value;
                }
                let known = self.known.get(place.1 * self.shape.stride + x);
                let last = known.map_or(63, |known| (known | 1).ilog2() as usize);
                self.transform(&block, last.min(kept - 1), (x, y));
            }
        }
    }

    /// Transforms a block and writes its samples into the row of MCUs. All coefficients after
    /// `last` are zero.
    #[inline]
    pub(super) fn transform(&mut self, block: &[i16; 64], last: usize, (x, y): (usize, usize)) {
        let Some(quantiser) = &self.quantiser else {
            return;
        };
        let size = self.shape.size;
        let stride = self.shape.plane_stride();
        let start = y * size.height * stride + x * size.width;
        let plane = &mut self.plane[start..];
        if last == 0 || (size.width, size.height) == (1, 1) {
            // The block has no AC coefficients.
            let mean = rounded(f32::from(block[0]) * quantiser[0] * 0.125 + 128.0) as u8;
            for y in 0..size.height {
                plane[y * stride..][..size.width].fill(mean);
            }
            return;
        }
        transform(block, quantiser, size, plane, stride);
    }

    /// Prepares for the next row of MCUs.
    pub(super) fn advance(&mut self) {
        let start = self.before.len() - self.above.len();
        self.above.copy_from_slice(&self.before[start..]);
        std::mem::swap(&mut self.plane, &mut self.before);
    }
}

/// Reads the difference between a block's DC coefficient and the previous one.
#[inline]
pub(super) fn dc_difference(table: &Table, bits: &mut Bits<'_>) -> Result<i32, Damage> {
    bits.refill();
    Ok(table.coefficient(bits).ok_or(NO_CODE)?.take(bits))
}
