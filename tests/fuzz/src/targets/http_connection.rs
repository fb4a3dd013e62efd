//! A connection, with as many requests as there are: what comes back are answers, whole and one
//! behind the other.

use crate::input::answers;
use murald::internals::parsers::http::connection;

pub(crate) fn run(data: &[u8]) {
    // More answers than fit into a socket would have to be read meanwhile.
    let answered = connection(&data[..data.len().min(8 << 10)]);
    answers(&answered);
}
