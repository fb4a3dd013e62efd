//! Hyprland's protocol: the pieces in which it is read do not matter.

use murald::internals::parsers::ipc::hyprland;

pub(crate) fn run(data: &[u8]) {
    let whole = hyprland(data, usize::MAX);
    assert_eq!(hyprland(data, 7), whole);
}
