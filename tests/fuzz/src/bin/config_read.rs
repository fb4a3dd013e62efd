//! The settings' file: whatever can be read still can once it is completed, and says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::config::fuzz::{completed, read};

fuzz_target!(|text: &str| {
    if let Ok(said) = read(text) {
        let text = completed(text).expect("it can be read");
        assert_eq!(read(&text), Ok(said));
        assert_eq!(completed(&text), Some(text));
    }
});
