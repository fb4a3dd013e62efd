//! Command lines, one word a line: an error has a message.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use murald::internals::parsers::cli::arguments;

pub(crate) fn run(data: &[u8]) {
    let words = data.split(|&byte| byte == b'\n').take(32);
    let words = words
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    if let Err(error) = arguments(words) {
        assert!(
            error
                .strip_prefix("murald: ")
                .is_some_and(|why| !why.is_empty())
        );
    }
}
