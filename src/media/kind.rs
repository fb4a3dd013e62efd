//! What a file is, by its first bytes; names and extensions are never looked at.

use crate::wire::Format;

/// As many first bytes as [`sniff`] looks at.
pub(super) const HEAD: usize = 256;

/// The format that `head`, the beginning of a file, shows.
pub(super) fn sniff(head: &[u8]) -> Option<Format> {
    match head {
        [0xff, 0xd8, 0xff, ..] => Some(Format::Jpg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Format::Png),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Format::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::Webp),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', b' ', ..] => Some(Format::Avi),
        // 42 is TIFF, 43 BigTIFF.
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Format::Tiff),
        // The length of the second header, so that a text that begins with BM is none.
        [
            b'B',
            b'M',
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            12 | 40 | 52 | 56 | 64 | 108 | 124,
            0,
            0,
            0,
            ..,
        ] => Some(Format::Bmp),
        [0xff, 0x0a, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', b'\r', b'\n', 0x87, b'\n', ..] => {
            Some(Format::Jxl)
        }
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Some(matroska(head)),
        [a, b, c, d, b'f', b't', b'y', b'p', rest @ ..] => {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            Some(iso_media(&rest[..rest.len().min(length.saturating_sub(8))]))
        }
        // QuickTime from before there were brands.
        [_, _, _, _, b'm', b'o', b'o', b'v' | b'f', ..]
        | [_, _, _, _, b'm', b'd', b'a', b't', ..]
        | [0, 0, 0, 8, b'w', b'i', b'd', b'e', ..] => Some(Format::Mov),
        _ => None,
    }
}

/// By the document type that the EBML header names.
fn matroska(head: &[u8]) -> Format {
    if head.windows(4).any(|word| word == b"webm") { Format::Webm } else { Format::Mkv }
}

/// By the brands: the major one, a version, and those that the file is compatible with.
fn iso_media(brands: &[u8]) -> Format {
    let has = |wanted: &[&[u8; 4]]| {
        brands.chunks_exact(4).any(|brand| wanted.iter().any(|&word| word == brand))
    };
    if has(&[b"avif", b"avis"]) {
        Format::Avif
    } else if has(&[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"]) {
        Format::Heic
    } else if brands.starts_with(b"qt  ") {
        Format::Mov
    } else {
        Format::Mp4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell() {
        let check = |head: &[u8], format| assert_eq!(sniff(head), format, "{head:?}");
        check(b"", None);
        check(b"\xff\xd8", None);
        check(b"\xff\xd8\xff\xe0", Some(Format::Jpg));
        check(b"\x89PNG\r\n\x1a\n", Some(Format::Png));
        check(b"GIF89a", Some(Format::Gif));
        check(b"GIF88a", None);
        check(b"RIFF\0\0\0\0WEBPVP8 ", Some(Format::Webp));
        check(b"RIFF\0\0\0\0AVI LIST", Some(Format::Avi));
        check(b"RIFF\0\0\0\0WAVE", None);
        check(b"II*\0", Some(Format::Tiff));
        check(b"MM\0+", Some(Format::Tiff));
        check(b"BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0", Some(Format::Bmp));
        check(b"BMW is no bitmap at all, is it", None);
        check(b"\xff\x0a\0", Some(Format::Jxl));
        check(b"\0\0\0\x0cJXL \r\n\x87\n", Some(Format::Jxl));
        check(b"\x1a\x45\xdf\xa3\x93\x42\x82\x84webm", Some(Format::Webm));
        check(b"\x1a\x45\xdf\xa3\x93\x42\x82\x88matroska", Some(Format::Mkv));
        check(b"\0\0\0\x1cftypavif\0\0\0\0mif1avif", Some(Format::Avif));
        check(b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", Some(Format::Heic));
        check(b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", Some(Format::Mov));
        check(b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41", Some(Format::Mp4));
        // Brands end where the box ends: what follows is no brand.
        check(b"\0\0\0\x14ftypisom\0\0\0\0isomheic", Some(Format::Mp4));
        check(b"\0\0\0\x08wide", Some(Format::Mov));
        check(b"<html>", None);
    }
}
