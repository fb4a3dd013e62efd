//! EXIF blocks: there are eight ways to turn a picture.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::media::fuzz::orientation;

fuzz_target!(|data: &[u8]| assert!((1..=8).contains(&orientation(data))));
