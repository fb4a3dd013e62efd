//! Messages of the program that draws: what was read and is written anew says the same.

use murald::internals::parsers::draw::{request, response};

pub(crate) fn run(data: &[u8]) {
    for read in [request, response] {
        if let Some(line) = read(data) {
            assert_eq!(read(&line), Some(line));
        }
    }
}
