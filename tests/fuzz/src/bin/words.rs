//! Times of the day, colours and paths as people write them.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use murald::internals::color::{hex, parse};
use murald::internals::paths::{Dirs, Env};
use murald::internals::wire::DayTime;

static DIRS: LazyLock<Dirs> = LazyLock::new(|| {
    let env = Env::from([("HOME", "/home/user"), ("X", "/x"), ("EMPTY", "")]);
    Dirs::new(env).expect("there is a home")
});

fuzz_target!(|text: &str| {
    if let Ok(time) = text.parse::<DayTime>() {
        assert_eq!(time.to_string().parse(), Ok(time));
    }
    if let Some(color) = parse(text) {
        assert_eq!(parse(&hex(color)), Some(color));
    }
    if let Ok(path) = DIRS.expand(text) {
        assert!(path.is_absolute());
    }
    DIRS.expand_socket(text).ok();
});
