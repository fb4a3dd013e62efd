//! Messages of the drawing process: writing and reading a message again does not change it.

use murald::internals::parsers::draw::{request, response};

pub(crate) fn run(data: &[u8]) {
    for read in [request, response] {
        if let Some(line) = read(data) {
            assert_eq!(read(&line), Some(line));
        }
    }
}
