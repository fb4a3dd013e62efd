//! Sway's protocol: in whatever pieces it comes, it says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::parallax::fuzz::sway;

fuzz_target!(|data: &[u8]| {
    let whole = sway(data, usize::MAX);
    assert_eq!(sway(data, 7), whole);
});
