//! Answers and log lines of hyprpaper.

use crate::input::start;
use murald::internals::parsers::backends::hyprpaper;

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
    hyprpaper(text);
}
