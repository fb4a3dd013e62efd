//! Chunked bodies: a body that is accepted is the same when it is sent again as a single chunk.

use crate::input::answers;
use murald::internals::parsers::http::connection;

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";

pub(crate) fn run(data: &[u8]) {
    let data = &data[..data.len().min(32 << 10)];
    let answered = connection(&[HEAD, data].concat());
    if let [(200, body)] = &answers(&answered)[..] {
        let size = format!("{:x}\r\n", body.len());
        let end: &[u8] = if body.is_empty() {
            b"\r\n"
        } else {
            b"\r\n0\r\n\r\n"
        };
        let again = connection(&[HEAD, size.as_bytes(), body, end].concat());
        assert_eq!(answers(&again), [(200, *body)]);
    }
}
