//! Digests, and their letters: hexadecimal, whole or only the beginning.

use sha2::{Digest, Sha256};

/// The SHA-256 of a file's content.
pub type Checksum = [u8; 32];

/// Two letters for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(2 * bytes.len());
    push_hex(bytes, &mut text);
    String::from_utf8(text).expect("digits are ASCII")
}

/// Appends them; a checksum's at once, because letter by letter they were much of what a list costs.
pub(crate) fn push_hex(bytes: &[u8], text: &mut Vec<u8>) {
    let digit = |four: u8| four + if four < 10 { b'0' } else { b'a' - 10 };
    for part in bytes.chunks(32) {
        let mut letters = [0; 64];
        for (pair, byte) in letters.as_chunks_mut().0.iter_mut().zip(part) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        text.extend(&letters[..2 * part.len()]);
    }
}

/// A short name for some content: that many bytes of its SHA-256.
pub(crate) fn short(content: impl AsRef<[u8]>, bytes: usize) -> String {
    hex(&Sha256::digest(content.as_ref())[..bytes])
}
