//! Messages of the program that draws: what was read and is written anew says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::draw::fuzz::{request, response};

fuzz_target!(|data: &[u8]| {
    for read in [request, response] {
        if let Some(line) = read(data) {
            assert_eq!(read(&line), Some(line));
        }
    }
});
