//! What mpv says over its socket.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::backends::fuzz::mpv;

fuzz_target!(|data: &[u8]| {
    mpv(&data[..data.len().min(32 << 10)]);
});
