//! Finds the description in an image file: XMP's `dc:description`, or else EXIF's ImageDescription.
//!
//! Searches the first and last part of the file, whatever its format: XMP packets are made to be
//! found by a search, and an EXIF block begins with a TIFF header. Decodes no pixels.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};

use memchr::memmem::{find, find_iter};

use super::Error;
use crate::wire::DESCRIPTION_MAX;

/// Number of bytes searched at each end of a file.
const LOOKED_THROUGH: u64 = 256 << 10;
/// EXIF's tag of ImageDescription, and the type ASCII.
const IMAGE_DESCRIPTION: [u16; 2] = [0x010e, 2];
/// Default texts that cameras and programs write into every file, in upper case.
const SAY_NOTHING: &[&str] = &[
    "DCIM",
    "DEFAULT",
    "DIGITAL CAMERA",
    "EXIF_JPEG_PICTURE",
    "IMG",
    "KONICA MINOLTA DIGITAL CAMERA",
    "MINOLTA DIGITAL CAMERA",
    "OLYMPUS DIGITAL CAMERA",
    "SAMSUNG",
    "SAMSUNG DIGITAL CAMERA",
    "SONY DSC",
    "UNTITLED",
];

/// Returns one line of at most [`DESCRIPTION_MAX`] bytes; empty if there is none.
pub(crate) fn description(input: &mut (impl Read + Seek)) -> Result<String, Error> {
    let length = input.seek(SeekFrom::End(0)).map_err(Error::Read)?;
    for from in BTreeSet::from([0, length.saturating_sub(LOOKED_THROUGH)]) {
        let mut bytes = Vec::new();
        input.seek(SeekFrom::Start(from)).map_err(Error::Read)?;
        input
            .take(LOOKED_THROUGH)
            .read_to_end(&mut bytes)
            .map_err(Error::Read)?;
        let found = in_bytes(&bytes);
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(String::new())
}

/// Finds the description in a part of a file.
pub(super) fn in_bytes(bytes: &[u8]) -> String {
    let exif = [b"II*\0", b"MM\0*"]
        .into_iter()
        .flat_map(|start| find_iter(bytes, start));
    let exif = exif.filter_map(|start| of_exif(&bytes[start..]));
    of_xmp(bytes)
        .into_iter()
        .chain(exif)
        .map(clean)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// Returns the text in the first language, which is the default, without markup.
fn of_xmp(bytes: &[u8]) -> Option<Vec<u8>> {
    let bytes = &bytes[find(bytes, b"<dc:description")? + 1..];
    let element = &bytes[..find(bytes, b"</dc:description>")?];
    let first = &element[..find(element, b"</rdf:li>").unwrap_or(element.len())];
    let first = String::from_utf8_lossy(&first[..first.len().min(4 * DESCRIPTION_MAX)]);
    let texts = first.split('<').filter_map(|tag| tag.split_once('>'));
    Some(
        texts
            .map(|(_, text)| decoded(text))
            .collect::<String>()
            .into_bytes(),
    )
}

/// Replaces the entities in a text with their characters.
fn decoded(text: &str) -> String {
    let mut parts = text.split('&');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let entity = part.split_once(';');
        match entity.and_then(|(name, behind)| Some((character(name)?, behind))) {
            Some((letter, behind)) => decoded.extend([letter.encode_utf8(&mut [0; 4]), behind]),
            None => decoded.extend(["&", part]),
        }
    }
    decoded
}

fn character(entity: &str) -> Option<char> {
    Some(match entity {
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "amp" => '&',
        _ => {
            let number = entity.strip_prefix('#')?;
            let number = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(number.ok()?)?
        }
    })
}

/// Whether a character changes the direction of the text after it, even of other text on the
/// terminal.
fn turns_text(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Reads an EXIF block from its byte order mark on.
fn of_exif(block: &[u8]) -> Option<Vec<u8>> {
    let is_little = block.first() == Some(&b'I');
    let short = |at: usize| -> Option<u16> {
        let bytes = *block.get(at..)?.first_chunk()?;
        Some(if is_little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    };
    let long = |at: usize| -> Option<usize> {
        let bytes = *block.get(at..)?.first_chunk()?;
        Some(if is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        } as usize)
    };
    let directory = long(4)?;
    let entries = (0..usize::from(short(directory)?)).map(|entry| directory + 2 + 12 * entry);
    for entry in entries {
        if [short(entry)?, short(entry + 2)?] == IMAGE_DESCRIPTION {
            let length = long(entry + 4)?;
            let start = if length <= 4 {
                entry + 8
            } else {
                long(entry + 8)?
            };
            return Some(block.get(start..)?.get(..length)?.to_vec());
        }
    }
    None
}

/// Returns one line without control characters; empty for a meaningless default text.
fn clean(text: Vec<u8>) -> String {
    let text = text
        .split(|&byte| byte == 0)
        .next()
        .unwrap_or_default()
        .to_vec();
    // The standard says ASCII; programs write UTF-8, and old ones Latin-1.
    let text = String::from_utf8(text).unwrap_or_else(|error| {
        error
            .as_bytes()
            .iter()
            .map(|&byte| char::from(byte))
            .collect()
    });
    let text = text.replace(turns_text, "").replace(char::is_control, " ");
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = (0..=DESCRIPTION_MAX.min(line.len()))
        .rev()
        .find(|&at| line.is_char_boundary(at));
    line.truncate(end.unwrap_or_default());
    if SAY_NOTHING.contains(&line.to_uppercase().as_str()) {
        String::new()
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn exif(text: &[u8]) -> Vec<u8> {
        let mut block = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x0e\x01\x02\0".to_vec();
        block.extend((text.len() as u32).to_le_bytes());
        block.extend(26_u32.to_le_bytes());
        block.extend([0; 4]);
        block.extend(text);
        block
    }

    fn xmp(text: &str) -> Vec<u8> {
        let item = format!("<rdf:Alt><rdf:li xml:lang=\"x-default\">{text}</rdf:li></rdf:Alt>");
        format!("<x:xmpmeta><dc:description>{item}</dc:description></x:xmpmeta>").into_bytes()
    }

    #[test]
    fn description_is_found_at_either_end_as_one_clean_line() {
        let check = |file: &[u8], expected: &str| {
            assert_eq!(description(&mut Cursor::new(file)).unwrap(), expected);
        };
        let pixels = vec![7; 600 << 10];
        check(b"", "");
        check(&pixels, "");
        check(&exif(b"A lake\0"), "A lake");
        check(
            &[exif(b"A lake\r\nat dawn \x1b[1m\0"), pixels.clone()].concat(),
            "A lake at dawn [1m",
        );
        check(
            &[&pixels[..], &xmp("M\u{e4}hne &amp; B&lt;r")].concat(),
            "M\u{e4}hne & B<r",
        );
        check(&[exif(b"by EXIF"), xmp("by XMP")].concat(), "by XMP");
        check(
            &xmp("a&#xA;&#228;&#x1F600;&unknown; &#x110000; &"),
            "a \u{e4}\u{1f600}&unknown; &#x110000; &",
        );
        check(
            b"<dc:description><rdf:Alt><rdf:li xml:lang=\"x-default\"/></rdf:Alt></dc:description>",
            "",
        );
        check(b"<dc:description>plain</dc:description>", "plain");
        check(&xmp("a\u{202e}b &#x2066;c"), "ab c");
        check(&exif(b"by K\xf6ln"), "by K\u{f6}ln");
        check(
            &[exif(b"OLYMPUS DIGITAL CAMERA         \0"), exif(b"Sea\0\0")].concat(),
            "Sea",
        );
        check(
            &xmp(&"\u{e4}".repeat(5000)),
            &"\u{e4}".repeat(DESCRIPTION_MAX / 2),
        );
        for cut in 0..exif(b"A lake").len() - 1 {
            check(&exif(b"A lake")[..cut], "");
        }
    }
}
