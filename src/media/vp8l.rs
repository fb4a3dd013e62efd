//! Lossless WebP: how much memory its code tables need in the decoder, which does not limit them.
//!
//! A file of four megabytes may ask for 65,536 groups of five tables, more than a gigabyte. They stand
//! before the pixels, so only the small pictures before them are read here (lossless bitstream
//! specification, 4 to 6). Runs when a file is probed; never keeps a pixel.

use super::decoder::Input;

/// Bytes of the decoder's table for codes of up to ten bits, and of its tree for each longer code.
const ENTRY: u64 = 4;
const TABLE_BITS: usize = 10;
const BRANCH: u64 = 32;
/// Bytes of a group itself, in a list that grows by doubling.
const GROUP: u64 = 3 * 5 * 56;

const LONGEST: usize = 15;
const CODE_LENGTHS: usize = 19;
const CODE_LENGTH_ORDER: [usize; CODE_LENGTHS] =
    [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// Symbols of green and lengths, red, blue, alpha, distances.
const ALPHABETS: [usize; 5] = [256 + 24, 256, 256, 256, 40];

/// Bytes of the tables of a stream of so many bytes, which begins here. None where it is no such
/// stream: the decoder says what is wrong with it. `size` is that of an alpha channel, which has no
/// head of its own.
pub(super) fn tables(input: &mut dyn Input, length: u64, size: Option<(u32, u32)>) -> Option<u64> {
    let mut bits = Bits { input, left: length, buffer: [0; 4096], held: 0..0, bit: 0 };
    let (width, height) = match size {
        Some(size) => size,
        None => {
            let signature = bits.number(8)?;
            let size = (bits.number(14)? + 1, bits.number(14)? + 1);
            // Whether it has alpha, and the version.
            let version = bits.number(4)? >> 1;
            (signature == 0x2f && version == 0).then_some(size)?
        }
    };
    let width = transforms(&mut bits, width, height)?;
    let cache = cache(&mut bits)?;
    let mut groups = 1;
    if bits.number(1)? == 1 {
        let shift = bits.number(3)? + 2;
        groups = picture(&mut bits, blocks(width, shift), blocks(height, shift))? + 1;
    }
    let mut bytes = u64::from(groups) * GROUP;
    for _ in 0..groups {
        // The decoder has made those that stand before the end of a stream that was cut off.
        let Some(codes) = group(&mut bits, cache) else { break };
        bytes += codes.iter().map(Codes::bytes).sum::<u64>();
    }
    Some(bytes)
}

fn blocks(side: u32, shift: u32) -> u32 {
    side.div_ceil(1 << shift)
}

/// Reads what is done to the pixels; the width that they are stored in.
fn transforms(bits: &mut Bits<'_>, width: u32, height: u32) -> Option<u32> {
    let (mut stored, mut seen) = (width, [false; 4]);
    while bits.number(1)? == 1 {
        let kind = bits.number(2)? as usize;
        if std::mem::replace(&mut seen[kind], true) {
            return None;
        }
        match kind {
            0 | 1 => {
                let shift = bits.number(3)? + 2;
                picture(bits, blocks(stored, shift), blocks(height, shift))?;
            }
            3 => {
                let colors = bits.number(8)? + 1;
                picture(bits, colors, 1)?;
                // Pixels of few colours share a byte.
                let shift = match colors {
                    0..=2 => 3,
                    3..=4 => 2,
                    5..=16 => 1,
                    _ => 0,
                };
                stored = blocks(stored, shift);
            }
            _ => {}
        }
    }
    Some(stored)
}

/// Symbols that the cache of colours adds to green's.
fn cache(bits: &mut Bits<'_>) -> Option<usize> {
    match bits.number(1)? {
        0 => Some(0),
        _ => Some(bits.number(4)?).filter(|bits| (1..=11).contains(bits)).map(|bits| 1 << bits),
    }
}

/// Reads a small picture; the largest of its pixels as the number of a group. What is copied has been
/// there before.
fn picture(bits: &mut Bits<'_>, width: u32, height: u32) -> Option<u32> {
    let cache = cache(bits)?;
    let [green, red, blue, alpha, distance] = group(bits, cache)?;
    let (mut left, mut largest) = (u64::from(width) * u64::from(height), 0);
    while left > 0 {
        let symbol = green.read(bits)?;
        let count = match symbol {
            0..256 => {
                largest = largest.max(red.read(bits)? << 8 | symbol);
                blue.read(bits)?;
                alpha.read(bits)?;
                1
            }
            256..280 => {
                let count = span(bits, symbol - 256)?;
                let distance = distance.read(bits)?;
                span(bits, distance)?;
                count
            }
            _ => 1,
        };
        left = left.saturating_sub(count);
    }
    Some(largest)
}

/// A length or a distance.
fn span(bits: &mut Bits<'_>, symbol: u32) -> Option<u64> {
    if symbol < 4 {
        return Some(u64::from(symbol) + 1);
    }
    let extra = (symbol - 2) >> 1;
    Some(u64::from(((2 + (symbol & 1)) << extra) + bits.number(extra)?) + 1)
}

fn group(bits: &mut Bits<'_>, cache: usize) -> Option<[Codes; 5]> {
    let mut codes = [const { Codes::none() }; 5];
    for (at, (codes, symbols)) in codes.iter_mut().zip(ALPHABETS).enumerate() {
        *codes = Codes::parse(bits, if at == 0 { symbols + cache } else { symbols })?;
    }
    Some(codes)
}

/// Canonical prefix codes.
struct Codes {
    /// How many have each length.
    counts: [u32; LONGEST + 1],
    /// Sorted by length, then in their order.
    symbols: Vec<u32>,
}

impl Codes {
    const fn none() -> Self {
        Self { counts: [0; LONGEST + 1], symbols: Vec::new() }
    }

    fn parse(bits: &mut Bits<'_>, symbols: usize) -> Option<Self> {
        if bits.number(1)? == 1 {
            let two = bits.number(1)? == 1;
            let width = if bits.number(1)? == 1 { 8 } else { 1 };
            let mut named = vec![bits.number(width)?];
            if two {
                named.push(bits.number(8)?);
            }
            if named.iter().any(|&symbol| symbol as usize >= symbols) {
                return None;
            }
            let mut counts = [0; LONGEST + 1];
            counts[1] = named.len() as u32;
            return Some(Self { counts, symbols: named });
        }
        let mut lengths = [0; CODE_LENGTHS];
        let count = 4 + bits.number(4)? as usize;
        for &at in &CODE_LENGTH_ORDER[..count] {
            lengths[at] = bits.number(3)? as u8;
        }
        let lengths = Self::lengths(bits, &Self::of(&lengths)?, symbols)?;
        Self::of(&lengths)
    }

    fn lengths(bits: &mut Bits<'_>, codes: &Self, symbols: usize) -> Option<Vec<u8>> {
        let mut left = symbols;
        if bits.number(1)? == 1 {
            let width = 2 + 2 * bits.number(3)?;
            left = 2 + bits.number(width)? as usize;
        }
        let (mut lengths, mut last) = (Vec::with_capacity(symbols), 8);
        while lengths.len() < symbols && left > 0 {
            left -= 1;
            let (length, count) = match codes.read(bits)? {
                length @ 0..16 => (length as u8, 1),
                16 => (last, 3 + bits.number(2)?),
                17 => (0, 3 + bits.number(3)?),
                _ => (0, 11 + bits.number(7)?),
            };
            if length != 0 {
                last = length;
            }
            lengths.extend(std::iter::repeat_n(length, count as usize));
        }
        (lengths.len() <= symbols).then_some(lengths)
    }

    fn of(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0; LONGEST + 1];
        let mut symbols: Vec<u32> = (0..lengths.len() as u32).collect();
        symbols.retain(|&symbol| lengths[symbol as usize] > 0);
        symbols.sort_by_key(|&symbol| lengths[symbol as usize]);
        for &symbol in &symbols {
            counts[usize::from(lengths[symbol as usize])] += 1;
        }
        (!symbols.is_empty()).then_some(Self { counts, symbols })
    }

    /// A single one takes no bits.
    fn read(&self, bits: &mut Bits<'_>) -> Option<u32> {
        if let [only] = self.symbols[..] {
            return Some(only);
        }
        let (mut code, mut first, mut index) = (0, 0, 0);
        for &count in &self.counts[1..] {
            code |= bits.number(1)?;
            if code < first + count {
                return self.symbols.get((index + code - first) as usize).copied();
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }

    /// The decoder's own value.
    fn bytes(&self) -> u64 {
        if self.symbols.len() < 2 {
            return 0;
        }
        let longest = self.counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        let long: u32 = self.counts[TABLE_BITS + 1..].iter().sum();
        (ENTRY << longest.min(TABLE_BITS)) + BRANCH * u64::from(long)
    }
}

/// Bits from the lowest of each byte on.
struct Bits<'a> {
    input: &'a mut dyn Input,
    /// Bytes that were not read yet.
    left: u64,
    buffer: [u8; 4096],
    held: std::ops::Range<usize>,
    /// The next bit of the first byte that is held.
    bit: u32,
}

impl Bits<'_> {
    /// A number of up to 24 bits.
    fn number(&mut self, count: u32) -> Option<u32> {
        let mut number = 0;
        for at in 0..count {
            if self.held.is_empty() {
                let most = self.left.min(self.buffer.len() as u64) as usize;
                let read =
                    self.input.read(&mut self.buffer[..most]).ok().filter(|&read| read > 0)?;
                self.left -= read as u64;
                self.held = 0..read;
            }
            number |= u32::from(self.buffer[self.held.start] >> self.bit & 1) << at;
            self.bit = (self.bit + 1) % 8;
            self.held.start += usize::from(self.bit == 0);
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::{Error, probe};
    use std::io::Cursor;

    #[derive(Default)]
    struct Writer {
        bytes: Vec<u8>,
        bit: u32,
    }

    impl Writer {
        fn number(&mut self, number: u32, count: u32) {
            for at in 0..count {
                if self.bit == 0 {
                    self.bytes.push(0);
                }
                *self.bytes.last_mut().unwrap() |= ((number >> at & 1) as u8) << self.bit;
                self.bit = (self.bit + 1) % 8;
            }
        }

        /// A code of one symbol.
        fn single(&mut self, symbol: u32) {
            self.number(0b101, 3);
            self.number(symbol, 8);
        }

        /// Eleven symbols of 1, 2 and so on to 10 and once more 10 bits: the whole table.
        fn large(&mut self) {
            self.number(0, 1);
            self.number(10, 4);
            for at in &CODE_LENGTH_ORDER[..14] {
                self.number(if (1..=10).contains(at) { 3 + u32::from(*at > 6) } else { 0 }, 3);
            }
            self.number(0b11, 4);
            self.number(9, 4);
            for length in (1..=10).chain([10]) {
                // Codes begin with their highest bit.
                let (code, bits): (u32, u32) =
                    if length <= 6 { (length - 1, 3) } else { (length - 7 + 12, 4) };
                self.number(code.reverse_bits() >> (32 - bits), bits);
            }
        }
    }

    /// A file of 64 × 64 pixels with so many groups of codes.
    fn file(groups: u32) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.number(0x2f, 8);
        writer.number(63 | 63 << 14, 28);
        // No alpha, version, transforms or cache; groups by a picture of 16 × 16.
        writer.number(0, 4 + 1 + 1);
        writer.number(1, 1 + 3);
        writer.number(0, 1);
        for symbol in [(groups - 1) & 0xff, (groups - 1) >> 8, 0, 0, 0] {
            writer.single(symbol);
        }
        (0..groups * 5).for_each(|_| writer.large());
        writer.bytes.resize(writer.bytes.len().next_multiple_of(2), 0);
        let length = writer.bytes.len() as u32;
        let head = [&b"RIFF"[..], &(length + 12).to_le_bytes(), b"WEBPVP8L", &length.to_le_bytes()];
        [&head.concat()[..], &writer.bytes].concat()
    }

    #[test]
    fn tables_are_counted_before_they_are_made() {
        let check = |groups: u32, expected: u64| {
            let bytes = file(groups);
            let length = bytes.len() as u64 - 20;
            let mut input = Cursor::new(&bytes[20..]);
            assert_eq!(tables(&mut input, length, None), Some(expected), "{groups}");
        };
        check(1, GROUP + 5 * 4096);
        check(300, 300 * (GROUP + 5 * 4096));
        // A truncated stream has allocated all of them by then.
        let cut = &file(300)[20..200];
        let counted = tables(&mut Cursor::new(cut), cut.len() as u64, None);
        assert!(counted.is_some_and(|bytes| bytes >= 300 * GROUP), "{counted:?}");
        assert!(probe(&mut Cursor::new(file(300))).is_ok());
        let refused = probe(&mut Cursor::new(file(65_536)));
        assert!(matches!(refused, Err(Error::NeedsTranscoder { .. })), "{refused:?}");
    }

    #[test]
    fn files_of_libwebp_are_read_through() {
        for colors in [2, 16, 256, 1 << 20] {
            let pixel = |at: u32| {
                let value = at.wrapping_mul(2_654_435_761) % colors * (0xff_ffff / colors);
                [value as u8, (value >> 8) as u8, (value >> 16) as u8]
            };
            let pixels: Vec<u8> = (0..320 * 200).flat_map(pixel).collect();
            let coded = ::webp::Encoder::from_rgb(&pixels, 320, 200).encode_lossless();
            let length = coded.len() as u64 - 20;
            let counted = tables(&mut Cursor::new(&coded[20..]), length, None).unwrap();
            assert!((GROUP..1 << 20).contains(&counted), "{colors}: {counted}");
        }
    }
}
