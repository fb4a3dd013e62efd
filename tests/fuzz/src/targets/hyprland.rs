//! Hyprland's protocol: in whatever pieces it comes, it says the same.

use murald::internals::parsers::ipc::hyprland;

pub(crate) fn run(data: &[u8]) {
    let whole = hyprland(data, usize::MAX);
    assert_eq!(hyprland(data, 7), whole);
}
