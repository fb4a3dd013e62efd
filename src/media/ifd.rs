//! TIFF's first directory, before the `tiff` crate reads it: how its colours are meant, and whether it
//! claims more than a picture needs.
//!
//! The crate makes 32 bytes of each value of a field, and room for as many as the file says that there
//! are, before anybody can give it a limit: 88 MB for a file of 200 bytes. Runs where a file is probed;
//! never reads the values themselves.

use std::io::{Read, SeekFrom};

use super::decoder::Input;
use super::error::Error;
use crate::wire::Format;

const PHOTOMETRIC: u16 = 262;
/// The fields that the crate or [`super::tiff`] makes values of, but the profile, which is bounded
/// there.
const FIELDS: [u16; 22] = [
    256,
    257,
    258,
    259,
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
    322,
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

/// The photometric interpretation of the first directory, and where it stands.
pub(super) fn photometric(input: &mut dyn Input) -> Result<(u16, u64), Error> {
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
    let mut photometric = None;
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
        if tag == PHOTOMETRIC && photometric.is_none() {
            photometric = Some((number(&value[..2]) as u16, at + 4 + word as u64));
        }
    }
    photometric.ok_or_else(|| Error::damaged(Format::Tiff, "it holds no picture"))
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
        let head = [&b"MM\0*\0\0\0\x08\0\x02"[..], &entry(256, 9), &entry(262, 2)].concat();
        assert_eq!(photometric(&mut Cursor::new(&head)).unwrap(), (2, 8 + 2 + 12 + 8));
        let start = [&b"MM\0+\0\x08\0\0"[..], &16_u64.to_be_bytes(), &2_u64.to_be_bytes()].concat();
        let file = [&start[..], &big(256, 9), &big(262, 5)].concat();
        assert_eq!(photometric(&mut Cursor::new(&file)).unwrap(), (5, 24 + 20 + 12));
        let cut = photometric(&mut Cursor::new(&file[..file.len() - 1]));
        assert!(matches!(cut, Err(Error::Truncated(Format::Tiff))), "{cut:?}");
        let many = [&b"II*\0\x08\0\0\0"[..], &[0xff; 2]].concat();
        let many = photometric(&mut Cursor::new(&many));
        assert!(matches!(many, Err(Error::NeedsTranscoder { .. })), "{many:?}");
    }
}
