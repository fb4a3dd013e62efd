//! Times of day, colours and paths, as users write them.

use std::sync::LazyLock;

use crate::input::start;
use murald::internals::color::{hex, parse};
use murald::internals::paths::{Dirs, Env};
use murald::internals::wire::DayTime;

static DIRS: LazyLock<Dirs> = LazyLock::new(|| {
    let env = Env::from([("HOME", "/home/user"), ("X", "/x"), ("EMPTY", "")]);
    Dirs::new(env).expect("there is a home")
});

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
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
}
