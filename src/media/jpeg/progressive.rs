//! The scans of a progressive JPEG over the frequencies of a block.

use super::bits::Bits;
use super::damage::{Damage, NO_CODE};
use super::huffman::Table;

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

/// The first look at a band of frequencies. `run` counts blocks that have none of it.
pub(super) fn first_pass(
    block: &mut [i16],
    scan: &Scan,
    table: &Table,
    bits: &mut Bits<'_>,
    run: &mut u32,
) -> Result<(), Damage> {
    if *run > 0 {
        *run -= 1;
        return Ok(());
    }
    let mut at = scan.first;
    while at <= scan.last {
        bits.refill();
        let symbol = table.symbol(bits).ok_or(NO_CODE)?;
        let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 && zeros < 15 {
            *run = (1 << zeros) + bits.number(zeros as u32) as u32 - 1;
            return Ok(());
        }
        at += zeros;
        if size > 0 {
            let value = (bits.value(size) << scan.low) as i16;
            *block.get_mut(at).ok_or(NO_CODE)? = value;
        }
        at += 1;
    }
    Ok(())
}

/// One more bit for the coefficients of a band that are known, and new ones between them.
pub(super) fn refine(
    block: &mut [i16],
    scan: &Scan,
    table: &Table,
    bits: &mut Bits<'_>,
    run: &mut u32,
) -> Result<(), Damage> {
    let step = 1_i16 << scan.low;
    let known = |value: &mut i16, bits: &mut Bits<'_>| {
        if bits.bit() && *value & step == 0 {
            *value = value.wrapping_add(if *value > 0 { step } else { -step });
        }
    };
    let mut band = block.get_mut(scan.first..=scan.last).ok_or(NO_CODE)?.iter_mut();
    while *run == 0 && band.len() > 0 {
        bits.refill();
        let symbol = table.symbol(bits).ok_or(NO_CODE)?;
        let (mut zeros, size) = (symbol >> 4, symbol & 15);
        if size == 0 && zeros < 15 {
            *run = (1 << zeros) + bits.number(u32::from(zeros)) as u32;
            break;
        }
        let new = match size {
            0 => 0,
            _ if bits.bit() => step,
            _ => -step,
        };
        for value in band.by_ref() {
            if *value != 0 {
                known(value, bits);
            } else if zeros == 0 {
                *value = new;
                break;
            } else {
                zeros -= 1;
            }
        }
    }
    if *run > 0 {
        band.filter(|value| **value != 0).for_each(|value| known(value, bits));
        *run -= 1;
    }
    Ok(())
}
