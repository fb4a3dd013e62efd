//! EXIF blocks: the orientation is 1 to 8, and a description is one line of limited length.

use murald::internals::parsers::media::{described, orientation};

pub(crate) fn run(data: &[u8]) {
    assert!((1..=8).contains(&orientation(data)));
    let line = described(data);
    assert!(
        line.len() <= 4096 && !line.contains(char::is_control),
        "{line:?}"
    );
}
