//! Event streams: in whatever pieces they come, they say the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::cli::fuzz::events;

fuzz_target!(|data: &[u8]| {
    let whole = events(data, usize::MAX);
    for piece in [1, 7] {
        assert_eq!(events(data, piece), whole);
    }
});
