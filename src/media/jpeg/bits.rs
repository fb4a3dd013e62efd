//! Reads the segments of a JPEG, and the bits of its entropy-coded data.

use memchr::memchr_iter;

use crate::media::error::Error;
use crate::wire::Format;

pub(super) const END_OF_IMAGE: u8 = 0xd9;
pub(super) const START_OF_SCAN: u8 = 0xda;

/// Reads bits up to the next marker, and zeros after it. Callers check [`Self::is_overrun`] before
/// they use the result.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// The next byte to load.
    at: usize,
    /// The next bits, from the most significant on.
    buffer: u64,
    /// Number of loaded bits, at most 63.
    count: u32,
    /// Number of bits at the end that were padded with zeros.
    made_up: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8], at: usize) -> Self {
        Self {
            data,
            at,
            buffer: 0,
            count: 0,
            made_up: 0,
        }
    }

    /// Makes at least 32 bits available, enough for the longest code and its value.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if self.count < 32 {
            self.load();
        }
    }

    /// Returns the next 1 to 16 bits without consuming them.
    #[inline(always)]
    pub(super) fn peek(&self, count: u32) -> usize {
        (self.buffer >> (64 - count)) as usize
    }

    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.buffer <<= count;
        self.count -= count;
    }

    /// Returns the next 0 to 16 bits as a number.
    #[inline(always)]
    pub(super) fn number(&mut self, count: u32) -> i32 {
        if count == 0 {
            return 0;
        }
        let number = self.peek(count) as i32;
        self.skip(count);
        number
    }

    /// Returns a coefficient coded with this many bits.
    #[inline(always)]
    pub(super) fn value(&mut self, count: u32) -> i32 {
        extend(self.number(count), count)
    }

    #[inline(always)]
    pub(super) fn bit(&mut self) -> bool {
        self.refill();
        self.number(1) == 1
    }

    /// Whether more bits were read than the data has.
    pub(super) fn is_overrun(&self) -> bool {
        self.made_up > self.count
    }

    /// Returns the position of the next marker; `None` if there is none.
    pub(super) fn marker(&self) -> Option<usize> {
        marker(self.data, self.at)
    }

    /// Continues after the restart marker at `marker`; returns `None` if it is another marker.
    pub(super) fn restart(&mut self, marker: usize) -> Option<()> {
        matches!(self.data.get(marker + 1), Some(0xd0..=0xd7))
            .then(|| *self = Self::new(self.data, marker + 2))
    }

    fn load(&mut self) {
        if let Some(bytes) = self.data.get(self.at..self.at + 8) {
            let word = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
            if !has_ff(word) {
                // The bits of a partly loaded byte are loaded again with the whole byte, unchanged.
                self.buffer |= word >> self.count;
                let whole = (63 - self.count) / 8;
                self.at += whole as usize;
                self.count += 8 * whole;
                return;
            }
        }
        while self.count <= 55 {
            let byte = match self.data[self.at.min(self.data.len())..] {
                [0xff, 0, ..] => {
                    self.at += 2;
                    0xff
                }
                [byte, ..] if byte != 0xff => {
                    self.at += 1;
                    byte
                }
                // A marker or the end of the data.
                _ => {
                    self.made_up += 8;
                    0
                }
            };
            self.buffer |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }
}

/// Returns the position of the first marker at or after `at`, ignoring stuffed bytes in coded data.
pub(super) fn marker(data: &[u8], at: usize) -> Option<usize> {
    let mut found = memchr_iter(0xff, data.get(at..)?).map(|found| at + found);
    found.find(|&found| !matches!(data.get(found + 1), None | Some(0 | 0xff)))
}

/// Returns the marker and content of the next segment, and moves `at` to its end; `None` at the end
/// of the image. Skips coded data and markers without content.
pub(super) fn segment<'a>(data: &'a [u8], at: &mut usize) -> Result<Option<(u8, &'a [u8])>, Error> {
    let truncated = || Error::Truncated(Format::Jpg);
    loop {
        let found = marker(data, *at).ok_or_else(truncated)?;
        *at = found + 2;
        let kind = data[found + 1];
        match kind {
            END_OF_IMAGE => return Ok(None),
            0x01 | 0xd0..=0xd8 => continue,
            _ => {}
        }
        let length = data[*at..].first_chunk().copied().map(u16::from_be_bytes);
        let length = usize::from(length.ok_or_else(truncated)?);
        if length < 2 {
            return Err(Error::damaged(
                Format::Jpg,
                "a segment has an invalid length",
            ));
        }
        let content = data.get(*at + 2..*at + length).ok_or_else(truncated)?;
        *at += length;
        return Ok(Some((kind, content)));
    }
}

/// Returns the value of `count` bits: negative if the first bit is 0 (EXTEND in the standard).
#[inline(always)]
pub(super) fn extend(number: i32, count: u32) -> i32 {
    if count > 0 && number < 1 << (count - 1) {
        number - (1 << count) + 1
    } else {
        number
    }
}

fn has_ff(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zeros = !word;
    zeros.wrapping_sub(ONES) & !zeros & (ONES << 7) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuffing_is_removed_and_reading_stops_at_markers() {
        let data = [
            0x12, 0xff, 0, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xff, 0xd9,
        ];
        let mut bits = Bits::new(&data, 0);
        let mut nibbles = Vec::new();
        for _ in 0..16 {
            bits.refill();
            nibbles.push(bits.number(4));
            assert!(!bits.is_overrun());
        }
        assert_eq!(
            nibbles,
            [1, 2, 15, 15, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
        );
        assert_eq!(bits.number(1), 0);
        assert!(bits.is_overrun());
        assert_eq!(bits.marker(), Some(9));
    }

    #[test]
    fn values_without_a_leading_one_are_negative() {
        assert_eq!([extend(0, 0), extend(0, 1), extend(1, 1)], [0, -1, 1]);
        assert_eq!(
            [extend(0, 3), extend(3, 3), extend(4, 3), extend(7, 3)],
            [-7, -4, 4, 7]
        );
    }
}
