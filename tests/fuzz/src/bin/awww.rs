//! What awww says of its outputs, and all programs of their versions.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::backends::fuzz::{awww, version};

fuzz_target!(|text: &str| {
    assert!(awww(text) <= text.lines().count());
    if let Some((found, numbers)) = version(text) {
        assert_eq!(version(&found), Some((found, numbers)));
    }
});
