//! Parts of files: what is sent lies in the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::http::fuzz::range;

fuzz_target!(|input: (u64, &str)| {
    let (length, text) = input;
    if let Some((first, last)) = range(text, length) {
        assert!(first <= last && last < length);
    }
});
