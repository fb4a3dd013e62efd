//! TIFF's first directory, before the `tiff` crate reads it: the meaning of its colours, claims beyond
//! what a picture needs, and fields that the crate must not see.
//!
//! The crate makes 32 bytes of each value of a field, and allocates as many as the file claims before
//! anybody can set a limit: 88 MB for a file of 200 bytes. Runs when a file is probed; never reads the
//! values themselves.

use std::collections::BTreeMap;
use std::io::{Read, SeekFrom};

use crate::media::decoder::Input;
use crate::media::error::Error;
use crate::wire::Format;

const WIDTH: u16 = 256;
const COMPRESSION: u16 = 259;
const LZW: u32 = 5;
const PHOTOMETRIC: u16 = 262;
const PALETTE: u32 = 3;
const BLACK_IS_ZERO: u32 = 1;
const TILE_WIDTH: u16 = 322;
/// The fields that the crate or [`super`] makes values of, but the profile, which is bounded
/// there.
const FIELDS: [u16; 22] = [
    WIDTH,
    257,
    258,
    COMPRESSION,
    PHOTOMETRIC,
    266,
    273,
    274,
    277,
    278,
    279,
    284,
    317,
    320,
    TILE_WIDTH,
    323,
    324,
    325,
    338,
    339,
    347,
    530,
];
/// Twice what 65,535 rows in four planes have, each a strip of its own: 16 MB in the crate.
const VALUES_MAX: u64 = 512 << 10;
const ENTRIES_MAX: u64 = 4096;

/// What the first directory says.
#[derive(Debug)]
pub(super) struct Directory {
    /// The photometric interpretation.
    pub(super) photometric: u32,
    /// The width, where the crate is told another.
    pub(super) width: Option<u32>,
    /// Bytes that the crate is to read instead of those that stand there.
    pub(super) patches: Vec<(u64, u8)>,
}

/// A number that stands in an entry itself.
#[derive(Clone, Copy)]
struct Field {
    value: u32,
    at: u64,
    /// Bytes.
    size: u64,
}

pub(super) fn read(input: &mut dyn Input) -> Result<Directory, Error> {
    let length = input.seek(SeekFrom::End(0)).map_err(Error::Read)?;
    let head = bytes(input, 0, 8)?;
    let little = head[0] == b'I';
    let number = |bytes: &[u8]| {
        let shift = |number, &byte| number << 8 | u64::from(byte);
        if little { bytes.iter().rev().fold(0, shift) } else { bytes.iter().fold(0, shift) }
    };
    let big = number(&head[2..4]) == 43;
    // Bytes of the number of entries, of an entry, and of a count or value in it.
    let (at, before, size, word) = match big {
        true => (number(&bytes(input, 8, 8)?), 8, 20, 8),
        false => (number(&head[4..]), 2, 12, 4),
    };
    let count = number(&bytes(input, at, before)?);
    if count > ENTRIES_MAX {
        return Err(unsupported(format!("a directory of {count} fields")));
    }
    let first = at + before;
    let mut fields = BTreeMap::new();
    let entries = bytes(input, first, count * size)?;
    for (at, entry) in (first..).step_by(size as usize).zip(entries.chunks_exact(size as usize)) {
        let (tag, kind) = (number(&entry[..2]) as u16, number(&entry[2..4]));
        let (count, value) = entry[4..].split_at(word);
        if FIELDS.contains(&tag) {
            let stored = number(count).saturating_mul(bytes_of(kind));
            if stored > word as u64 && number(value).saturating_add(stored) > length {
                return Err(Error::Truncated(Format::Tiff));
            }
            if number(count) > VALUES_MAX {
                return Err(unsupported(format!("a field of {} values", number(count))));
            }
        }
        let stored = bytes_of(kind);
        if matches!(tag, WIDTH | COMPRESSION | PHOTOMETRIC | TILE_WIDTH)
            && matches!(stored, 1 | 2 | 4)
        {
            let value = number(&value[..stored as usize]) as u32;
            let field = Field { value, at: at + 4 + word as u64, size: stored };
            fields.entry(tag).or_insert(field);
        }
    }
    Directory::of(&fields, little)
        .ok_or_else(|| Error::damaged(Format::Tiff, "it holds no picture"))
}

impl Directory {
    fn of(fields: &BTreeMap<u16, Field>, little: bool) -> Option<Self> {
        let photometric = *fields.get(&PHOTOMETRIC)?;
        let mut directory =
            Self { photometric: photometric.value, width: None, patches: Vec::new() };
        // The crate decodes indices of grey pictures only. What they mean is our business.
        if photometric.value == PALETTE {
            directory.patch(photometric, BLACK_IS_ZERO, little);
        }
        // Of the last tile in a row it reads what is seen, and skips the rest, piece by piece. So its
        // LZW decoder (weezl 0.1) loses what a code tells of the pieces behind the next, where it is
        // the last: a plain tile would be refused as cut off. Of whole tiles it reads all at once.
        let field = |tag: u16| fields.get(&tag).copied();
        if let (Some(width), Some(tile)) = (field(WIDTH), field(TILE_WIDTH))
            && field(COMPRESSION).is_some_and(|field| field.value == LZW)
            && let Some(whole) = width.value.checked_next_multiple_of(tile.value)
            && whole > width.value
            && u64::from(whole) < 1 << (8 * width.size)
        {
            directory.width = Some(width.value);
            directory.patch(width, whole, little);
        }
        Some(directory)
    }

    fn patch(&mut self, field: Field, value: u32, little: bool) {
        let place = |at: u64| if little { at } else { field.size - 1 - at };
        let bytes = value.to_le_bytes();
        self.patches.extend((0..field.size).map(|at| (field.at + place(at), bytes[at as usize])));
    }
}

/// Of a value; none of kinds that the crate passes over.
fn bytes_of(kind: u64) -> u64 {
    match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16..=18 => 8,
        _ => 0,
    }
}

/// A few bytes from a place on.
fn bytes(input: &mut dyn Input, at: u64, count: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    input.seek(SeekFrom::Start(at)).map_err(Error::Read)?;
    let read = Read::take(input, count).read_to_end(&mut bytes);
    match read.map_err(|error| Error::read(Format::Tiff, error))? as u64 == count {
        true => Ok(bytes),
        false => Err(Error::Truncated(Format::Tiff)),
    }
}

fn unsupported(why: String) -> Error {
    Error::NeedsTranscoder { format: Format::Tiff, why: Some(why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::probe;
    use std::io::Cursor;

    /// A grey picture of one pixel, one of whose fields has a kind, a count and a place of its own.
    fn file(field: u16, kind: u16, count: u32, place: u32) -> Vec<u8> {
        let mut bytes = b"II*\0\x08\0\0\0".to_vec();
        let fields = [
            (256, 1),
            (257, 1),
            (258, 8),
            (259, 1),
            (262, 1),
            (273, 8),
            (277, 1),
            (278, 1),
            (279, 1),
        ];
        let fields = fields.map(|(tag, value)| (tag, 3, 1, value));
        let (before, behind): (Vec<_>, Vec<_>) =
            fields.into_iter().filter(|other| other.0 != field).partition(|other| other.0 < field);
        let fields = [before, vec![(field, kind, count, place)], behind].concat();
        bytes.extend((fields.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in fields {
            bytes.extend([u16::to_le_bytes(tag), kind.to_le_bytes()].concat());
            bytes.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
        }
        bytes.extend([0; 4]);
        bytes
    }

    #[test]
    fn tiff_fields_that_claim_too_much_are_refused_before_there_is_room_for_them() {
        let check = |bytes: Vec<u8>, expected: &str| {
            let told = probe(&mut Cursor::new(bytes)).map_err(|error| error.to_string());
            assert_eq!(told.err().unwrap_or_default(), expected);
        };
        let cut = "the TIFF is cut off: its end is missing";
        check(file(277, 3, 1, 1), "");
        // Samples of a pixel, strips and text that end behind the file's end.
        check(file(277, 3, 0x2a_0001, 0), cut);
        check(file(273, 4, u32::MAX, u32::MAX), cut);
        check(file(338, 2, 200 << 20, 8), cut);
        // The same fields where the file is as long as that.
        let mut long = file(273, 1, 600_000, 8);
        long.resize(1 << 20, 0);
        let why = "this variety of TIFF is decoded by ffmpeg at most: a field of 600000 values";
        check(long, why);
        // What nobody reads may be of any size.
        check(file(50_000, 1, 600_000, 8), "");
    }

    #[test]
    fn tiff_directories_are_read_in_both_orders_and_sizes() {
        let entry = |tag: u16, value: u16| [tag, 3, 0, 1, value, 0].map(u16::to_be_bytes).concat();
        let big = |tag: u16, value: u16| {
            [tag, 3, 0, 0, 0, 1, value, 0, 0, 0].map(u16::to_be_bytes).concat()
        };
        let read = |file: &[u8]| read(&mut Cursor::new(file));
        let check = |file: &[u8], photometric: u32, patches: &[(u64, u8)]| {
            let directory = read(file).unwrap();
            assert_eq!((directory.photometric, &directory.patches[..]), (photometric, patches));
        };
        let head = [&b"MM\0*\0\0\0\x08\0\x02"[..], &entry(256, 9), &entry(262, 2)].concat();
        check(&head, 2, &[]);
        let start = [&b"MM\0+\0\x08\0\0"[..], &16_u64.to_be_bytes(), &2_u64.to_be_bytes()].concat();
        let file = [&start[..], &big(256, 9), &big(262, 3)].concat();
        let at = 24 + 20 + 12;
        check(&file, 3, &[(at + 1, 1), (at, 0)]);
        let cut = read(&file[..file.len() - 1]);
        assert!(matches!(cut, Err(Error::Truncated(Format::Tiff))), "{cut:?}");
        let many = [&b"II*\0\x08\0\0\0"[..], &[0xff; 2]].concat();
        let many = read(&many);
        assert!(matches!(many, Err(Error::NeedsTranscoder { .. })), "{many:?}");
    }

    #[test]
    fn tiff_tiles_of_lzw_are_read_whole() {
        let check = |order: &[u8], fields: &[(u16, u16, u32)], expected: (Option<u32>, &[u8])| {
            let little = order[0] == b'I';
            let short = |value: u16| if little { value.to_le_bytes() } else { value.to_be_bytes() };
            let long = |value: u32| if little { value.to_le_bytes() } else { value.to_be_bytes() };
            let mut file = [order, &long(8), &short(fields.len() as u16)].concat();
            for &(tag, kind, value) in fields {
                file.extend([short(tag), short(kind)].concat());
                file.extend(long(1));
                match kind {
                    3 => file.extend([short(value as u16), [0; 2]].concat()),
                    _ => file.extend(long(value)),
                }
            }
            let directory = read(&mut Cursor::new(&file)).unwrap();
            for &(at, byte) in &directory.patches {
                file[at as usize] = byte;
            }
            assert_eq!((directory.width, &file[18..22]), expected, "{fields:?}");
        };
        let fields = |kind, width, packing, tile| {
            [(256, kind, width), (259, 3, packing), (262, 3, 1), (322, 3, tile)]
        };
        check(b"II*\0", &fields(3, 67, 5, 32), (Some(67), &[96, 0, 0, 0]));
        check(b"MM\0*", &fields(3, 67, 5, 32), (Some(67), &[0, 96, 0, 0]));
        check(b"MM\0*", &fields(4, 67, 5, 256), (Some(67), &[0, 0, 1, 0]));
        // Whole tiles, no tiles, other codes, and what a field cannot hold.
        check(b"II*\0", &fields(3, 64, 5, 32), (None, &[64, 0, 0, 0]));
        check(b"II*\0", &fields(3, 67, 5, 0), (None, &[67, 0, 0, 0]));
        check(b"II*\0", &fields(3, 67, 5, 32)[..3], (None, &[67, 0, 0, 0]));
        check(b"II*\0", &fields(3, 67, 8, 32), (None, &[67, 0, 0, 0]));
        check(b"II*\0", &fields(3, 65_535, 5, 32), (None, &[255, 255, 0, 0]));
    }
}
