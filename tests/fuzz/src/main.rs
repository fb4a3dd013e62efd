//! Passes libFuzzer's inputs to the parser that `FUZZ_TARGET` names. `main` is in libFuzzer.

#![no_main]

mod input;
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};

/// The most seconds of processor time for one input. libFuzzer's own limit is of elapsed time, which
/// would fail inputs on a busy machine; it is set for parsers that block.
const SECONDS_MAX: i64 = 60;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names one of the files in targets");
    let found = targets::ALL.iter().find(|(target, _)| *target == name);
    found
        .unwrap_or_else(|| panic!("there is no targets/{name}.rs"))
        .1
});

fuzz_target!(init: LazyLock::force(&TARGET), |data: &[u8]| {
    let before = processor_seconds();
    TARGET(data);
    let seconds = processor_seconds() - before;
    assert!(seconds <= SECONDS_MAX, "{seconds} s of processor time for one input");
});

fn processor_seconds() -> i64 {
    clock_gettime(ClockId::ProcessCPUTime).tv_sec
}
