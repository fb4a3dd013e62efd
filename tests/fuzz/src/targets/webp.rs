//! WebP, see [`crate::input::picture`].

use crate::input::picture;

pub(crate) fn run(data: &[u8]) {
    picture(data, |data| {
        data.starts_with(b"RIFF") && data.get(8..12) == Some(b"WEBP")
    });
}
