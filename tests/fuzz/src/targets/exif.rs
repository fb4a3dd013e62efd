//! EXIF blocks: the orientation is 1 to 8.

use murald::internals::parsers::media::orientation;

pub(crate) fn run(data: &[u8]) {
    assert!((1..=8).contains(&orientation(data)));
}
