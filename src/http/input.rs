//! The bytes that a client has sent and no request has used yet.

use std::io;
use std::os::unix::net::UnixStream;

use rustix::buffer::spare_capacity;

/// Bytes reserved for one read; most requests fit.
const PIECE: usize = 4 << 10;
/// A larger buffer is not kept for the next request.
const KEPT: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// Bytes before this were consumed.
    at: usize,
}

impl Input {
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.at += bytes;
        debug_assert!(self.at <= self.bytes.len(), "consumed more than was read");
    }

    /// Reads once; returns the number of bytes, 0 at the end.
    pub(super) fn fill(&mut self, socket: &UnixStream) -> io::Result<usize> {
        self.drain();
        self.bytes.reserve(PIECE);
        Ok(rustix::io::read(socket, spare_capacity(&mut self.bytes))?)
    }

    /// Reserves space for so many bytes, up to the limit of a single read.
    pub(super) fn expect(&mut self, bytes: usize) {
        self.drain();
        self.bytes.reserve(bytes.min(KEPT));
    }

    fn drain(&mut self) {
        self.bytes.drain(..self.at);
        self.at = 0;
    }

    pub(super) fn trim(&mut self) {
        if self.is_empty() && self.bytes.capacity() > KEPT {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn input_is_consumed_in_pieces_and_large_buffers_freed() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut input = Input::default();
        far.write_all(b"onetwo").unwrap();
        assert_eq!(input.fill(&near).unwrap(), 6);
        input.consume(3);
        assert_eq!(input.unread(), b"two");
        far.write_all(&[b'x'; 100_000]).unwrap();
        while input.unread().len() < 100_003 {
            assert!(input.fill(&near).unwrap() > 0);
        }
        input.consume(100_003);
        input.trim();
        assert_eq!(input.bytes.capacity(), 0);
        drop(far);
        assert_eq!(input.fill(&near).unwrap(), 0);
    }
}
