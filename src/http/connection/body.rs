//! Reads the body of a request: with a known length, or in chunks.

use std::io::{self, Read};
use std::time::Instant;

use chunked_transfer::Decoder;

use super::{Connection, LATE, Stop};
use crate::http::parse::{Framing, Refusal};

/// A chunk of one byte takes six.
const CHUNKED: usize = 6;

const BAD_CHUNKS: Stop = Stop::Refuse(Refusal {
    status: 400,
    why: "the chunks are malformed",
});
const TOO_LARGE: Stop = Stop::Refuse(Refusal {
    status: 413,
    why: "the body is larger than 8 MiB",
});

impl Connection<'_> {
    /// Reads the body after a head.
    pub(super) fn body(&mut self, framing: Framing) -> Result<Vec<u8>, Stop> {
        let length = framing.length;
        if framing.wants_continue && length != Some(0) && self.input.is_empty() {
            self.output
                .extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let limit = self.shared.limits.body;
        let now = Instant::now();
        let mut bytes = BodyBytes {
            connection: self,
            since: now,
            last: now,
            left: length.unwrap_or(CHUNKED * limit),
            stop: None,
        };
        let mut body = Vec::new();
        let read = match length {
            Some(_) => bytes.read_to_end(&mut body),
            None => Decoder::new(&mut bytes)
                .take(limit as u64 + 1)
                .read_to_end(&mut body),
        };
        match (read, bytes.stop) {
            (_, Some(stop)) => Err(stop),
            (Err(_), None) => Err(BAD_CHUNKS),
            (Ok(_), None) if body.len() > limit => Err(TOO_LARGE),
            (Ok(_), None) => Ok(body),
        }
    }
}

/// The bytes of a body as they are sent, with its deadlines.
struct BodyBytes<'c, 's> {
    connection: &'c mut Connection<'s>,
    /// When the body began, and when its last piece arrived.
    since: Instant,
    last: Instant,
    left: usize,
    /// Why reading failed.
    stop: Option<Stop>,
}

impl Read for BodyBytes<'_, '_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let most = piece.len().min(self.left);
        if most == 0 {
            return Ok(0);
        }
        if self.connection.input.is_empty() {
            let limits = &self.connection.shared.limits;
            let deadline = (self.last + limits.pause).min(self.since + limits.body_time);
            self.connection.input.expect(self.left);
            self.connection.fill(deadline, LATE).map_err(|stop| {
                self.stop = Some(stop);
                io::ErrorKind::Other
            })?;
            self.last = Instant::now();
        }
        let unread = self.connection.input.unread();
        let most = most.min(unread.len());
        piece[..most].copy_from_slice(&unread[..most]);
        self.connection.input.consume(most);
        self.left -= most;
        Ok(most)
    }
}
