//! Answers of wal-qt's host.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::backends::fuzz::wal_qt;

fuzz_target!(|text: &str| {
    wal_qt(text);
});
