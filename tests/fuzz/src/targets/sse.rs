//! Event streams: in whatever pieces they come, they say the same.

use murald::internals::parsers::cli::events;

pub(crate) fn run(data: &[u8]) {
    let whole = events(data, usize::MAX);
    for piece in [1, 7] {
        assert_eq!(events(data, piece), whole);
    }
}
