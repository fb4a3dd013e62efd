//! A client's messages with its compositor, in libwayland's debug format.

use crate::input::start;
use murald::internals::parsers::backends::trace;

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
    let (drawn, is_done, is_idle) = trace(text);
    assert!(!(is_done && (is_idle || drawn == 0)));
}
