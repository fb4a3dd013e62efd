//! For the targets of `tests/fuzz`: messages, read and written again, by plain types. A part of its module in debug builds only.

use super::message::{Request, Response, line};

pub fn request(bytes: &[u8]) -> Option<Vec<u8>> {
    Request::read(bytes).map(|request| line(&request))
}

pub fn response(bytes: &[u8]) -> Option<Vec<u8>> {
    Response::read(bytes).map(|response| line(&response))
}
