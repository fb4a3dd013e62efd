//! Event streams: the pieces in which they are read do not matter.

use murald::internals::parsers::cli::events;

pub(crate) fn run(data: &[u8]) {
    let whole = events(data, usize::MAX);
    for piece in [1, 7] {
        assert_eq!(events(data, piece), whole);
    }
}
