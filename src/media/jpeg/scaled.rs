//! A JPEG at a half, a quarter or an eighth of its size, without ever making the whole.
//!
//! Coded data must be read to the last bit, but of each block only as many frequencies are
//! transformed as there are samples wanted. Three times as fast as decoding all of it, and the
//! memory is that of the result; only progressive pictures hold their coefficients, and at an
//! eighth of the size just the means of their blocks. Data that end before the picture does are
//! an error: nothing is made up.

use super::bits::{Bits, marker};
use super::component::{Component, Plan, mean};
use super::huffman::Table;
use super::progressive::{Scan, first_pass, refine};

/// What is wrong with the file.
pub(super) type Damage = &'static str;

const SHORT: Damage = "its data end too early";
pub(super) const NO_CODE: Damage = "its data are no code";

/// RGB, and its size.
#[derive(Debug)]
pub(super) struct Scaled {
    pub(super) size: (u32, u32),
    pub(super) pixels: Vec<u8>,
}

/// Decodes with `side` samples (1, 2 or 4) to a block's side. With `means`, for progressive pictures
/// at `side` 1, the means of blocks are all that is held.
pub(super) fn decode(data: &[u8], side: usize, means: bool) -> Result<Scaled, Damage> {
    let mut decoder =
        Decoder { plan: Plan { side, means, ..Plan::default() }, ..Decoder::default() };
    let mut at = 2;
    loop {
        at = marker(data, at).ok_or(SHORT)?;
        let kind = data[at + 1];
        at += 2;
        if kind == 0xd9 {
            return decoder.finish();
        }
        if matches!(kind, 0x01 | 0xd0..=0xd8) {
            continue;
        }
        let length = data.get(at..at + 2).ok_or(SHORT)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let content = data.get(at + 2..at + length).ok_or(SHORT)?;
        at += length;
        if kind == 0xda {
            at = decoder.scan(content, data, at)?;
        } else {
            decoder.segment(kind, content)?;
        }
    }
}

#[derive(Default)]
struct Decoder {
    plan: Plan,
    components: Vec<Component>,
    quantisers: [Option<[f32; 64]>; 4],
    dc: [Option<Table>; 4],
    ac: [Option<Table>; 4],
    /// Units from one restart to the next, 0 for none.
    restart: usize,
    /// What Adobe's programs note: 0 for no transform of colours.
    adobe: Option<u8>,
}

impl Decoder {
    fn segment(&mut self, kind: u8, content: &[u8]) -> Result<(), Damage> {
        match kind {
            0xc0..=0xc2 => self.frame(kind, content),
            0xc4 => self.huffman(content),
            0xdb => self.quantiser(content),
            0xdd => {
                let [high, low, ..] = content else { return Err(SHORT) };
                self.restart = usize::from(u16::from_be_bytes([*high, *low]));
                Ok(())
            }
            0xee if content.starts_with(b"Adobe") => {
                self.adobe = content.get(11).copied();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn frame(&mut self, kind: u8, content: &[u8]) -> Result<(), Damage> {
        let [8, h1, h2, w1, w2, _count, components @ ..] = content else { return Err(SHORT) };
        if !self.components.is_empty() {
            return Err("it has two frames");
        }
        let side = |high, low| usize::from(u16::from_be_bytes([high, low]));
        let size = (side(*w1, *w2), side(*h1, *h2));
        let parts: Vec<_> = components.chunks_exact(3).collect();
        let factors = |part: &[u8]| (usize::from(part[1] >> 4), usize::from(part[1] & 15));
        let most = parts
            .iter()
            .map(|part| factors(part))
            .fold((1, 1), |m, f| (m.0.max(f.0), m.1.max(f.1)));
        let units = (size.0.div_ceil(8 * most.0), size.1.div_ceil(8 * most.1));
        self.plan = Plan { progressive: kind == 0xc2, size, most, units, ..self.plan };
        for part in &parts {
            let quantiser = usize::from(part[2]);
            self.components.push(Component::new(&self.plan, part[0], factors(part), quantiser)?);
        }
        Ok(())
    }

    fn huffman(&mut self, mut content: &[u8]) -> Result<(), Damage> {
        while let [kind, rest @ ..] = content {
            let (counts, symbols) = rest.split_first_chunk::<16>().ok_or(SHORT)?;
            let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
            let (tables, table) = match kind >> 4 {
                0 => (&mut self.dc, Table::new(counts, symbols)),
                _ => (&mut self.ac, Table::of_coefficients(counts, symbols)),
            };
            let table = table.ok_or("a table is no code")?;
            *tables.get_mut(usize::from(kind & 15)).ok_or("a table has no place")? = Some(table);
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
            table.iter_mut().zip(steps).for_each(|(entry, step)| *entry = step as f32);
            let place = self.quantisers.get_mut(usize::from(kind & 15));
            *place.ok_or("a table has no place")? = Some(table);
            content = &rest[64 * width..];
        }
        Ok(())
    }

    /// Reads a pass whose data begin at `at`; returns where the next marker is looked for.
    fn scan(&mut self, content: &[u8], data: &[u8], at: usize) -> Result<usize, Damage> {
        let scan = self.scan_header(content)?;
        let mut bits = Bits::new(data, at);
        // Where only means are held, passes without them are skipped unread.
        if scan.first == 0 || !self.plan.means {
            self.blocks(&scan, &mut bits)?;
            if bits.is_overrun() {
                return Err(SHORT);
            }
        }
        let mut next = bits.marker().ok_or(SHORT)?;
        // Restarts that belong to what was skipped.
        while matches!(data[next + 1], 0xd0..=0xd7) {
            next = marker(data, next + 2).ok_or(SHORT)?;
        }
        Ok(next)
    }

    fn scan_header(&self, content: &[u8]) -> Result<Scan, Damage> {
        let [count, rest @ ..] = content else { return Err(SHORT) };
        let (parts, rest) = rest.split_at_checked(2 * usize::from(*count)).ok_or(SHORT)?;
        let [first, last, bits, ..] = rest else { return Err(SHORT) };
        let part = |part: &[u8]| {
            let component = self.components.iter().position(|component| component.id == part[0]);
            let component = component.ok_or("a pass is of no component")?;
            Ok((component, usize::from(part[1] >> 4 & 3), usize::from(part[1] & 3)))
        };
        let parts = parts.chunks_exact(2).map(part).collect::<Result<Vec<_>, Damage>>()?;
        let (first, last) = (usize::from(*first), usize::from(*last));
        if parts.is_empty() || first > last.min(63) || (first > 0 && parts.len() > 1) {
            return Err("a pass is of nothing");
        }
        let (high, low) = (u32::from(bits >> 4), u32::from(bits & 15));
        Ok(Scan { parts, first, last: last.min(63), high, low: low.min(13) })
    }

    /// Goes through the blocks of a pass in the order of the file.
    fn blocks(&mut self, scan: &Scan, bits: &mut Bits<'_>) -> Result<(), Damage> {
        let single = (scan.parts.len() == 1).then(|| scan.parts[0].0);
        let (across, down) = single.map_or(self.plan.units, |part| self.components[part].covered);
        let (mut until_restart, mut run) = (self.restart, 0);
        self.components.iter_mut().for_each(|component| component.prediction = 0);
        for y in 0..down {
            for x in 0..across {
                if self.restart > 0 {
                    if until_restart == 0 {
                        self.restart(bits)?;
                        (until_restart, run) = (self.restart, 0);
                    }
                    until_restart -= 1;
                }
                for &part in &scan.parts {
                    let (w, h) =
                        if single.is_some() { (1, 1) } else { self.components[part.0].blocks };
                    for at in 0..w * h {
                        self.block(scan, part, (x * w + at % w, y * h + at / w), bits, &mut run)?;
                    }
                }
            }
            if bits.is_overrun() {
                return Err(SHORT);
            }
        }
        Ok(())
    }

    fn restart(&mut self, bits: &mut Bits<'_>) -> Result<(), Damage> {
        if bits.is_overrun() {
            return Err(SHORT);
        }
        let at = bits.marker().ok_or(SHORT)?;
        bits.restart(at).ok_or("a restart is missing")?;
        self.components.iter_mut().for_each(|component| component.prediction = 0);
        Ok(())
    }

    #[inline]
    fn block(
        &mut self,
        scan: &Scan,
        (part, dc, ac): (usize, usize, usize),
        place: (usize, usize),
        bits: &mut Bits<'_>,
        run: &mut u32,
    ) -> Result<(), Damage> {
        const NO_TABLE: Damage = "a table is missing";
        let component = &mut self.components[part];
        if !self.plan.progressive {
            let dc = self.dc[dc].as_ref().ok_or(NO_TABLE)?;
            let ac = self.ac[ac].as_ref().ok_or(NO_TABLE)?;
            let quantiser = self.quantisers.get(component.quantiser).and_then(Option::as_ref);
            return component.plain(dc, ac, quantiser.ok_or(NO_TABLE)?, place, bits);
        }
        let start = (place.1 * component.stride + place.0) * component.kept;
        let (prediction, kept) = (&mut component.prediction, component.kept);
        let block = &mut component.coefficients[start..start + kept];
        match (scan.first, scan.high) {
            (0, 0) => {
                let step = mean(self.dc[dc].as_ref().ok_or(NO_TABLE)?, bits)?;
                *prediction = prediction.wrapping_add(step);
                block[0] = (*prediction << scan.low) as i16;
            }
            (0, _) => block[0] |= i16::from(bits.bit()) << scan.low,
            (_, 0) => first_pass(block, scan, self.ac[ac].as_ref().ok_or(NO_TABLE)?, bits, run)?,
            _ => refine(block, scan, self.ac[ac].as_ref().ok_or(NO_TABLE)?, bits, run)?,
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Scaled, Damage> {
        for component in &mut self.components {
            if component.kept > 0 {
                let quantiser = self.quantisers.get(component.quantiser).and_then(Option::as_ref);
                component.transform_all(quantiser.ok_or("a table is missing")?);
            }
        }
        let (width, height) = (
            (self.plan.size.0 * self.plan.side).div_ceil(8),
            (self.plan.size.1 * self.plan.side).div_ceil(8),
        );
        let mut pixels = Vec::with_capacity(width * height * 3);
        let [first, others @ ..] = &self.components[..] else { return Err("it holds no picture") };
        let stride = first.plane_stride();
        let plain = self.adobe == Some(0) || (self.adobe.is_none() && self.ids() == *b"RGB");
        for y in 0..height {
            let row = |component: &Component| {
                y * stride..y * stride + component.plane_stride().min(width)
            };
            let light = &first.plane[row(first)];
            match others {
                [] => pixels.extend(light.iter().flat_map(|&value| [value; 3])),
                [second, third, ..] => {
                    let (second, third) = (&second.plane[row(second)], &third.plane[row(third)]);
                    let samples = light.iter().zip(second).zip(third);
                    let samples = samples.map(|((&a, &b), &c)| [a, b, c]);
                    if plain {
                        pixels.extend(samples.flatten());
                    } else {
                        pixels.extend(samples.flat_map(color));
                    }
                }
                [_] => return Err("it has two components"),
            }
        }
        Ok(Scaled { size: (width as u32, height as u32), pixels })
    }

    fn ids(&self) -> [u8; 3] {
        let id = |at: usize| self.components.get(at).map_or(0, |component| component.id);
        [id(0), id(1), id(2)]
    }
}

/// BT.601 in 16.16 fixed point, full range.
#[inline(always)]
fn color([y, cb, cr]: [u8; 3]) -> [u8; 3] {
    let y = (i32::from(y) << 16) + (1 << 15);
    let (cb, cr) = (i32::from(cb) - 128, i32::from(cr) - 128);
    [y + 91_881 * cr, y - 22_554 * cb - 46_802 * cr, y + 116_130 * cb]
        .map(|value| (value >> 16).clamp(0, 255) as u8)
}
