//! EXIF blocks: there are eight ways to turn a picture, and a description is a short line.

use murald::internals::parsers::media::{described, orientation};

pub(crate) fn run(data: &[u8]) {
    assert!((1..=8).contains(&orientation(data)));
    let line = described(data);
    assert!(line.len() <= 4096 && !line.contains(char::is_control), "{line:?}");
}
