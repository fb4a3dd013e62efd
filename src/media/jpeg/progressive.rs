//! The scans of a progressive JPEG over the frequencies of a block.
//!
//! Which coefficients of a block are not zero is on record as bits: where they are is what a later scan
//! needs to know of those whose values nobody asks for, and what it says of them is passed over at once.

use super::bits::Bits;
use super::frame::{ComponentHeader, Damage, NO_CODE};
use super::huffman::{END, Table};

/// One pass over the data.
pub(super) struct Scan {
    /// Component, DC table, AC table.
    pub(super) parts: Vec<(usize, usize, usize)>,
    pub(super) first: usize,
    pub(super) last: usize,
    /// Bits refined before, and now.
    pub(super) high: u32,
    pub(super) low: u32,
}

/// Blocks of a component that follow each other, without a restart between them.
pub(super) struct Stretch<'a> {
    /// As many of each block as are wanted, in the coded order.
    pub(super) coefficients: &'a mut [i16],
    /// The coefficients of each block that are not zero, as bits.
    pub(super) known: &'a mut [u64],
}

impl Stretch<'_> {
    /// Reads what a scan over frequencies has of them. `run` counts blocks that have none of it.
    pub(super) fn read(
        self,
        scan: &Scan,
        table: &Table,
        bits: &mut Bits<'_>,
        run: &mut u32,
    ) -> Result<(), Damage> {
        // A copy of its own, which stays in registers.
        let mut local = *bits;
        let (mut at, count) = (0, self.known.len());
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

/// The first look at a band of frequencies.
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

/// One more bit for the coefficients of a band that are known, and new ones between them.
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
        // Behind so many zeros; what is known between them gets its bit first.
        let free =
            (0..zeros).fold(!*known & band & from(at), |free, _| free & free.wrapping_sub(1));
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

/// One more bit for each coefficient of a set; those that are not kept are the last.
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

/// A block, and what was read of it last.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Block {
    pub(super) coefficients: [i16; 64],
    /// The place of the last coefficient that is not zero and wanted.
    pub(super) last: usize,
    pub(super) component: usize,
    /// The numbers of its tables.
    pub(super) dc: usize,
    pub(super) ac: usize,
    /// Within the MCU, across and down.
    pub(super) offset: (usize, usize),
    /// Blocks of its component in an MCU, across and down.
    of: (usize, usize),
}

impl Block {
    /// The block's place in its component, in blocks, for the MCU that has this place.
    #[inline(always)]
    pub(super) fn place(&self, (x, y): (usize, usize)) -> (usize, usize) {
        (x * self.of.0 + self.offset.0, y * self.of.1 + self.offset.1)
    }
}

/// The blocks of each MCU of a scan, in the order of the file; a scan of one component has one.
pub(super) fn blocks(scan: &Scan, headers: &[ComponentHeader]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for &(component, dc, ac) in &scan.parts {
        let of = if scan.parts.len() == 1 { (1, 1) } else { headers[component].blocks };
        for offset in (0..of.1).flat_map(|down| (0..of.0).map(move |across| (across, down))) {
            blocks.push(Block { coefficients: [0; 64], last: 0, component, dc, ac, offset, of });
        }
    }
    blocks
}
