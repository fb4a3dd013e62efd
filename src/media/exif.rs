//! How a picture is to be turned for showing, as cameras note it in EXIF.

/// The eight ways; the numbers are EXIF's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Orientation {
    #[default]
    Upright = 1,
    MirroredX = 2,
    Turned180 = 3,
    MirroredY = 4,
    Transposed = 5,
    Turned90 = 6,
    Transversed = 7,
    Turned270 = 8,
}

impl Orientation {
    /// Numbers that EXIF does not know are upright.
    pub(super) fn from_exif(value: u16) -> Self {
        match value {
            2 => Self::MirroredX,
            3 => Self::Turned180,
            4 => Self::MirroredY,
            5 => Self::Transposed,
            6 => Self::Turned90,
            7 => Self::Transversed,
            8 => Self::Turned270,
            _ => Self::Upright,
        }
    }

    /// Of the EXIF block of a file; damaged blocks count as none.
    pub(super) fn of_exif(block: &[u8]) -> Self {
        tag(block).map_or_else(Self::default, Self::from_exif)
    }

    /// Width and height change places between file and screen.
    pub(super) fn swaps(self) -> bool {
        self as u8 >= 5
    }

    /// Turns (width, height) of the file into those of the screen, and back.
    pub(super) fn size(self, (width, height): (u32, u32)) -> (u32, u32) {
        if self.swaps() { (height, width) } else { (width, height) }
    }

    /// Where the shown pixel (x, y) lies in a stored picture of this size.
    pub(super) fn source(self, x: usize, y: usize, (w, h): (usize, usize)) -> (usize, usize) {
        match self {
            Self::Upright => (x, y),
            Self::MirroredX => (w - 1 - x, y),
            Self::Turned180 => (w - 1 - x, h - 1 - y),
            Self::MirroredY => (x, h - 1 - y),
            Self::Transposed => (y, x),
            Self::Turned90 => (y, h - 1 - x),
            Self::Transversed => (w - 1 - y, h - 1 - x),
            Self::Turned270 => (w - 1 - y, x),
        }
    }
}

/// The orientation tag of the first directory of a TIFF structure.
fn tag(block: &[u8]) -> Option<u16> {
    const ORIENTATION: u16 = 0x0112;
    // JPEG puts this before the structure, and so do some writers of PNG and WebP.
    let block = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    let little = match block.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let bytes = block.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let u32_at = |at: usize| {
        let bytes = block.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = u32_at(4)? as usize;
    let entries = usize::from(u16_at(directory)?);
    let entry = (0..entries)
        .map(|number| directory + 2 + 12 * number)
        .find(|&entry| u16_at(entry) == Some(ORIENTATION))?;
    u16_at(entry + 8)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An EXIF block that holds nothing but an orientation.
    pub(in crate::media) fn block(orientation: u8) -> Vec<u8> {
        let mut block = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        block.extend([orientation, 0, 0, 0, 0, 0, 0]);
        block
    }

    #[test]
    fn the_tag_is_found_in_either_byte_order() {
        assert_eq!(Orientation::of_exif(&block(6)), Orientation::Turned90);
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0";
        assert_eq!(Orientation::of_exif(little), Orientation::Turned270);
        for bad in [&b""[..], b"Exif\0\0", b"II*\0\xff\xff\xff\xff", &block(6)[..20], &block(9)] {
            assert_eq!(Orientation::of_exif(bad), Orientation::Upright, "{bad:?}");
        }
    }

    #[test]
    fn the_shown_corner_comes_from_the_right_place() {
        // A stored picture of 3 × 2; where its shown top left pixel lies.
        let check = |value, expected| {
            let orientation = Orientation::from_exif(value);
            assert_eq!(orientation.source(0, 0, (3, 2)), expected, "{value}");
        };
        check(1, (0, 0));
        check(2, (2, 0));
        check(3, (2, 1));
        check(4, (0, 1));
        check(5, (0, 0));
        check(6, (0, 1));
        check(7, (2, 1));
        check(8, (2, 0));
    }
}
