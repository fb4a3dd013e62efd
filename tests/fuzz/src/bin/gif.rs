//! GIF, see [`murald_fuzz::picture`].

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald_fuzz::picture;

fuzz_target!(|data: &[u8]| picture(data, |data| data.starts_with(b"GIF8")));
