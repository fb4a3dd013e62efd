//! TIFF and BigTIFF, see [`crate::input::picture`].

use crate::input::picture;

pub(crate) fn run(data: &[u8]) {
    picture(data, |data| {
        data.starts_with(b"II") || data.starts_with(b"MM")
    });
}
