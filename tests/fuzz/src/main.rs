//! Gives bytes to the parser that the environment names; libFuzzer, which has `main`, thinks of them.

#![no_main]

mod input;
mod targets;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};

/// Seconds of processor time for one input. libFuzzer's own limit goes by the clock: it fails inputs on a busy
/// machine, and is here for parsers that wait.
const SECONDS_MAX: i64 = 60;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names one of the files in targets");
    let found = targets::ALL.iter().find(|(target, _)| *target == name);
    found.unwrap_or_else(|| panic!("there is no targets/{name}.rs")).1
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
