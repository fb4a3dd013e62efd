//! The outputs that awww lists, and the versions that programs print.

use crate::input::start;
use murald::internals::parsers::backends::{awww, version};

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
    assert!(awww(text) <= text.lines().count());
    if let Some((found, numbers)) = version(text) {
        assert_eq!(version(&found), Some((found, numbers)));
    }
}
