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

/// The position of the shown pixel (x, y) in a stored picture of this size.
pub(super) fn source(
    orientation: Orientation,
    (x, y): (usize, usize),
    (width, height): (usize, usize),
) -> (usize, usize) {
    match orientation {
        Orientation::NoTransforms => (x, y),
        Orientation::FlipHorizontal => (width - 1 - x, y),
        Orientation::Rotate180 => (width - 1 - x, height - 1 - y),
        Orientation::FlipVertical => (x, height - 1 - y),
        Orientation::Rotate90FlipH => (y, x),
        Orientation::Rotate90 => (y, height - 1 - x),
        Orientation::Rotate270FlipH => (width - 1 - y, height - 1 - x),
        Orientation::Rotate270 => (width - 1 - y, x),
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

    #[test]
    fn exif_orientation_maps_the_shown_corner_to_the_stored_pixel() {
        // A stored picture of 3 × 2; where its shown top left pixel lies.
        let check = |value, expected| {
            let orientation = Orientation::from_exif(value).unwrap();
            assert_eq!(source(orientation, (0, 0), (3, 2)), expected, "{value}");
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
