//! Reads the orientation of an image from EXIF.

pub(super) use image::metadata::Orientation;

/// Returns the orientation in an EXIF block, or none if the block is damaged.
pub(super) fn orientation(block: &[u8]) -> Orientation {
    // JPEG requires this prefix; some writers of PNG and WebP add it, too.
    let block = block.strip_prefix(b"Exif\0\0").unwrap_or(block);
    Orientation::from_exif_chunk(block).unwrap_or(Orientation::NoTransforms)
}

/// Converts a size between the orientation of the file and that of the screen, in either direction.
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

    /// An EXIF block with an orientation only.
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
        for bad in [
            &b""[..],
            b"Exif\0\0",
            b"II*\0\xff\xff\xff\xff",
            &block(6)[..20],
            &block(9),
        ] {
            assert_eq!(orientation(bad), Orientation::NoTransforms, "{bad:?}");
        }
    }
}
