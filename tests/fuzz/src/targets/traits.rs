//! Reads the parts of files that other programs decode: the boxes of AVIF and HEIC, the text of SVG.

use murald::internals::parsers::media::traits;

pub(crate) fn run(data: &[u8]) {
    let Some((orientation, (width, height))) = traits(data) else { return };
    assert!(orientation <= 8 && width <= 8192 && height <= 8192);
    assert_eq!(width == 0, height == 0);
}
