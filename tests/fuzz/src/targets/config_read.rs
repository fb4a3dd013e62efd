//! A file of settings: if it is valid, the completed file is valid, too, and has the same values.

use crate::input::start;
use murald::internals::parsers::config::{completed, read};

pub(crate) fn run(data: &[u8]) {
    let text = start(data);
    if let Ok(said) = read(text) {
        let text = completed(text).expect("it can be read");
        assert_eq!(read(&text), Ok(said));
        assert_eq!(completed(&text), Some(text));
    }
}
