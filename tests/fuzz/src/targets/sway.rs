//! Sway's protocol: in whatever pieces it comes, it says the same.

use murald::internals::parsers::ipc::sway;

pub(crate) fn run(data: &[u8]) {
    let whole = sway(data, usize::MAX);
    assert_eq!(sway(data, 7), whole);
}
