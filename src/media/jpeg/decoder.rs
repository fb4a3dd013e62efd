//! Decodes a JPEG at full size, or directly at a half, a quarter or an eighth of its size.
//!
//! All coded data must be read, but each block is transformed with only as many frequencies as
//! samples are wanted. Scans that add nothing visible at the wanted size are skipped; damage inside
//! them is not noticed.
//!
//! Rows are passed on as soon as they are decoded, so that only a few are in memory; coefficients
//! are buffered only if the image has several scans. Truncated data are an error: no missing pixels
//! are invented.

use super::bits::{Bits, START_OF_SCAN, segment};
use super::component::{Component, dc_difference};
use super::frame::{Damage, Frame, Plan, damaged};
use super::huffman::{STANDARD, Table};
use super::idct::PLACES;
use super::progressive::{Block, Scan, blocks};
use super::rows::{Colors, Rows, Sink};
use crate::media::error::Error;

const SHORT: Damage = "its data end too early";
const NO_TABLE: Damage = "a table is missing";

/// Decodes the image whose header is `frame`.
pub(super) fn decode(
    (data, frame): (&[u8], &Frame),
    plan: Plan,
    sink: Sink<'_>,
) -> Result<(), Error> {
    let mut decoder = Decoder::new(frame, plan);
    let mut at = 0;
    while let Some((kind, content)) = segment(data, &mut at)? {
        match kind {
            START_OF_SCAN => decoder.scan(content, Bits::new(data, at), sink)?,
            _ => decoder.segment(kind, content).map_err(damaged)?,
        }
    }
    decoder.finish(sink)
}

struct Decoder<'a> {
    frame: &'a Frame,
    plan: Plan,
    components: Vec<Component>,
    quantisers: [Option<[f32; 64]>; 4],
    dc: [Option<Table>; 4],
    ac: [Option<Table>; 4],
    /// Number of MCUs between restart markers; 0 if there are none.
    restart: usize,
    jfif: bool,
    /// The transform in Adobe's APP14 segment: 0 means no colour transform.
    adobe: Option<u8>,
    rows: Option<Rows>,
}

impl<'a> Decoder<'a> {
    fn new(frame: &'a Frame, plan: Plan) -> Self {
        let component = |(at, &part)| Component::new(part, frame.shape(&plan, at));
        Self {
            frame,
            plan,
            components: frame.components.iter().enumerate().map(component).collect(),
            quantisers: [None; 4],
            dc: [const { None }; 4],
            ac: [const { None }; 4],
            restart: 0,
            jfif: false,
            adobe: None,
            rows: None,
        }
    }

    fn segment(&mut self, kind: u8, content: &[u8]) -> Result<(), Damage> {
        match kind {
            0xc4 => self.huffman(content)?,
            0xdb => self.quantiser(content)?,
            0xdd => {
                let [high, low, ..] = content else {
                    return Err(SHORT);
                };
                self.restart = usize::from(u16::from_be_bytes([*high, *low]));
            }
            0xe0 if content.starts_with(b"JFIF\0") => self.jfif = true,
            0xee if content.starts_with(b"Adobe") => self.adobe = content.get(11).copied(),
            _ => {}
        }
        Ok(())
    }

    fn huffman(&mut self, mut content: &[u8]) -> Result<(), Damage> {
        while let [kind, rest @ ..] = content {
            let (counts, symbols) = rest.split_first_chunk::<16>().ok_or(SHORT)?;
            let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
            let (tables, table) = match kind >> 4 {
                0 => (&mut self.dc, Table::for_means(counts, symbols)),
                _ => (&mut self.ac, Table::for_coefficients(counts, symbols)),
            };
            let table = table.ok_or("invalid Huffman table")?;
            *tables
                .get_mut(usize::from(kind & 15))
                .ok_or("invalid table number")? = Some(table);
            content = &symbols[total..];
        }
        Ok(())
    }

    fn quantiser(&mut self, mut content: &[u8]) -> Result<(), Damage> {
        while let [kind, rest @ ..] = content {
            let width = if kind >> 4 == 0 { 1 } else { 2 };
            let values = rest.get(..64 * width).ok_or(SHORT)?;
            let steps = values.chunks_exact(width);
            let steps = steps.map(|v| v.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)));
            let mut table = [0.0; 64];
            for (step, &place) in steps.zip(&PLACES) {
                table[usize::from(place)] = step as f32;
            }
            let place = self.quantisers.get_mut(usize::from(kind & 15));
            *place.ok_or("invalid table number")? = Some(table);
            content = &rest[64 * width..];
        }
        Ok(())
    }

    fn scan(&mut self, content: &[u8], mut bits: Bits<'_>, sink: Sink<'_>) -> Result<(), Error> {
        let scan = self.scan_header(content).map_err(damaged)?;
        if !self.frame.progressive && self.dc.iter().chain(&self.ac).all(Option::is_none) {
            self.huffman(STANDARD).map_err(damaged)?;
        }
        self.begin(&scan).map_err(damaged)?;
        // AC scans that add nothing visible are skipped without reading.
        let wanted = |&(part, ..): &(usize, usize, usize)| self.components[part].wants(&scan);
        if scan.first == 0 {
            self.blocks(&scan, &mut bits, sink)?;
        } else if scan.parts.iter().any(wanted) {
            self.band(&scan, &mut bits)?;
        }
        Ok(())
    }

    fn scan_header(&self, content: &[u8]) -> Result<Scan, Damage> {
        let [count, rest @ ..] = content else {
            return Err(SHORT);
        };
        let (parts, rest) = rest
            .split_at_checked(2 * usize::from(*count))
            .ok_or(SHORT)?;
        let [first, last, bits, ..] = rest else {
            return Err(SHORT);
        };
        let part = |part: &[u8]| {
            let component = self
                .frame
                .components
                .iter()
                .position(|own| own.id == part[0]);
            let component = component.ok_or("invalid scan header")?;
            Ok((
                component,
                usize::from(part[1] >> 4 & 3),
                usize::from(part[1] & 3),
            ))
        };
        let parts = parts
            .chunks_exact(2)
            .map(part)
            .collect::<Result<Vec<_>, Damage>>()?;
        let (first, last) = (usize::from(*first), usize::from(*last));
        let (high, low) = (u32::from(bits >> 4), u32::from(bits & 15));
        let scan = if self.frame.progressive {
            Scan {
                parts,
                first,
                last,
                high,
                low,
            }
        } else {
            Scan {
                parts,
                first: 0,
                last: 63,
                high: 0,
                low: 0,
            }
        };
        let sound = scan.first <= scan.last && scan.last < 64 && scan.low < 14;
        // A DC scan may have several components; an AC scan has one.
        let mixed = scan.first > 0 && scan.parts.len() > 1;
        if scan.parts.is_empty() || !sound || mixed {
            return Err("invalid scan header");
        }
        Ok(scan)
    }

    /// Checks that the scan follows the earlier ones, and stores which bits are still lacking.
    fn begin(&mut self, scan: &Scan) -> Result<(), Damage> {
        if !self.plan.buffered && scan.parts.len() != self.components.len() {
            return Err("it changed while it was read");
        }
        let due = (scan.high > 0).then_some(scan.high);
        for &(part, ..) in &scan.parts {
            let component = &mut self.components[part];
            for lacking in &mut component.lacking[scan.first..=scan.last] {
                if *lacking != due || due.is_some_and(|due| due != scan.low + 1) {
                    return Err("its scans are in the wrong order");
                }
                *lacking = Some(scan.low);
            }
            if component.quantiser.is_none() {
                let table = self
                    .quantisers
                    .get(component.header.quantiser)
                    .copied()
                    .flatten();
                component.quantiser = Some(Box::new(table.ok_or(NO_TABLE)?));
            }
        }
        Ok(())
    }

    /// Decodes the blocks of a sequential or DC scan in file order.
    fn blocks(&mut self, scan: &Scan, bits: &mut Bits<'_>, sink: Sink<'_>) -> Result<(), Error> {
        let single = (scan.parts.len() == 1).then(|| scan.parts[0].0);
        let mcus = self.frame.mcus();
        let (across, down) = single.map_or(mcus, |part| self.components[part].shape.covered);
        let mut mcu = blocks(scan, &self.frame.components);
        let mut until_restart = self.restart;
        self.components
            .iter_mut()
            .for_each(|component| component.prediction = 0);
        for y in 0..down {
            for x in 0..across {
                if self.restart > 0 {
                    if until_restart == 0 {
                        restart(bits).map_err(damaged)?;
                        self.components
                            .iter_mut()
                            .for_each(|component| component.prediction = 0);
                        until_restart = self.restart;
                    }
                    until_restart -= 1;
                }
                if self.frame.progressive {
                    self.means(scan, &mcu, (x, y), bits).map_err(damaged)?;
                } else {
                    self.read(&mut mcu, bits).map_err(damaged)?;
                    self.place(&mcu, (x, y));
                }
            }
            if bits.is_overrun() {
                return Err(damaged(SHORT));
            }
            if !self.plan.buffered {
                self.emit(y, sink);
            }
        }
        Ok(())
    }

    /// Decodes the blocks of an AC scan, which has one component.
    fn band(&mut self, scan: &Scan, bits: &mut Bits<'_>) -> Result<(), Error> {
        let [(part, _, ac), ..] = scan.parts[..] else {
            return Err(damaged(NO_TABLE));
        };
        let (across, down) = self.components[part].shape.covered;
        let mut until_restart = self.restart;
        let mut run = 0;
        for y in 0..down {
            let mut x = 0;
            while x < across {
                if self.restart > 0 && until_restart == 0 {
                    restart(bits).map_err(damaged)?;
                    (until_restart, run) = (self.restart, 0);
                }
                let table = self.ac[ac].as_ref().ok_or_else(|| damaged(NO_TABLE))?;
                let most = if self.restart > 0 {
                    until_restart
                } else {
                    across
                };
                let count = most.min(across - x);
                let stretch = self.components[part].stretch(y, x, count);
                stretch.read(scan, table, bits, &mut run).map_err(damaged)?;
                x += count;
                until_restart = until_restart.saturating_sub(count);
            }
            if bits.is_overrun() {
                return Err(damaged(SHORT));
            }
        }
        Ok(())
    }

    /// Reads an MCU of a sequential scan.
    #[inline]
    fn read(&mut self, mcu: &mut [Block], bits: &mut Bits<'_>) -> Result<(), Damage> {
        for block in mcu {
            let tables = (&self.dc[block.dc], &self.ac[block.ac]);
            let (Some(dc), Some(ac)) = tables else {
                return Err(NO_TABLE);
            };
            block.coefficients = [0; 64];
            let component = &mut self.components[block.component];
            block.last = component.read((dc, ac), bits, &mut block.coefficients)?;
        }
        Ok(())
    }

    /// Transforms an MCU that was read into samples, or buffers its coefficients.
    #[inline]
    fn place(&mut self, mcu: &[Block], at: (usize, usize)) {
        for block in mcu {
            let component = &mut self.components[block.component];
            let place = block.place(at);
            if self.plan.buffered {
                for (to, &from) in component.buffered(place).iter_mut().zip(&PLACES) {
                    *to = block.coefficients[usize::from(from & 63)];
                }
            } else {
                component.transform(&block.coefficients, block.last, (place.0, block.offset.1));
            }
        }
    }

    /// Reads the DC coefficients of an MCU, or one more bit of each.
    fn means(
        &mut self,
        scan: &Scan,
        mcu: &[Block],
        at: (usize, usize),
        bits: &mut Bits<'_>,
    ) -> Result<(), Damage> {
        for block in mcu {
            let component = &mut self.components[block.component];
            if scan.high == 0 {
                let table = self.dc[block.dc].as_ref().ok_or(NO_TABLE)?;
                let step = dc_difference(table, bits)?;
                component.prediction = component.prediction.wrapping_add(step);
                component.buffered(block.place(at))[0] = (component.prediction << scan.low) as i16;
            } else {
                component.buffered(block.place(at))[0] |= i16::from(bits.bit()) << scan.low;
            }
        }
        Ok(())
    }

    /// Checks that all scans were complete, and transforms what is buffered.
    fn finish(mut self, sink: Sink<'_>) -> Result<(), Error> {
        let lacks = |component: &Component| {
            let [mean, others @ ..] = &component.lacking;
            *mean != Some(0) || others.iter().flatten().any(|&bits| bits > 0)
        };
        if self.components.iter().any(lacks) {
            return Err(damaged("its last scans are missing"));
        }
        let (_, mcus) = self.frame.mcus();
        if self.plan.buffered {
            for mcu in 0..mcus {
                self.components
                    .iter_mut()
                    .for_each(|component| component.transform_row(mcu));
                self.emit(mcu, sink);
            }
        }
        if let Some(rows) = &mut self.rows {
            rows.write(&self.components, mcus - 1, sink);
        }
        Ok(())
    }

    /// Called when a row of MCUs is complete. Writes the previous row, whose last rows of samples
    /// are interpolated with the first of this one.
    fn emit(&mut self, mcu: usize, sink: Sink<'_>) {
        let rows = self.rows.get_or_insert_with(|| {
            let colors = Colors::from_markers(&self.components, self.jfif, self.adobe);
            let most = self.frame.most.1 * self.plan.side;
            let size = self.frame.scaled(self.plan.side as u32);
            Rows::new(size, most, colors, self.plan.output)
        });
        if mcu > 0 {
            rows.write(&self.components, mcu - 1, sink);
        }
        self.components.iter_mut().for_each(Component::advance);
    }
}

/// Continues after the restart marker that is due.
fn restart(bits: &mut Bits<'_>) -> Result<(), Damage> {
    if bits.is_overrun() {
        return Err(SHORT);
    }
    let at = bits.marker().ok_or(SHORT)?;
    bits.restart(at).ok_or("a restart marker is missing")
}
