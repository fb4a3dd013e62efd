//! The body of a request that was not there with its head: counted, or in chunks.

use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chunked_transfer::Decoder;

use super::{Connection, LATE, Next, Stop};
use crate::http::parse::{self, Framing, Refusal};
use crate::http::semaphore::Permit;

/// Larger bodies on their way are counted: together they must not fill the memory.
const LARGE: usize = 64 << 10;
/// What a large body has before it must give way to the next.
const GRACE: Duration = Duration::from_millis(100);
/// Decoded at a time.
const PIECE: usize = 16 << 10;
/// Bytes of a chunk's line, extensions among them, and what one-byte chunks may take for each byte.
const LINE: usize = 32 << 10;
const PER_BYTE: usize = 6;

const BAD_CHUNKS: Stop = Stop::Refuse(Refusal { status: 400, why: "the chunks are malformed" });
const TOO_LARGE: Stop = Stop::Refuse(Refusal { status: 413, why: "the body is larger than 8 MiB" });
const TOO_MANY: Stop =
    Stop::Refuse(Refusal { status: 503, why: "too many large bodies are on their way" });

/// How the body on its way fares.
struct Progress {
    since: Instant,
    last: Instant,
    permit: Option<Permit>,
}

impl Connection<'_> {
    /// Reads the body behind a head of `size` bytes and answers.
    pub(super) fn with_body(&mut self, size: usize, framing: Framing) -> Result<Next, Stop> {
        // The head again, for the answer: the input moves while the body comes.
        let head = self.buffers.input.unread()[..size].to_vec();
        self.buffers.input.consume(size);
        if framing.wants_continue && self.buffers.input.is_empty() {
            self.buffers.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let body = match framing.length() {
            Some(length) => self.counted(length),
            None => self.chunks(),
        };
        self.seat.large.store(false, Ordering::Relaxed);
        let Ok(Some(head)) = parse::head(&head, &self.shared.limits) else {
            unreachable!("it was parsed before");
        };
        let next = match body {
            Ok(body) => self.answer(head, framing, &body),
            Err(Stop::Refuse(refusal)) => {
                let meta = self.meta(&head);
                self.refuse(&meta, refusal)
            }
            Err(Stop::Quietly) => return Err(Stop::Quietly),
        };
        self.idle_since = Instant::now();
        Ok(next)
    }

    fn counted(&mut self, length: usize) -> Result<Vec<u8>, Stop> {
        let mut progress = Progress::new();
        let mut body = Vec::new();
        loop {
            let unread = self.buffers.input.unread();
            let piece = unread.len().min(length - body.len());
            body.extend_from_slice(&unread[..piece]);
            self.buffers.input.consume(piece);
            if body.len() == length {
                return Ok(body);
            }
            self.admit(body.len(), &mut progress)?;
            self.buffers.input.expect(length - body.len());
            self.more(&mut progress)?;
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>, Stop> {
        let mut body = Vec::new();
        let source =
            Source { connection: self, progress: Progress::new(), left: LINE, failed: None };
        let mut decoder = Decoder::new(source);
        let mut piece = vec![0; PIECE];
        loop {
            let read = decoder.read(&mut piece);
            let source = decoder.get_mut();
            match read {
                Ok(0) => return Ok(body),
                Ok(read) => {
                    body.extend_from_slice(&piece[..read]);
                    if body.len() > source.connection.shared.limits.body {
                        return Err(TOO_LARGE);
                    }
                    source.left = (source.left + PER_BYTE * read).min(LINE);
                    source.connection.admit(body.len(), &mut source.progress)?;
                }
                Err(_) => return Err(source.failed.unwrap_or(BAD_CHUNKS)),
            }
        }
    }

    /// Waits for more of the body.
    fn more(&mut self, progress: &mut Progress) -> Result<(), Stop> {
        let limits = &self.shared.limits;
        let pause = progress.last + limits.body_pause;
        let deadline = pause.min(progress.since + limits.body_time);
        self.fill(progress.since, deadline, LATE)?;
        progress.last = Instant::now();
        Ok(())
    }

    /// Leave for a body that has become large. The one that is longest on its way gives way: slow
    /// ones must not keep others out.
    fn admit(&self, length: usize, progress: &mut Progress) -> Result<(), Stop> {
        if length <= LARGE || progress.permit.is_some() {
            return Ok(());
        }
        let bodies = &self.shared.bodies;
        let deadline = Instant::now() + self.shared.limits.body_pause;
        while progress.permit.is_none() {
            progress.permit = bodies.acquire_by(deadline.min(Instant::now() + GRACE));
            if progress.permit.is_none() {
                self.shared.seats.shut_longest(|seat| seat.large.load(Ordering::Relaxed));
                if Instant::now() >= deadline {
                    return Err(TOO_MANY);
                }
            }
        }
        self.seat.large.store(true, Ordering::Relaxed);
        // That it waited was not its client's fault.
        progress.last = Instant::now();
        Ok(())
    }
}

impl Progress {
    fn new() -> Self {
        let now = Instant::now();
        Self { since: now, last: now, permit: None }
    }
}

/// The raw bytes of a chunked body. Its end is an error: to the decoder an end within a chunk would
/// be the end of the body.
struct Source<'c, 's> {
    connection: &'c mut Connection<'s>,
    progress: Progress,
    /// Raw bytes until there must be something decoded.
    left: usize,
    failed: Option<Stop>,
}

impl Read for Source<'_, '_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        if self.connection.buffers.input.is_empty()
            && let Err(stop) = self.connection.more(&mut self.progress)
        {
            self.failed = Some(stop);
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let unread = self.connection.buffers.input.unread();
        let length = piece.len().min(unread.len()).min(self.left);
        if length == 0 && !piece.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        piece[..length].copy_from_slice(&unread[..length]);
        self.connection.buffers.input.consume(length);
        self.left -= length;
        Ok(length)
    }
}
