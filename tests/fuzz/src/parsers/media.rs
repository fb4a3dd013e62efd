//! Parsers of EXIF and colour profiles with plain types, for the targets of `tests/fuzz`. Part of its
//! module with `cfg(parsers)`.

use std::io::Cursor;

use super::icc::{Profile, Samples};
use super::{Error, exif};

/// The orientation in an EXIF block, 1 to 8.
pub fn orientation(block: &[u8]) -> u8 {
    exif::orientation(block).to_exif()
}

/// The orientation in the boxes of AVIF and HEIC, and the size of an SVG.
pub fn traits(file: &[u8]) -> Option<(u8, (u32, u32))> {
    let Err(Error::NeedsTranscoder { traits, .. }) = super::format(&mut Cursor::new(file)) else {
        return None;
    };
    Some((traits.orientation, traits.size))
}

/// Converts the pixels of a grey, RGB or CMYK picture with this profile to sRGB; false if the profile is
/// not for such pictures.
pub fn convert(profile: &[u8], inks: usize, pixels: &mut [u8; 256]) -> bool {
    let samples = match inks {
        1 => Samples::Gray,
        4 => Samples::Cmyk,
        _ => Samples::Rgb,
    };
    let Some(profile) = Profile::read(profile, samples) else {
        return false;
    };
    if let Some(conversion) = profile.of_inks() {
        conversion.apply(pixels, &mut [0; 192]);
    }
    profile.convert(pixels, 4);
    true
}
