//! Decodes the AC scans of a progressive JPEG.
//!
//! The nonzero coefficients of each block are tracked in a bit set: later scans depend on their
//! positions, even of coefficients whose values are not needed. Bits that refine those are skipped
//! at once.

use super::bits::Bits;
use super::frame::{ComponentHeader, Damage, NO_CODE};
use super::huffman::{END, Table};

/// A scan: one pass over the data.
pub(super) struct Scan {
    /// Component, DC table and AC table of each part.
    pub(super) parts: Vec<(usize, usize, usize)>,
    pub(super) first: usize,
    pub(super) last: usize,
    /// Bit positions of the previous scan and of this one (Ah and Al in the standard).
    pub(super) high: u32,
    pub(super) low: u32,
}

/// Consecutive blocks of a component, without a restart marker between them.
pub(super) struct Stretch<'a> {
    /// The wanted coefficients of each block, in zigzag order.
    pub(super) coefficients: &'a mut [i16],
    /// A bit set of the nonzero coefficients of each block.
    pub(super) known: &'a mut [u64],
}

impl Stretch<'_> {
    /// Reads the blocks' part of an AC scan. `run` counts the following blocks that are empty in
    /// this scan.
    pub(super) fn read(
        self,
        scan: &Scan,
        table: &Table,
        bits: &mut Bits<'_>,
        run: &mut u32,
    ) -> Result<(), Damage> {
        // A local copy stays in registers.
        let mut local = *bits;
        let mut at = 0;
        let count = self.known.len();
        let kept = self.coefficients.len() / count.max(1);
        while at < count {
            if scan.high == 0 && *run > 0 {
                let passed = (count - at).min(*run as usize);
                (at, *run) = (at + passed, *run - passed as u32);
                continue;
            }
            let block = &mut self.coefficients[at * kept..(at + 1) * kept];
            let pass = if scan.high == 0 { first_pass } else { refine };
            pass((block, &mut self.known[at]), scan, table, &mut local, run)?;
            at += 1;
        }
        *bits = local;
        Ok(())
    }
}

/// Reads the first scan of a band of frequencies.
#[inline(always)]
fn first_pass(
    (block, known): (&mut [i16], &mut u64),
    scan: &Scan,
    table: &Table,
    bits: &mut Bits<'_>,
    run: &mut u32,
) -> Result<(), Damage> {
    let mut at = scan.first;
    while at <= scan.last {
        bits.refill();
        let entry = table.coefficient(bits).ok_or(NO_CODE)?;
        if entry.zeros() == END {
            let zeros = u32::from(table.symbol(bits).ok_or(NO_CODE)? >> 4);
            *run = (1 << zeros) + bits.number(zeros) as u32 - 1;
            return Ok(());
        }
        at += entry.zeros();
        let value = entry.take(bits);
        if value != 0 {
            if at > 63 {
                return Err(NO_CODE);
            }
            *known |= 1 << at;
            if let Some(kept) = block.get_mut(at) {
                *kept = (value << scan.low) as i16;
            }
        }
        at += 1;
    }
    Ok(())
}

/// Reads one more bit of each nonzero coefficient in the band, and new coefficients between them.
#[inline(always)]
fn refine(
    (block, known): (&mut [i16], &mut u64),
    scan: &Scan,
    table: &Table,
    bits: &mut Bits<'_>,
    run: &mut u32,
) -> Result<(), Damage> {
    let step = 1_i16 << scan.low;
    let from = |at: usize| u64::MAX.checked_shl(at as u32).unwrap_or(0);
    let band = !from(scan.last + 1);
    let mut at = scan.first;
    while *run == 0 && at <= scan.last {
        bits.refill();
        let symbol = table.symbol(bits).ok_or(NO_CODE)?;
        let (zeros, size) = (symbol >> 4, symbol & 15);
        if size == 0 && zeros < 15 {
            *run = (1 << zeros) + bits.number(u32::from(zeros)) as u32;
            break;
        }
        let new = match size {
            0 => 0,
            _ if bits.bit() => step,
            _ => -step,
        };
        // The new coefficient comes after `zeros` zero coefficients; nonzero ones before it are
        // refined first.
        let free = (0..zeros).fold(!*known & band & from(at), |free, _| {
            free & free.wrapping_sub(1)
        });
        let place = (free.trailing_zeros() as usize).min(scan.last + 1);
        correct(block, *known & from(at) & !from(place), step, bits);
        if new != 0 && place <= scan.last {
            *known |= 1 << place;
            if let Some(kept) = block.get_mut(place) {
                *kept = new;
            }
        }
        at = place + 1;
    }
    if *run > 0 {
        correct(block, *known & band & from(at), step, bits);
        *run -= 1;
    }
    Ok(())
}

/// Refines the coefficients in `set` by one bit; those that are not kept have the highest indexes.
#[inline(always)]
fn correct(block: &mut [i16], set: u64, step: i16, bits: &mut Bits<'_>) {
    let mut left = set;
    while let Some(value) = block.get_mut(left.trailing_zeros() as usize) {
        left &= left - 1;
        if bits.bit() && *value & step == 0 {
            *value = value.wrapping_add(if *value > 0 { step } else { -step });
        }
    }
    let mut others = left.count_ones();
    while others > 0 {
        bits.refill();
        let passed = others.min(32);
        bits.skip(passed);
        others -= passed;
    }
}

/// A block of an MCU and its coefficients.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Block {
    pub(super) coefficients: [i16; 64],
    /// The index of the last nonzero coefficient among those wanted.
    pub(super) last: usize,
    pub(super) component: usize,
    /// The numbers of its Huffman tables.
    pub(super) dc: usize,
    pub(super) ac: usize,
    /// The position within the MCU.
    pub(super) offset: (usize, usize),
    /// Number of blocks of its component in an MCU, horizontally and vertically.
    of: (usize, usize),
}

impl Block {
    /// Returns the position of the block in its component, in blocks, for the MCU at this position.
    #[inline(always)]
    pub(super) fn place(&self, (x, y): (usize, usize)) -> (usize, usize) {
        (x * self.of.0 + self.offset.0, y * self.of.1 + self.offset.1)
    }
}

/// Returns the blocks of each MCU of a scan, in file order; a scan of one component has a single
/// block.
pub(super) fn blocks(scan: &Scan, headers: &[ComponentHeader]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for &(component, dc, ac) in &scan.parts {
        let of = if scan.parts.len() == 1 {
            (1, 1)
        } else {
            headers[component].blocks
        };
        for offset in (0..of.1).flat_map(|down| (0..of.0).map(move |across| (across, down))) {
            blocks.push(Block {
                coefficients: [0; 64],
                last: 0,
                component,
                dc,
                ac,
                offset,
                of,
            });
        }
    }
    blocks
}
