//! Bytes between a socket and the state machine of its connection.
//!
//! Sockets are non-blocking: every call here moves what the kernel takes or has, and says how it
//! went. Idle connections keep no memory.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::buffer::spare_capacity;

use super::limits::Permit;
use super::response::Body;

/// Read at a time.
const PIECE: usize = 16 << 10;
/// Bodies up to here are copied behind their heads, and answers gathered up to here.
const SMALL: usize = 16 << 10;
/// Of a file, at a time: then other connections have their turn.
const FILE_PIECE: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// Bytes before this were consumed.
    at: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// `drained`: the socket had no more.
    Some {
        drained: bool,
    },
    Nothing,
    /// The client sends no more, or is gone.
    End,
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

    /// Reads once.
    pub(super) fn fill(&mut self, socket: &UnixStream) -> Filled {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.reserve(PIECE);
        match rustix::io::read(socket, spare_capacity(&mut self.bytes)) {
            Ok(0) => Filled::End,
            Ok(_) => Filled::Some { drained: self.bytes.len() < self.bytes.capacity() },
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Filled::Nothing,
            Err(_) => Filled::End,
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.at = 0;
    }

    /// Gives the memory of an empty buffer to a thread's `spare`, or back.
    pub(super) fn park(&mut self, spare: &mut Vec<u8>) {
        if self.is_empty() && self.bytes.capacity() > 0 {
            self.clear();
            park(&mut self.bytes, spare);
        }
    }

    pub(super) fn unpark(&mut self, spare: &mut Vec<u8>) {
        if self.bytes.capacity() == 0 {
            std::mem::swap(&mut self.bytes, spare);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    at: usize,
    tail: Tail,
}

/// What follows the bytes.
#[derive(Debug, Default)]
enum Tail {
    #[default]
    Nothing,
    Bytes {
        bytes: Bytes,
        at: usize,
    },
    File {
        file: File,
        offset: u64,
        left: u64,
        _claim: Permit,
    },
}

#[derive(Debug)]
enum Bytes {
    Own(Cow<'static, [u8]>),
    Shared(Arc<[u8]>),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    All,
    /// The client takes no more for now; `some` was taken.
    Blocked {
        some: bool,
    },
    /// A large file has had its share of this turn.
    Paused,
    Gone,
}

impl Output {
    /// Where heads are written.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        debug_assert!(matches!(self.tail, Tail::Nothing), "a body is still on its way");
        &mut self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len() && matches!(self.tail, Tail::Nothing)
    }

    /// Whether it must be flushed before more is added.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() > SMALL || !matches!(self.tail, Tail::Nothing)
    }

    /// Adds a body; one in a file needs a `claim` for its descriptor.
    pub(super) fn body(&mut self, body: Body, claim: Option<Permit>) {
        let bytes = match (body, claim) {
            (Body::Bytes(bytes), _) => Bytes::Own(bytes),
            (Body::Shared(bytes), _) => Bytes::Shared(bytes),
            (Body::File { file, offset, length }, Some(claim)) => {
                self.tail = Tail::File { file, offset, left: length, _claim: claim };
                return;
            }
            (Body::File { .. }, None) => unreachable!("a file is sent under a claim"),
        };
        if bytes.get().len() <= SMALL {
            self.bytes.extend_from_slice(bytes.get());
        } else {
            self.tail = Tail::Bytes { bytes, at: 0 };
        }
    }

    /// Sends until the socket is full or nothing is left.
    pub(super) fn flush(&mut self, mut socket: &UnixStream) -> Flushed {
        let mut some = false;
        loop {
            let head = &self.bytes[self.at..];
            let sent = match &self.tail {
                Tail::Nothing if head.is_empty() => {
                    self.bytes.clear();
                    self.at = 0;
                    return Flushed::All;
                }
                Tail::Bytes { bytes, at } => {
                    socket.write_vectored(&[IoSlice::new(head), IoSlice::new(&bytes.get()[*at..])])
                }
                Tail::File { file, offset, left, .. } if head.is_empty() => {
                    send_file(socket, file, *offset, *left)
                }
                Tail::Nothing | Tail::File { .. } => socket.write(head),
            };
            match sent {
                Ok(0) => return Flushed::Gone,
                Ok(sent) => {
                    some = true;
                    let in_file = head.is_empty() && matches!(self.tail, Tail::File { .. });
                    self.sent(sent);
                    if in_file && sent == FILE_PIECE {
                        return Flushed::Paused;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Flushed::Blocked { some };
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Flushed::Gone,
            }
        }
    }

    /// The bytes that are left, for whoever takes the socket over.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.drain(..self.at);
        self.bytes
    }

    pub(super) fn park(&mut self, spare: &mut Vec<u8>) {
        if self.is_empty() && self.bytes.capacity() > 0 {
            self.bytes.clear();
            self.at = 0;
            park(&mut self.bytes, spare);
        }
    }

    pub(super) fn unpark(&mut self, spare: &mut Vec<u8>) {
        if self.bytes.capacity() == 0 {
            std::mem::swap(&mut self.bytes, spare);
        }
    }

    fn sent(&mut self, sent: usize) {
        let of_head = sent.min(self.bytes.len() - self.at);
        self.at += of_head;
        let of_tail = sent - of_head;
        let done = match &mut self.tail {
            Tail::Nothing => return,
            Tail::Bytes { bytes, at } => {
                *at += of_tail;
                *at == bytes.get().len()
            }
            Tail::File { offset, left, .. } => {
                *offset += of_tail as u64;
                *left -= of_tail as u64;
                *left == 0
            }
        };
        if done {
            self.tail = Tail::Nothing;
        }
    }
}

/// Sends a piece of a file without copying it through our memory. 0: the file has shrunk, and the
/// length that was announced cannot be kept.
fn send_file(socket: &UnixStream, file: &File, offset: u64, left: u64) -> io::Result<usize> {
    let mut from = offset;
    let most = usize::try_from(left).unwrap_or(usize::MAX).min(FILE_PIECE);
    Ok(rustix::fs::sendfile(socket, file, Some(&mut from), most)?)
}

fn park(bytes: &mut Vec<u8>, spare: &mut Vec<u8>) {
    let bytes = std::mem::take(bytes);
    // One large body must not stay in memory for ever.
    if bytes.capacity() <= 4 * PIECE && bytes.capacity() > spare.capacity() {
        *spare = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::Semaphore;
    use super::*;
    use std::io::{Read, Seek};

    fn pair() -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        (near, far)
    }

    /// Flushes into a client that reads as fast as it can; returns what arrived.
    fn received(mut output: Output) -> Vec<u8> {
        let (near, mut far) = pair();
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut bytes = Vec::new();
                far.read_to_end(&mut bytes).map(|_| bytes).unwrap()
            });
            loop {
                match output.flush(&near) {
                    Flushed::All => break,
                    Flushed::Gone => panic!("the reader is there"),
                    Flushed::Blocked { .. } | Flushed::Paused => std::thread::yield_now(),
                }
            }
            near.shutdown(std::net::Shutdown::Both).unwrap();
            reader.join().unwrap()
        })
    }

    #[test]
    fn everything_arrives_whatever_its_shape() {
        let check = |body: Body, expected: &[u8]| {
            let mut output = Output::default();
            output.bytes().extend_from_slice(b"head:");
            output.body(body, Semaphore::new(1).claim());
            let bytes = received(output);
            assert!(bytes == [b"head:", expected].concat(), "{} bytes", bytes.len());
        };
        let large: Vec<u8> = (0..3 << 20).map(|at: u32| at as u8).collect();
        check(Body::Bytes(Cow::Borrowed(b"small")), b"small");
        check(Body::Bytes(large.clone().into()), &large);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&large).unwrap();
        file.rewind().unwrap();
        let middle = Body::File { file, offset: 10, length: 2 << 20 };
        check(middle, &large[10..10 + (2 << 20)]);
    }

    #[test]
    fn a_file_that_shrinks_ends_the_answer() {
        let (near, _far) = pair();
        let mut output = Output::default();
        let file = tempfile::tempfile().unwrap();
        output.body(Body::File { file, offset: 0, length: 9 }, Semaphore::new(1).claim());
        assert_eq!(output.flush(&near), Flushed::Gone);
    }

    #[test]
    fn input_is_consumed_and_its_memory_lent() {
        let (near, mut far) = pair();
        let (mut input, mut spare) = (Input::default(), Vec::new());
        assert_eq!(input.fill(&near), Filled::Nothing);
        far.write_all(b"onetwo").unwrap();
        assert_eq!(input.fill(&near), Filled::Some { drained: true });
        input.consume(3);
        assert_eq!(input.unread(), b"two");
        input.park(&mut spare);
        assert_eq!(spare.capacity(), 0);
        input.consume(3);
        input.park(&mut spare);
        assert!(input.is_empty() && spare.capacity() >= PIECE);
        drop(far);
        assert_eq!(input.fill(&near), Filled::End);
    }
}
