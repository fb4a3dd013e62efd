//! A monitor's EDID: its names have printable ASCII only.

use crate::input::{halves, text};
use murald::internals::parsers::compositor::{described, edid};

pub(crate) fn run(data: &[u8]) {
    let told = edid(data);
    assert!(
        told.concat()
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    );
    let (names, description) = halves(text(data));
    let (make, model) = halves(names);
    described(make, model, description, "DP-1");
}
