//! The graphics protocol of kitty, ghostty and WezTerm: raw pixels as base64, in pieces.

use std::fmt::Write as _;

use super::Raster;

/// Bytes of base64 in a piece, by the protocol at most 4096.
const PIECE: usize = 4096;

pub(super) fn encode(raster: &Raster, columns: u32, rows: u32) -> String {
    let text = base64(raster.pixels.as_flattened());
    let Raster { width, height, .. } = raster;
    let mut out = String::new();
    let mut pieces = text.as_bytes().chunks(PIECE).peekable();
    let mut first = true;
    while let Some(piece) = pieces.next() {
        out.push_str("\x1b_G");
        if first {
            // Shown at once (a=T), 24 bits (f=24), without an answer (q=2).
            write!(out, "a=T,f=24,q=2,s={width},v={height},c={columns},r={rows},")
                .expect("a String takes all");
            first = false;
        }
        let more = u8::from(pieces.peek().is_some());
        let piece = std::str::from_utf8(piece).expect("base64 is ASCII");
        write!(out, "m={more};{piece}\x1b\\").expect("a String takes all");
    }
    out.push('\n');
    out
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at > three.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::two;
    use super::*;

    #[test]
    fn base64_as_rfc_4648_has_it() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn small_pictures_are_one_piece() {
        assert_eq!(encode(&two(), 3, 1), "\x1b_Ga=T,f=24,q=2,s=2,v=1,c=3,r=1,m=0;/wAAAAAA\x1b\\\n");
    }
}
