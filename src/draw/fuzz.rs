//! What `tests/fuzz` sees of this room: its messages, read and written anew. The product calls none of
//! it.

use super::message::{Request, Response, line};

pub fn request(bytes: &[u8]) -> Option<Vec<u8>> {
    Request::read(bytes).map(|request| line(&request))
}

pub fn response(bytes: &[u8]) -> Option<Vec<u8>> {
    Response::read(bytes).map(|response| line(&response))
}
