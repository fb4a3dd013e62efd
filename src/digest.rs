//! SHA-256 checksums, and bytes in hexadecimal.

use sha2::{Digest, Sha256};

/// The SHA-256 of a file's content.
pub type Checksum = [u8; 32];

/// Two letters for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(2 * bytes.len());
    push_hex(bytes, &mut text);
    String::from_utf8(text).expect("digits are ASCII")
}

/// Appends them; a checksum's at once, because byte by byte they were much of what a list costs.
pub(crate) fn push_hex(bytes: &[u8], text: &mut Vec<u8>) {
    let (checksums, rest) = bytes.as_chunks::<32>();
    checksums.iter().for_each(|checksum| text.extend(hex_of(checksum).as_flattened()));
    rest.iter().for_each(|&byte| text.extend(hex_of(&[byte]).as_flattened()));
}

/// The same of so few that their number is known.
pub(crate) fn hex_of<const BYTES: usize>(bytes: &[u8; BYTES]) -> [[u8; 2]; BYTES] {
    let digit = |four: u8| four + if four < 10 { b'0' } else { b'a' - 10 };
    bytes.map(|byte| [digit(byte >> 4), digit(byte & 15)])
}

/// A short name for some content: that many bytes of its SHA-256.
pub(crate) fn short(content: impl AsRef<[u8]>, bytes: usize) -> String {
    hex(&Sha256::digest(content.as_ref())[..bytes])
}
