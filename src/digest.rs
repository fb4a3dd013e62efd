//! Digests, and their letters: hexadecimal, whole or only the beginning.

use sha2::{Digest, Sha256};

/// The SHA-256 of a file's content.
pub type Checksum = [u8; 32];

/// Two letters for each byte.
pub fn hex(bytes: &[u8]) -> String {
    letters(bytes).collect()
}

/// The same, one by one: formatting was a tenth of what a list of images costs.
pub(crate) fn letters(bytes: &[u8]) -> impl Iterator<Item = char> {
    let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
    bytes.iter().flat_map(move |byte| [digit(byte >> 4), digit(byte & 15)])
}

/// A short name for some content: that many bytes of its SHA-256.
pub(crate) fn short(content: impl AsRef<[u8]>, bytes: usize) -> String {
    hex(&Sha256::digest(content.as_ref())[..bytes])
}
