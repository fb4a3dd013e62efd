//! Detects a file's format, reads its headers, decodes it and makes thumbnails.

use std::io::{Read, SeekFrom};

use serde::{Deserialize, Serialize};

use super::decoder::{Decoder, Goal, Header, Input, Note, check_bounds};
use super::error::{Error, Traits};
use super::exif::{self, Orientation};
use super::icc::Profile;
use super::image_crate::BMP;
use super::picture::{Picture, fit};
use super::{gif, heif, jpeg, png, svg, tiff, webp};
use crate::wire::Format;

/// The headers of an image that murald can decode.
#[derive(Clone, Debug)]
pub struct Probe {
    pub format: Format,
    /// In pixels, with the orientation applied.
    pub width: u32,
    pub height: u32,
    /// The image has several frames.
    pub animated: bool,
    pub(crate) note: Option<Note>,
    header: Header,
    decoder: Decoder,
}

/// Returns `None` if only other programs decode this format.
fn decoder(format: Format) -> Option<Decoder> {
    Some(match format {
        Format::Jpg => Decoder {
            open: jpeg::open,
            decode: jpeg::decode,
        },
        Format::Png => Decoder {
            open: png::open,
            decode: png::decode,
        },
        Format::Gif => Decoder {
            open: gif::open,
            decode: gif::decode,
        },
        Format::Webp => Decoder {
            open: webp::open,
            decode: webp::decode,
        },
        Format::Bmp => Decoder {
            open: |input| BMP.open(input),
            decode: |header, input, goal| BMP.decode(header, input, goal),
        },
        Format::Tiff => Decoder {
            open: tiff::open,
            decode: tiff::decode,
        },
        Format::Avif
        | Format::Jxl
        | Format::Heic
        | Format::Svg
        | Format::Mp4
        | Format::Webm
        | Format::Mkv
        | Format::Mov
        | Format::Avi
        | Format::Html => return None,
    })
}

/// Whether murald decodes this format, at least its usual varieties.
pub(crate) fn is_decoded(format: Format) -> bool {
    decoder(format).is_some()
}

/// Returns the format from the first bytes. Fails for formats that murald cannot decode itself.
pub(crate) fn format(input: &mut dyn Input) -> Result<Format, Error> {
    known(input).map(|(format, _)| format)
}

fn known(input: &mut dyn Input) -> Result<(Format, Decoder), Error> {
    let mut head = Vec::with_capacity(HEAD);
    input.rewind().map_err(Error::Read)?;
    input
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(Error::Read)?;
    if head.is_empty() {
        return Err(Error::Empty);
    }
    let (format, mut traits) = match sniff(&head) {
        Some(format) => (format, Traits::default()),
        None => {
            let size = svg::size(input)?.ok_or(Error::Unknown)?;
            (
                Format::Svg,
                Traits {
                    size,
                    ..Traits::default()
                },
            )
        }
    };
    if let Some(decoder) = decoder(format) {
        return Ok((format, decoder));
    }
    match format {
        Format::Avif | Format::Heic => traits = heif::traits(input)?,
        // ffprobe does not notice that the end is missing.
        Format::Avi if is_riff_cut(&head, input)? => return Err(Error::Truncated(format)),
        Format::Jpg
        | Format::Png
        | Format::Gif
        | Format::Webp
        | Format::Bmp
        | Format::Tiff
        | Format::Jxl
        | Format::Svg
        | Format::Mp4
        | Format::Webm
        | Format::Mkv
        | Format::Mov
        | Format::Avi
        | Format::Html => {}
    }
    Err(Error::NeedsTranscoder {
        format,
        why: None,
        traits,
    })
}

/// Whether the first list of a RIFF file is longer than the file.
fn is_riff_cut(head: &[u8], input: &mut dyn Input) -> Result<bool, Error> {
    let length = input.seek(SeekFrom::End(0)).map_err(Error::Read)?;
    let claimed = head.get(4..).and_then(<[u8]>::first_chunk);
    Ok(claimed.is_some_and(|&claimed| u64::from(u32::from_le_bytes(claimed)) + 8 > length))
}

/// Reads the headers of an image, and the whole file if necessary to find out whether it is
/// complete.
pub fn probe(input: &mut dyn Input) -> Result<Probe, Error> {
    let (format, decoder) = known(input)?;
    input.rewind().map_err(Error::Read)?;
    let header = (decoder.open)(input)?;
    check_bounds(header.size, header.channels)?;
    let (width, height) = exif::size(header.orientation, header.size);
    let (animated, note) = (header.animated, header.note);
    Ok(Probe {
        format,
        width,
        height,
        animated,
        note,
        header,
        decoder,
    })
}

/// The orientation and colours of an image that another program has decoded; override the file's
/// EXIF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// As in EXIF; 0 means as stored.
    pub orientation: u8,
    /// H.273's code points, used if the image has no profile.
    pub points: Option<(u8, u8)>,
}

impl Probe {
    pub(crate) fn shown(mut self, shown: Shown) -> Self {
        let orientation = Orientation::from_exif(shown.orientation);
        self.header.orientation = orientation.unwrap_or(Orientation::NoTransforms);
        (self.width, self.height) = exif::size(self.header.orientation, self.header.size);
        let own = self.header.profile.take();
        self.header.profile = own.or_else(|| Profile::from_code_points(shown.points?));
        self
    }

    /// Whether programs that ignore orientation and colour profiles show the image correctly.
    pub(crate) fn is_plain(&self) -> bool {
        let is_srgb = self
            .profile()
            .is_none_or(|profile| !profile.changes_anything());
        self.is_upright() && is_srgb
    }

    pub(crate) fn has_alpha(&self) -> bool {
        self.header.channels == 4
    }

    /// Whether the stored pixels are upright.
    pub(crate) fn is_upright(&self) -> bool {
        self.orientation() == Orientation::NoTransforms
    }

    /// The orientation to apply to the stored pixels.
    pub(super) fn orientation(&self) -> Orientation {
        self.header.orientation
    }

    /// The colour profile, if there is one.
    pub(super) fn profile(&self) -> Option<&Profile> {
        self.header.profile.as_ref()
    }

    /// Decodes the first frame, reduced while decoding if it is much larger than `target` (as
    /// shown), but never below it. Reads `input` from the start.
    pub fn decode(&self, input: &mut dyn Input, target: (u32, u32)) -> Result<Picture, Error> {
        input.rewind().map_err(Error::Read)?;
        let goal = Goal::from_target(target, self.header.orientation);
        let mut picture = (self.decoder.decode)(&self.header, input, goal)?;
        // Converting the reduced picture is faster.
        if let Some(profile) = &self.header.profile {
            picture.convert(profile);
        }
        Ok(picture)
    }
}

/// Number of bytes that [`sniff`] needs.
pub(super) const HEAD: usize = 256;

/// Detects the format from the first bytes of a file.
pub(super) fn sniff(head: &[u8]) -> Option<Format> {
    match head {
        [0xff, 0xd8, 0xff, ..] => Some(Format::Jpg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Format::Png),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Format::Gif),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some(Format::Webp),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'A',
            b'V',
            b'I',
            b' ',
            ..,
        ] => Some(Format::Avi),
        // 42 is TIFF, 43 BigTIFF.
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(Format::Tiff),
        [b'B', b'M', ..] => {
            // Check the size of the second header, as a text may begin with BM, too.
            let length = head.get(14..).and_then(<[u8]>::first_chunk);
            let is_bmp = matches!(length, Some([12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0]));
            is_bmp.then_some(Format::Bmp)
        }
        [0xff, 0x0a, ..]
        | [
            0,
            0,
            0,
            12,
            b'J',
            b'X',
            b'L',
            b' ',
            b'\r',
            b'\n',
            0x87,
            b'\n',
            ..,
        ] => Some(Format::Jxl),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Some(matroska(head)),
        [a, b, c, d, b'f', b't', b'y', b'p', rest @ ..] => {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            Some(iso_media(&rest[..rest.len().min(length.saturating_sub(8))]))
        }
        // Early QuickTime, without brands.
        [_, _, _, _, b'm', b'o', b'o', b'v' | b'f', ..]
        | [_, _, _, _, b'm', b'd', b'a', b't', ..]
        | [0, 0, 0, 8, b'w', b'i', b'd', b'e', ..] => Some(Format::Mov),
        _ => None,
    }
}

/// Detects the format from the document type in the EBML header.
fn matroska(head: &[u8]) -> Format {
    if head.windows(4).any(|word| word == b"webm") {
        Format::Webm
    } else {
        Format::Mkv
    }
}

/// Detects the format from the brands: the major one, a version, and compatible ones.
fn iso_media(brands: &[u8]) -> Format {
    let has = |wanted: &[&[u8; 4]]| {
        brands
            .chunks_exact(4)
            .any(|brand| wanted.iter().any(|&word| word == brand))
    };
    if has(&[b"avif", b"avis"]) {
        Format::Avif
    } else if has(&[
        b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1",
    ]) {
        Format::Heic
    } else if brands.starts_with(b"qt  ") {
        Format::Mov
    } else {
        Format::Mp4
    }
}

/// A thumbnail, and the pixels it was made from.
#[derive(Debug)]
pub struct Thumbnail {
    pub webp: Vec<u8>,
    /// The upright picture.
    pub picture: Picture,
}

impl Probe {
    /// Returns the size of a thumbnail that fits into `frame`.
    pub fn fit(&self, frame: (u32, u32)) -> (u32, u32) {
        fit((self.width, self.height), frame)
    }

    /// Decodes the image and makes a thumbnail that fits into `frame`.
    pub fn thumbnail(&self, input: &mut dyn Input, frame: (u32, u32)) -> Result<Thumbnail, Error> {
        let (width, height) = self.fit(frame);
        let picture = self.decode(input, (width, height))?.resized(width, height);
        Ok(Thumbnail {
            webp: webp::encode(&picture)?,
            picture,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_from_the_first_bytes() {
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
        check(
            b"\x1a\x45\xdf\xa3\x93\x42\x82\x88matroska",
            Some(Format::Mkv),
        );
        check(b"\0\0\0\x1cftypavif\0\0\0\0mif1avif", Some(Format::Avif));
        check(b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", Some(Format::Heic));
        check(b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", Some(Format::Mov));
        check(
            b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41",
            Some(Format::Mp4),
        );
        // Brands end with the box: the bytes after it do not count.
        check(b"\0\0\0\x14ftypisom\0\0\0\0isomheic", Some(Format::Mp4));
        check(b"\0\0\0\x08wide", Some(Format::Mov));
        check(b"<html>", None);
    }
}
