//! Reads and writes messages with plain types, for the targets of `tests/fuzz`. Part of its module with
//! `cfg(parsers)`.

use super::message::{Request, Response, line};

pub fn request(bytes: &[u8]) -> Option<Vec<u8>> {
    Request::read(bytes).map(|request| line(&request))
}

pub fn response(bytes: &[u8]) -> Option<Vec<u8>> {
    Response::read(bytes).map(|response| line(&response))
}
