//! EXIF blocks: there are eight ways to turn a picture.

use murald::internals::parsers::media::orientation;

pub(crate) fn run(data: &[u8]) {
    assert!((1..=8).contains(&orientation(data)));
}
