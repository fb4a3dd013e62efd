//! Heads of HTTP requests: a whole one ends where it says, and no sooner.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::http::fuzz::head;

fuzz_target!(|data: &[u8]| {
    if let Ok(Some((size, path, query))) = head(data) {
        assert_eq!(head(&data[..size]), Ok(Some((size, path, query))));
        assert!(!matches!(head(&data[..size - 1]), Ok(Some(_))));
    }
});
