//! Query strings, and what percent-encoding hides.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::http::fuzz::{decoded, query};

fuzz_target!(|text: &str| {
    query(text);
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(decoded(&encoded, true).as_deref(), Some(text));
    if let Some(plain) = decoded(text, false) {
        assert!(plain.len() <= text.len());
    }
});
