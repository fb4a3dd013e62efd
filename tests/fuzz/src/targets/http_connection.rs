//! A connection with any number of requests: its output is a sequence of complete answers.

use crate::input::answers;
use murald::internals::parsers::http::connection;

pub(crate) fn run(data: &[u8]) {
    // More answers might not fit into the socket, which is not read until the end.
    let answered = connection(&data[..data.len().min(8 << 10)]);
    answers(&answered);
}
