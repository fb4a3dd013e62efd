//! A component of a JPEG: its coefficients where they are buffered, and how blocks become samples.

use super::bits::Bits;
use super::frame::{ComponentHeader, Damage, NO_CODE, Shape};
use super::huffman::{END, Table};
use super::idct::{PLACES, rounded, transform};
use super::progressive::{Scan, Stretch};

/// An error of samples that nobody sees in a picture at less than its size: light and colours together
/// come to 45 dB.
const UNSEEN: f32 = 0.8;

pub(super) struct Component {
    pub(super) header: ComponentHeader,
    pub(super) shape: Shape,
    /// The last of those, in the coded order.
    pub(super) last_wanted: usize,
    /// The buffered coefficients: [`Shape::kept`] of each block.
    coefficients: Vec<i16>,
    /// The coefficients of each block that are not zero, as bits, where [`Shape::tracked`].
    known: Vec<u64>,
    pub(super) prediction: i32,
    /// In force when its first scan began; at the [`PLACES`] of the frequencies.
    pub(super) quantiser: Option<Box<[f32; 64]>>,
    /// The bits that each coefficient still lacks; none of one that was never sent.
    pub(super) lacking: [Option<u32>; 64],
    /// Samples of the row of MCUs at hand, and of the one before.
    pub(super) plane: Vec<u8>,
    pub(super) before: Vec<u8>,
    /// The last row of samples before these.
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
            known: vec![0; if shape.tracked { shape.stride * shape.rows } else { 0 }],
            prediction: 0,
            quantiser: None,
            lacking: [None; 64],
            before: plane.clone(),
            plane,
            above: vec![0; stride],
            shape,
        }
    }

    /// The coefficients that are buffered of a block.
    #[inline]
    pub(super) fn buffered(&mut self, (x, y): (usize, usize)) -> &mut [i16] {
        let start = (y * self.shape.stride + x) * self.shape.kept;
        &mut self.coefficients[start..start + self.shape.kept]
    }

    /// The `count` blocks of a row from `from` on.
    pub(super) fn stretch(&mut self, y: usize, from: usize, count: usize) -> Stretch<'_> {
        let (start, kept) = (y * self.shape.stride + from, self.shape.kept);
        Stretch {
            coefficients: &mut self.coefficients[start * kept..(start + count) * kept],
            known: &mut self.known[start..start + count],
        }
    }

    /// Reads a block that is coded in one go; returns the place of its last coefficient that is
    /// not zero and wanted.
    #[inline]
    pub(super) fn read(
        &mut self,
        (dc, ac): (&Table, &Table),
        bits: &mut Bits<'_>,
        block: &mut [i16; 64],
    ) -> Result<usize, Damage> {
        // A copy of its own, which stays in registers.
        let mut local = *bits;
        self.prediction = self.prediction.wrapping_add(dc_difference(dc, &mut local)?);
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
                block[usize::from(PLACES[at & 63])] = entry.take(&mut local) as i16;
                seen = at;
            } else {
                local.skip(entry.bits());
            }
            at += 1;
        }
        *bits = local;
        if at > 64 && at < END { Err(NO_CODE) } else { Ok(seen) }
    }

    /// Whether a scan over frequencies must be read. Where nothing but means is wanted, none; else all,
    /// as each leaves out what the others have told, up to those that tell of no more than can be seen.
    pub(super) fn wants(&self, scan: &Scan) -> bool {
        let is_seen = || self.error(if scan.high > 0 { scan.high } else { scan.low }) > UNSEEN;
        let is_wanted = scan.high == 0 && scan.first <= self.last_wanted;
        self.last_wanted > 0 && (is_wanted || is_seen())
    }

    /// By how much samples are wrong at most, as the root of the mean of squares, while each of the
    /// coefficients wanted lacks so many bits.
    fn error(&self, bits: u32) -> f32 {
        let whole = (self.shape.size.width, self.shape.size.height) == (8, 8);
        let Some(quantiser) = self.quantiser.as_ref().filter(|_| !whole) else {
            return f32::INFINITY;
        };
        let wanted = |place: &&u8| self.shape.size.has(**place);
        let places = PLACES[1..].iter().filter(wanted);
        let steps = places.map(|&place| quantiser[usize::from(place)].powi(2)).sum::<f32>().sqrt();
        // A wave has an eighth of its coefficient.
        ((1 << bits) - 1) as f32 * steps / 8.0
    }

    /// Turns a row of MCUs of what is buffered into samples.
    pub(super) fn transform_row(&mut self, mcu: usize) {
        let (down, kept) = (self.header.blocks.1, self.shape.kept);
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

    /// Writes the samples of a block to its place in the row of MCUs; beyond `last` all
    /// coefficients are zero.
    #[inline]
    pub(super) fn transform(&mut self, block: &[i16; 64], last: usize, (x, y): (usize, usize)) {
        let Some(quantiser) = &self.quantiser else { return };
        let (size, stride) = (self.shape.size, self.shape.plane_stride());
        let start = y * size.height * stride + x * size.width;
        let plane = &mut self.plane[start..];
        if last == 0 || (size.width, size.height) == (1, 1) {
            // Nothing but its mean.
            let mean = rounded(f32::from(block[0]) * quantiser[0] * 0.125 + 128.0) as u8;
            for y in 0..size.height {
                plane[y * stride..][..size.width].fill(mean);
            }
            return;
        }
        transform(block, quantiser, size, plane, stride);
    }

    /// Makes room for the next row of MCUs.
    pub(super) fn advance(&mut self) {
        let start = self.before.len() - self.above.len();
        self.above.copy_from_slice(&self.before[start..]);
        std::mem::swap(&mut self.plane, &mut self.before);
    }
}

/// The difference of a block's mean to the one before.
#[inline]
pub(super) fn dc_difference(table: &Table, bits: &mut Bits<'_>) -> Result<i32, Damage> {
    bits.refill();
    Ok(table.coefficient(bits).ok_or(NO_CODE)?.take(bits))
}
