//! Gives bytes to the parser that the environment names; libFuzzer, which has `main`, thinks of them.

#![no_main]

mod input;
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names one of the files in targets");
    let found = targets::ALL.iter().find(|(target, _)| *target == name);
    found.unwrap_or_else(|| panic!("there is no targets/{name}.rs")).1
});

fuzz_target!(init: LazyLock::force(&TARGET), |data: &[u8]| TARGET(data));
