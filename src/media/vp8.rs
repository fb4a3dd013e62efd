//! Lossy WebP: how much memory a frame needs in the decoder, beside its chunk and its pixels.
//!
//! The decoder allocates each partition of coefficients before it reads it: 16 MB if a file of a
//! hundred bytes says so. The sizes stand between the first partition, which says how many there are,
//! and the others (RFC 6386, 9). Runs when a file is probed; never reads a coefficient.

use std::io::{Read, SeekFrom};

use super::decoder::Input;

/// Bytes of the start of a key frame: its tag, three bytes that are always the same, width and height.
const HEAD: u64 = 10;
/// Bytes of the start of any other frame, which cannot occur in a WebP.
const TAG: u64 = 3;
/// More than all that stands before the number of partitions: some 180 bits.
const NEEDED: u64 = 64;

/// Bytes of planes for what a frame, which begins here, has more than its canvas: the decoder sees
/// that they differ once it has all of them.
pub(super) fn beyond(input: &mut dyn Input, canvas: (u32, u32)) -> Option<u64> {
    let start = input.stream_position().ok()?;
    let mut head = [0; HEAD as usize];
    input.read_exact(&mut head).ok()?;
    input.seek(SeekFrom::Start(start)).ok()?;
    // The upper two bits of a side say how it is to be shown.
    let side = |low, high| u64::from(u16::from_le_bytes([low, high]) & 0x3fff).next_multiple_of(16);
    let pixels = side(head[6], head[7]) * side(head[8], head[9]);
    let shown = u64::from(canvas.0) * u64::from(canvas.1);
    // One of brightness, and two of a quarter each.
    Some(pixels.checked_sub(shown).filter(|_| shown > 0)? * 3 / 2)
}

/// Bytes for what a frame of so many, which begins here, claims beyond its end, or for the copies of
/// its last partition. None where it is no such frame: the decoder says what is wrong with it.
pub(super) fn beside(input: &mut dyn Input, length: u64) -> Option<u64> {
    let start = input.stream_position().ok()?;
    let mut tag = [0; 4];
    input.read_exact(&mut tag[..TAG as usize]).ok()?;
    let tag = u32::from_le_bytes(tag);
    // What is none is refused as well, but only once there was room for its partitions.
    let is_key = tag & 1 == 0;
    let body = start + if is_key { HEAD } else { TAG };
    input.seek(SeekFrom::Start(body)).ok()?;
    let first = u64::from(tag >> 5);
    let mut left = match (start + length).checked_sub(body)? {
        room if room < first => return Some(first - room),
        room => room - first,
    };
    let mut header = Vec::new();
    Read::take(&mut *input, first.min(NEEDED)).read_to_end(&mut header).ok()?;
    let mut sizes = vec![0; 3 * (Booleans::new(&header).partitions(is_key) - 1)];
    left = left.checked_sub(sizes.len() as u64)?;
    input.seek(SeekFrom::Start(body + first)).ok()?;
    input.read_exact(&mut sizes).ok()?;
    for size in sizes.chunks_exact(3) {
        let size = u64::from(u32::from_le_bytes([size[0], size[1], size[2], 0]));
        if size > left {
            return Some(size - left);
        }
        left -= size;
    }
    // It is read into a list that grows by doubling, and copied from there.
    Some(2 * left)
}

/// The decoder of RFC 6386, 7, for headers: all of their bits are as likely as not. Behind its end
/// there are zeros.
struct Booleans<'a> {
    bytes: std::slice::Iter<'a, u8>,
    /// Two bytes, of which the upper one is compared.
    value: u32,
    range: u32,
    shifted: u32,
}

impl<'a> Booleans<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut new = Self { bytes: bytes.iter(), value: 0, range: 255, shifted: 0 };
        new.value = new.byte() << 8;
        new.value |= new.byte();
        new
    }

    fn byte(&mut self) -> u32 {
        self.bytes.next().copied().unwrap_or_default().into()
    }

    fn flag(&mut self) -> bool {
        let split = 1 + ((self.range - 1) >> 1);
        let is_set = self.value >= split << 8;
        if is_set {
            self.range -= split;
            self.value -= split << 8;
        } else {
            self.range = split;
        }
        while self.range < 128 {
            self.range <<= 1;
            self.value <<= 1;
            self.shifted += 1;
            if self.shifted == 8 {
                self.shifted = 0;
                self.value |= self.byte();
            }
        }
        is_set
    }

    fn number(&mut self, bits: u32) -> u32 {
        (0..bits).fold(0, |number, _| number << 1 | u32::from(self.flag()))
    }

    /// So many numbers of so many bits, each only where a flag says so.
    fn optional(&mut self, count: u32, bits: u32) {
        for _ in 0..count {
            if self.flag() {
                self.number(bits);
            }
        }
    }

    /// How many partitions of coefficients there are (9.2 to 9.5).
    fn partitions(&mut self, is_key: bool) -> usize {
        if is_key {
            // Colour space, and whether colours need no clamping.
            self.number(2);
        }
        if self.flag() {
            let map = self.flag();
            if self.flag() {
                self.flag();
                // With their signs.
                self.optional(4, 7 + 1);
                self.optional(4, 6 + 1);
            }
            if map {
                self.optional(3, 8);
            }
        }
        // The loop filter's kind, level and sharpness.
        self.number(1 + 6 + 3);
        if self.flag() && self.flag() {
            self.optional(8, 6 + 1);
        }
        1 << self.number(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::probe;
    use std::io::Cursor;

    /// A lossy picture in `1 << partitions` of them.
    fn file(partitions: i32, segments: i32) -> Vec<u8> {
        let pixel = |at: u32| at.wrapping_mul(2_654_435_761).to_be_bytes().into_iter().take(3);
        let pixels: Vec<u8> = (0..320 * 200).flat_map(pixel).collect();
        let mut config = ::webp::WebPConfig::new().unwrap();
        // A greater effort would make one of them.
        (config.partitions, config.segments, config.method) = (partitions, segments, 0);
        ::webp::Encoder::from_rgb(&pixels, 320, 200).encode_advanced(&config).unwrap().to_vec()
    }

    /// The offset of the sizes of its partitions.
    fn sizes(file: &[u8]) -> usize {
        let tag = u32::from_le_bytes([file[20], file[21], file[22], 0]);
        20 + HEAD as usize + (tag >> 5) as usize
    }

    fn counted(file: &[u8]) -> u64 {
        beside(&mut Cursor::new(&file[20..]), file.len() as u64 - 20).unwrap()
    }

    #[test]
    fn partitions_of_libwebp_are_found() {
        for partitions in 0..4 {
            for segments in [1, 4] {
                let file = file(partitions, segments);
                assert_eq!(&file[8..16], b"WEBPVP8 ");
                let found = Booleans::new(&file[30..]).partitions(true);
                assert_eq!(found, 1 << partitions, "{segments} segments");
                // All are in the file, so that only the last one is counted.
                let behind = (file.len() - sizes(&file)) as u64;
                let most = 2 * behind.div_ceil(if found == 1 { 1 } else { 2 });
                assert!(counted(&file) <= most, "{} of {behind}", counted(&file));
            }
        }
    }

    #[test]
    fn partitions_that_claim_more_than_there_is_are_counted() {
        let whole = file(3, 1);
        let memory = |file: &[u8]| probe(&mut Cursor::new(file)).unwrap().memory((320, 200));
        for partition in 0..7 {
            let mut claims = whole.clone();
            let at = sizes(&claims) + 3 * partition;
            claims[at..at + 3].fill(0xff);
            assert!(memory(&claims) > memory(&whole) + (15 << 20), "{partition}");
        }
    }

    #[test]
    fn partitions_of_what_is_no_key_frame_are_counted() {
        // 64 bytes that say that there are eight of them, and what the first seven claim.
        let mut frame = (1_u32 | 64 << 5).to_le_bytes()[..3].to_vec();
        frame.extend([0xff; 64 + 7 * 3]);
        assert_eq!(counted(&[&[0; 20], &frame[..]].concat()), 0xff_ffff);
    }
}
