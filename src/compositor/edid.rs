//! The name that a monitor gives itself in its EDID, and its serial number.

use super::identity::Identity;

/// Where the four descriptors of 18 bytes begin (VESA E-EDID 1.4, section 3.10).
const DESCRIPTORS: std::ops::Range<usize> = 54..126;
const NAME_TAG: u8 = 0xfc;
const SERIAL_TAG: u8 = 0xff;

/// Maker's code and model, such as `DEL DELL U2720Q`.
pub(super) fn name(edid: &[u8]) -> Option<String> {
    let Identity { make, model, .. } = identity(edid);
    (!model.is_empty()).then(|| format!("{make} {model}"))
}

/// Maker's code, model and serial number; empty is what it does not say.
pub(super) fn identity(edid: &[u8]) -> Identity {
    let header = [0, 255, 255, 255, 255, 255, 255, 0];
    let Some(block) = edid.get(..128).filter(|block| block.starts_with(&header)) else {
        return Identity::default();
    };
    // Three letters of five bits each, 1 for A.
    let code = u16::from_be_bytes([block[8], block[9]]);
    let make: String = [10, 5, 0]
        .map(|shift| char::from(b'@' + u8::try_from(code >> shift & 31).unwrap_or(0)))
        .iter()
        .collect();
    // Of two of a kind only the number differs that some put there in place of a text.
    let number = u32::from_le_bytes([block[12], block[13], block[14], block[15]]);
    let number = (number != 0).then(|| number.to_string());
    let serial = text(block, SERIAL_TAG).or(number).unwrap_or_default();
    Identity { make, model: text(block, NAME_TAG).unwrap_or_default(), serial }
}

/// What a descriptor of this kind says.
fn text(block: &[u8], tag: u8) -> Option<String> {
    block[DESCRIPTORS].chunks_exact(18).find_map(|descriptor| {
        let text = descriptor.strip_prefix(&[0, 0, 0, tag, 0])?;
        let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
        let text: String = text[..end].iter().map(|&byte| printable(byte)).collect();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    })
}

fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<u8> {
        let mut edid = vec![0; 128];
        edid[1..7].fill(255);
        edid[8..10].copy_from_slice(&[0x10, 0xac]);
        edid[72..77].copy_from_slice(&[0, 0, 0, NAME_TAG, 0]);
        edid[77..90].copy_from_slice(b"DELL U2720Q\n ");
        edid
    }

    #[test]
    fn names() {
        assert_eq!(name(&block()).as_deref(), Some("DEL DELL U2720Q"));
        assert_eq!(name(&block()[..127]), None);
        assert_eq!(identity(&block()).serial, "");
        let mut numbered = block();
        numbered[12..16].copy_from_slice(&[1, 2, 0, 0]);
        assert_eq!(identity(&numbered).serial, "513");
        numbered[90..95].copy_from_slice(&[0, 0, 0, SERIAL_TAG, 0]);
        numbered[95..103].copy_from_slice(b"8XK5H13\n");
        let told = identity(&numbered);
        let told = (told.make.as_str(), told.model.as_str(), told.serial.as_str());
        assert_eq!(told, ("DEL", "DELL U2720Q", "8XK5H13"));
        assert_eq!(name(&[0; 128]), None);
        let mut odd = block();
        odd[77..90].copy_from_slice(b"\x07\xffbcdefghijkl");
        assert_eq!(name(&odd).as_deref(), Some("DEL ??bcdefghijkl"));
    }
}
