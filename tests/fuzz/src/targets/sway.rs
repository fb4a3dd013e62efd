//! Sway's protocol: the pieces in which it is read do not matter.

use murald::internals::parsers::ipc::sway;

pub(crate) fn run(data: &[u8]) {
    let whole = sway(data, usize::MAX);
    assert_eq!(sway(data, 7), whole);
}
