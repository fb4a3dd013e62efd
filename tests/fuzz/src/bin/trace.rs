//! A client's conversation with its compositor, as libwayland writes it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::backends::fuzz::trace;

fuzz_target!(|text: &str| {
    let (drawn, is_done, is_idle) = trace(text);
    assert!(!(is_done && (is_idle || drawn == 0)));
});
