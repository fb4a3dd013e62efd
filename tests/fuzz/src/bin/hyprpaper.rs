//! What hyprpaper says, and logs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use murald::internals::backends::fuzz::hyprpaper;

fuzz_target!(|text: &str| {
    hyprpaper(text);
});
