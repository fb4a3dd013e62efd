//! Huffman tables with fast lookup.

use super::bits::{Bits, extend};

/// Codes of up to this many bits are found with one lookup.
const FAST: u32 = 10;
/// Number of bits of the lookup that skips coefficients.
const FAR: u32 = 12;

/// A coefficient with the zeros before it, packed into a word: total bits of code and value (8),
/// zeros (8), bits of the value still to be read (4), otherwise the value itself (12, signed). The
/// word is 0 if the code is longer than [`FAST`].
#[derive(Clone, Copy, Default)]
pub(super) struct Entry(u32);

/// A number of zeros beyond any block, meaning that the rest of the block is zero.
pub(super) const END: usize = 100;

/// The standard tables (K.3 to K.6) in the form of a segment; Motion JPEGs omit them.
pub(super) const STANDARD: &[u8] = b"\
    \x00\x00\x01\x05\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\
    \x07\x08\x09\x0a\x0b\x01\x00\x03\x01\x01\x01\x01\x01\x01\x01\x01\x01\x00\x00\x00\x00\x00\x00\x01\
    \x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x10\x00\x02\x01\x03\x03\x02\x04\x03\x05\x05\x04\x04\x00\
    \x00\x01\x7d\x01\x02\x03\x00\x04\x11\x05\x12\x21\x31\x41\x06\x13\x51\x61\x07\x22\x71\x14\x32\x81\
    \x91\xa1\x08\x23\x42\xb1\xc1\x15\x52\xd1\xf0\x24\x33\x62\x72\x82\x09\x0a\x16\x17\x18\x19\x1a\x25\
    \x26\x27\x28\x29\x2a\x34\x35\x36\x37\x38\x39\x3a\x43\x44\x45\x46\x47\x48\x49\x4a\x53\x54\x55\x56\
    \x57\x58\x59\x5a\x63\x64\x65\x66\x67\x68\x69\x6a\x73\x74\x75\x76\x77\x78\x79\x7a\x83\x84\x85\x86\
    \x87\x88\x89\x8a\x92\x93\x94\x95\x96\x97\x98\x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xb2\xb3\
    \xb4\xb5\xb6\xb7\xb8\xb9\xba\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\
    \xda\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa\x11\x00\x02\
    \x01\x02\x04\x04\x03\x04\x07\x05\x04\x04\x00\x01\x02\x77\x00\x01\x02\x03\x11\x04\x05\x21\x31\x06\
    \x12\x41\x51\x07\x61\x71\x13\x22\x32\x81\x08\x14\x42\x91\xa1\xb1\xc1\x09\x23\x33\x52\xf0\x15\x62\
    \x72\xd1\x0a\x16\x24\x34\xe1\x25\xf1\x17\x18\x19\x1a\x26\x27\x28\x29\x2a\x35\x36\x37\x38\x39\x3a\
    \x43\x44\x45\x46\x47\x48\x49\x4a\x53\x54\x55\x56\x57\x58\x59\x5a\x63\x64\x65\x66\x67\x68\x69\x6a\
    \x73\x74\x75\x76\x77\x78\x79\x7a\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x92\x93\x94\x95\x96\x97\x98\
    \x99\x9a\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xc2\xc3\xc4\xc5\
    \xc6\xc7\xc8\xc9\xca\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xf2\
    \xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa";

pub(super) struct Table {
    /// Indexed by the next [`FAST`] bits: symbol << 8
    /// length of its code, or 0.
    fast: Box<[u16; 1 << FAST]>,
    /// Indexed by the same bits: the next coefficient of a table for coefficients.
    coefficients: Box<[Entry; 1 << FAST]>,
    /// Indexed by the next [`FAR`] bits, to skip all coefficients with complete codes in them at
    /// once: bits including the last value (8), coefficients (8), and whether the block ends with
    /// them (1).
    passes: Box<[u32; 1 << FAR]>,
    /// For each length: the first longer code, left-aligned in 16 bits.
    ends: [u32; 17],
    /// For each length: the offset from a code to its index in `symbols`.
    starts: [i32; 17],
    symbols: Vec<u8>,
}

impl Table {
    /// Creates a table for AC coefficients from the number of codes with 1 to 16 bits and their
    /// symbols.
    pub(super) fn for_coefficients(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut table = Self::new(counts, symbols)?;
        for bits in 0..1 << FAR {
            table.passes[bits as usize] = table.pass(bits);
        }
        Some(table)
    }

    /// Creates a table for DC coefficients, whose symbols have no run of zeros.
    pub(super) fn for_means(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let table = Self::new(counts, symbols)?;
        table
            .symbols
            .iter()
            .all(|&symbol| symbol < 16)
            .then_some(table)
    }

    fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
        let mut table = Self {
            fast: Box::new([0; 1 << FAST]),
            coefficients: Box::new([Entry::default(); 1 << FAST]),
            passes: Box::new([0; 1 << FAR]),
            ends: [0; 17],
            starts: [0; 17],
            symbols: symbols.get(..total)?.to_vec(),
        };
        let mut code = 0_u32;
        let mut place = 0_usize;
        for length in 1..=16_u32 {
            table.starts[length as usize] = place as i32 - code as i32;
            for _ in 0..counts[length as usize - 1] {
                if code >= 1 << length {
                    return None;
                }
                if length <= FAST {
                    table.enter(code, length, table.symbols[place]);
                }
                (code, place) = (code + 1, place + 1);
            }
            table.ends[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Some(table)
    }

    /// Stores a short code at all indexes that begin with it.
    fn enter(&mut self, code: u32, length: u32, symbol: u8) {
        let free = FAST - length;
        for tail in 0..1_u32 << free {
            let at = (code << free | tail) as usize;
            self.fast[at] = u16::from(symbol) << 8 | length as u16;
            let mut entry = Entry::new(symbol, length);
            let size = entry.rest();
            if size > 0 && size <= free {
                // The lookup bits include the whole value.
                entry = entry.with_value(extend((tail >> (free - size)) as i32, size));
            }
            self.coefficients[at] = entry;
        }
    }

    /// Computes the entry of `passes` for these bits.
    fn pass(&self, bits: u32) -> u32 {
        let mut used = 0;
        let mut passed = 0;
        while used < FAR {
            // Unknown bits are zero here: a code counts only if it ends before them.
            let next = (bits << used & ((1 << FAR) - 1)) >> (FAR - FAST);
            let code = self.fast[next as usize];
            let length = u32::from(code & 0xff);
            if code == 0 || used + length > FAR {
                break;
            }
            let entry = Entry::new((code >> 8) as u8, length);
            used += entry.bits();
            if entry.zeros() == END {
                return 1 << 16 | passed << 8 | used;
            }
            passed += entry.zeros() as u32 + 1;
        }
        passed << 8 | used
    }

    /// Skips coefficients of a block, up to its end if that is near. `at` is the index of the next
    /// coefficient; returns the index after the skipped ones, or [`END`]. Returns `None` if the
    /// next coefficient must be read singly.
    #[inline(always)]
    pub(super) fn pass_over(&self, at: usize, bits: &mut Bits<'_>) -> Option<usize> {
        let pass = self.passes[bits.peek(FAR)];
        let (passed, end) = ((pass >> 8 & 0xff) as usize, (pass >> 16) as usize);
        // A full block has no end code: the following bits belong to the next block.
        if pass == 0 || at + passed + end > 64 {
            return None;
        }
        bits.skip(pass & 0xff);
        Some(if end == 1 { END } else { at + passed })
    }

    /// Returns the next coefficient without consuming bits.
    #[inline(always)]
    pub(super) fn coefficient(&self, bits: &Bits<'_>) -> Option<Entry> {
        let entry = self.coefficients[bits.peek(FAST)];
        if entry.0 != 0 {
            Some(entry)
        } else {
            self.long(bits).map(|(s, l)| Entry::new(s, l))
        }
    }

    /// Reads the next symbol; returns `None` if the bits are not a valid code.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>) -> Option<u8> {
        let entry = self.fast[bits.peek(FAST)];
        if entry != 0 {
            bits.skip(u32::from(entry & 0xff));
            return Some((entry >> 8) as u8);
        }
        let (symbol, length) = self.long(bits)?;
        bits.skip(length);
        Some(symbol)
    }

    /// Returns the symbol of a long code, and the code's length.
    #[cold]
    fn long(&self, bits: &Bits<'_>) -> Option<(u8, u32)> {
        let next = bits.peek(16) as u32;
        let length = (FAST + 1..=16).find(|&length| next < self.ends[length as usize])?;
        let place = (next >> (16 - length)) as i32 + self.starts[length as usize];
        Some((*self.symbols.get(usize::try_from(place).ok()?)?, length))
    }
}

impl Entry {
    /// Creates the entry of a symbol (number of zeros, size of the value) whose code has `length`
    /// bits.
    fn new(symbol: u8, length: u32) -> Self {
        let (zeros, rest) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        // 15 zeros with an empty value mean 16 zeros; fewer mean the end of the block.
        let zeros = if rest == 0 && zeros < 15 {
            END as u32
        } else {
            zeros
        };
        Self(rest << 16 | zeros << 8 | (length + rest))
    }

    fn with_value(self, value: i32) -> Self {
        Self((value as u32) << 20 | self.0 & 0xffff)
    }

    /// Consumes the code and the value, and returns the value.
    #[inline(always)]
    pub(super) fn take(self, bits: &mut Bits<'_>) -> i32 {
        bits.skip(self.bits() - self.rest());
        if self.rest() > 0 {
            bits.value(self.rest())
        } else {
            self.value()
        }
    }

    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0 & 0xff
    }

    #[inline(always)]
    pub(super) fn zeros(self) -> usize {
        (self.0 >> 8 & 0xff) as usize
    }

    #[inline(always)]
    fn rest(self) -> u32 {
        self.0 >> 16 & 15
    }

    #[inline(always)]
    fn value(self) -> i32 {
        self.0 as i32 >> 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_codes_are_read() {
        // The codes 0, 10, 110 and so on, one of each length up to 16 bits.
        let table = Table::new(&[1; 16], &(0..16).collect::<Vec<_>>()).unwrap();
        let check = |bytes: &[u8], symbol| {
            let mut bits = Bits::new(bytes, 0);
            bits.refill();
            assert_eq!(table.symbol(&mut bits), symbol, "{bytes:x?}");
        };
        check(&[0x00, 0, 0], Some(0));
        check(&[0x80, 0, 0], Some(1));
        check(&[0xfe, 0, 0], Some(7));
        // A code of twelve bits; the zero after 0xff is stuffed.
        check(&[0xff, 0, 0xe0, 0], Some(11));
        check(&[0xff, 0, 0xfe, 0], Some(15));
        check(&[0xff, 0, 0xff, 0, 0], None);
        assert!(Table::new(&[3; 16], &[0; 48]).is_none());
        assert!(Table::new(&[1; 16], &[0; 3]).is_none());
    }

    #[test]
    fn skipping_coefficients_ends_like_reading_them() {
        let symbols = [
            0x01, 0x00, 0x12, 0x03, 0xf0, 0x05, 0x2a, 0x01, 0xe1, 0x0f, 0x11, 0x02,
        ];
        let table =
            Table::for_coefficients(&[0, 1, 1, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0], &symbols);
        let table = table.unwrap();
        let mut dice = 1_u32;
        let mut roll = || {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (dice >> 24) as u8
        };
        let mut passed = 0;
        let mut beyond = 0;
        for _ in 0..20_000 {
            let bytes: [u8; 32] = std::array::from_fn(|_| roll() & 0xfe);
            let (mut fast, mut slow) = (Bits::new(&bytes, 0), Bits::new(&bytes, 0));
            fast.refill();
            let Some(end) = table.pass_over(1, &mut fast) else {
                continue;
            };
            let mut at = 1;
            let mut used = 0;
            while at < end {
                slow.refill();
                let entry = table.coefficient(&slow).unwrap();
                slow.skip(entry.bits());
                used += entry.bits();
                at = if entry.zeros() == END {
                    END
                } else {
                    at + entry.zeros() + 1
                };
            }
            assert_eq!(at, end);
            fast.refill();
            slow.refill();
            assert_eq!(fast.peek(16), slow.peek(16), "{bytes:x?}");
            passed += 1;
            beyond += u32::from(used > FAR);
        }
        assert!(passed > 10_000 && beyond > 1_000, "{passed} {beyond}");
    }

    #[test]
    fn symbols_of_dc_tables_have_no_zeros() {
        let counts = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(Table::for_means(&counts, &[0, 15]).is_some());
        assert!(Table::for_means(&counts, &[0, 16]).is_none());
    }
}
