//! Boxes of AVIF and HEIC, and the text of SVG: orientation and size are in range.

use murald::internals::parsers::media::traits;

pub(crate) fn run(data: &[u8]) {
    let Some((orientation, (width, height))) = traits(data) else {
        return;
    };
    assert!(orientation <= 8 && width <= 8192 && height <= 8192);
    assert_eq!(width == 0, height == 0);
}
