//! How a picture is turned for showing, as cameras note it in EXIF.

pub(super) use image::metadata::Orientation;

/// The orientation in the EXIF block of a file; damaged blocks have none.
pub(super) fn orientation(block: &[u8]) -> Orientation {
    // JPEG puts this before the block, and so do some writers of PNG and WebP.
    let block = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    Orientation::from_exif_chunk(block).unwrap_or(Orientation::NoTransforms)
}

/// Turns (width, height) of the file into those of the screen, and back.
pub(super) fn size(orientation: Orientation, (width, height): (u32, u32)) -> (u32, u32) {
    match orientation {
        Orientation::NoTransforms
        | Orientation::FlipHorizontal
        | Orientation::Rotate180
        | Orientation::FlipVertical => (width, height),
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => (height, width),
    }
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
    fn exif_orientation_is_read_in_either_byte_order() {
        assert_eq!(orientation(&block(6)), Orientation::Rotate90);
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0";
        assert_eq!(orientation(little), Orientation::Rotate270);
        for bad in [&b""[..], b"Exif\0\0", b"II*\0\xff\xff\xff\xff", &block(6)[..20], &block(9)] {
            assert_eq!(orientation(bad), Orientation::NoTransforms, "{bad:?}");
        }
    }
}
