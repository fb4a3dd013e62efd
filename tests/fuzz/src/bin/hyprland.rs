//! Hyprland's protocol: in whatever pieces it comes, it says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::parallax::fuzz::hyprland;

fuzz_target!(|data: &[u8]| {
    let whole = hyprland(data, usize::MAX);
    assert_eq!(hyprland(data, 7), whole);
});
