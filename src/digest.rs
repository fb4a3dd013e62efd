//! Computes SHA-256 checksums, and formats bytes in hexadecimal.

use sha2::{Digest, Sha256};

/// The SHA-256 of a file's content.
pub type Checksum = [u8; 32];

/// Formats bytes with two hexadecimal digits each.
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|&byte| hex_of(&[byte])[0].map(char::from))
        .collect()
}

/// Like [`hex`] for a fixed number of bytes; faster, for lists with many checksums.
pub(crate) fn hex_of<const BYTES: usize>(bytes: &[u8; BYTES]) -> [[u8; 2]; BYTES] {
    let digit = |four: u8| four + if four < 10 { b'0' } else { b'a' - 10 };
    bytes.map(|byte| [digit(byte >> 4), digit(byte & 15)])
}

pub(crate) fn sha256(content: impl AsRef<[u8]>) -> Checksum {
    Sha256::digest(content.as_ref()).into()
}

/// Returns a short name for some content: the first `bytes` bytes of its SHA-256, in hexadecimal.
pub(crate) fn short(content: impl AsRef<[u8]>, bytes: usize) -> String {
    hex(&Sha256::digest(content.as_ref())[..bytes])
}
