//! Serves one client's connection, from the first byte to the last, with blocking reads and writes.
//!
//! Runs in the worker of the connection. The time-outs of the socket are set once, and deadlines
//! are checked between reads. While the worker waits for its client, the [`Client`] says so, and
//! the connection may be shut down from outside to make space for a new client.

mod answer;
mod body;

use std::io;
use std::mem;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::connections::{Client, Connections};
use super::input::Input;
use super::limits::Limits;
use super::parse::{self, Framing, Refusal};
use super::request_context::{RequestContext, RequestIds};
use super::router::Service;
use super::sse::Streams;
use super::waiting::PendingRequests;
use super::waiting::Semaphore;
use crate::sys::Waker;

/// Answers to pipelined requests are gathered up to here.
pub(super) const GATHERED: usize = 16 << 10;

/// The state that all connections of a server share.
pub(super) struct ServerState {
    pub(super) service: Arc<dyn Service>,
    pub(super) limits: Limits,
    pub(super) connections: Connections,
    /// Large bodies on their way.
    pub(super) bodies: Semaphore,
    pub(super) waiting: PendingRequests,
    pub(super) streams: Streams,
    pub(super) ids: RequestIds,
    pub(super) stopping: AtomicBool,
}

impl ServerState {
    pub(super) fn new(service: impl Service, streams_end: Waker, limits: Limits) -> Self {
        Self {
            service: Arc::new(service),
            connections: Connections::new(),
            bodies: Semaphore::new(limits.bodies),
            waiting: PendingRequests::new(limits.waiting),
            streams: Streams::new(streams_end, &limits),
            ids: RequestIds::new(),
            stopping: AtomicBool::new(false),
            limits,
        }
    }
}

/// A worker's memory, used for one connection after the other.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    input: Input,
    output: Vec<u8>,
}

pub(super) struct Connection<'s> {
    shared: &'s ServerState,
    client: &'s Arc<Client>,
    buffers: &'s mut Buffers,
    served: u32,
    /// When the last answer was out, or the connection was made.
    idle_since: Instant,
}

/// The next step after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Request,
    Close,
    /// The client may still send what it had in mind.
    Linger,
}

/// Why no more is read.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// There is nobody to tell, or nothing to say.
    Quietly,
    Refuse(Refusal),
}

/// How far a look at the input has come.
enum Step {
    /// The head is not complete.
    More,
    /// The body is not, behind a head of so many bytes.
    Body(usize, Framing),
    /// Answered; so many bytes were the request's.
    Done(usize, Next),
}

const LATE: Stop =
    Stop::Refuse(Refusal { status: 408, why: "the request does not come to its end" });
const GAVE_WAY: Stop = Stop::Refuse(Refusal {
    status: 503,
    why: "the request came too slowly: others need its place",
});

impl<'s> Connection<'s> {
    pub(super) fn new(
        shared: &'s ServerState,
        client: &'s Arc<Client>,
        buffers: &'s mut Buffers,
    ) -> Self {
        buffers.input.clear();
        buffers.output.clear();
        Self { shared, client, buffers, served: 0, idle_since: Instant::now() }
    }

    /// Serves requests until one side has enough.
    pub(super) fn serve(mut self) {
        let limits = &self.shared.limits;
        let shortest =
            limits.idle.min(limits.head_time).min(limits.body_pause).min(limits.body_time);
        let socket = self.client.socket();
        if socket.set_read_timeout(Some(shortest)).is_err()
            || socket.set_write_timeout(Some(limits.write_pause)).is_err()
        {
            return;
        }
        loop {
            match self.request() {
                Ok(Next::Request) => {}
                Ok(Next::Close) => {
                    self.flush().ok();
                    return;
                }
                Ok(Next::Linger) => {
                    if self.flush().is_ok() {
                        self.linger();
                    }
                    return;
                }
                Err(_) => return,
            }
        }
    }

    /// Reads and answers one request.
    fn request(&mut self) -> Result<Next, Stop> {
        let limits = &self.shared.limits;
        let mut since = None;
        loop {
            if !self.buffers.input.is_empty() {
                match self.look() {
                    Step::More => {}
                    Step::Done(size, next) => {
                        self.buffers.input.consume(size);
                        self.idle_since = Instant::now();
                        return Ok(next);
                    }
                    Step::Body(size, framing) => return self.with_body(size, framing),
                }
                since = since.or_else(|| Some(Instant::now()));
            }
            let read = match since {
                None => self.fill(self.idle_since, self.idle_since + limits.idle, Stop::Quietly),
                Some(since) => self.fill(since, since + limits.head_time, LATE),
            };
            if let Err(Stop::Refuse(refusal)) = read {
                let context = self.unknown();
                return Ok(self.refuse(&context, refusal));
            }
            read?;
        }
    }

    /// Answers the request at the start of the input, if it is all there.
    fn look(&mut self) -> Step {
        // The head borrows from the input while the rest of the connection changes.
        let input = mem::take(&mut self.buffers.input);
        let bytes = input.unread();
        let step = match parse::head(bytes, &self.shared.limits) {
            Ok(None) => Step::More,
            Ok(Some(head)) => match head.framing {
                Ok(framing) => match framing.length() {
                    Some(length) if bytes.len() >= head.size + length => {
                        let size = head.size + length;
                        let body = &bytes[head.size..size];
                        Step::Done(size, self.answer(head, framing, body))
                    }
                    _ => Step::Body(head.size, framing),
                },
                Err(refusal) => {
                    let context = self.context(&head);
                    Step::Done(bytes.len(), self.refuse(&context, refusal))
                }
            },
            Err(refusal) => {
                let context = self.unknown();
                Step::Done(bytes.len(), self.refuse(&context, refusal))
            }
        };
        self.buffers.input = input;
        step
    }

    /// Waits for bytes until the deadline. Sends pending answers first.
    fn fill(&mut self, since: Instant, deadline: Instant, late: Stop) -> Result<(), Stop> {
        self.flush()?;
        self.buffers.input.trim();
        if Instant::now() >= deadline {
            return Err(late);
        }
        self.client.reads(since);
        self.shared.connections.tell();
        // In this order: whoever ends the server finds us reading, or we find that it ends.
        let stopping = || self.shared.stopping.load(Ordering::SeqCst);
        if stopping() {
            return Err(Stop::Quietly);
        }
        let read = loop {
            match self.buffers.input.fill(self.client.socket()) {
                Ok(0) => break Err(Stop::Quietly),
                Ok(_) => break Ok(()),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock if Instant::now() < deadline => {}
                    io::ErrorKind::WouldBlock => break Err(late),
                    _ => break Err(Stop::Quietly),
                },
            }
        };
        // Also where it was shut between its client's bytes and this: they may be a whole request.
        if self.client.works() || read.is_ok() {
            return read;
        }
        // It was shut. Nobody waits for an answer who has not begun to ask.
        match late {
            Stop::Refuse(_) if !stopping() => Err(GAVE_WAY),
            _ => Err(Stop::Quietly),
        }
    }

    /// The refusal is out. Closing with unread bytes would cut the client's own sending short with
    /// an error, and it might never read why: what it still sends is taken, within limits.
    fn linger(&mut self) {
        let limits = &self.shared.limits;
        let (socket, deadline) = (self.client.socket(), Instant::now() + limits.linger);
        if socket.shutdown(Shutdown::Write).is_err()
            || socket.set_read_timeout(Some(limits.linger)).is_err()
        {
            return;
        }
        let mut left = limits.linger_bytes;
        while left > 0 && Instant::now() < deadline {
            self.buffers.input.clear();
            self.client.reads(Instant::now());
            self.shared.connections.tell();
            match self.buffers.input.fill(socket) {
                Ok(read) if read > 0 && self.client.works() => left = left.saturating_sub(read),
                _ => return,
            }
        }
    }

    /// A request of which nothing is known.
    fn unknown(&self) -> RequestContext<'static> {
        RequestContext {
            id: self.shared.ids.take(None),
            method: "?".parse().expect("ASCII is a method"),
            path: "?".into(),
            minor: 1,
            keep_alive: false,
            began: Instant::now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Error, Request, Response, Service};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    struct Plain;

    impl Service for Plain {
        fn handle(&self, _request: Request<'_>) -> Result<Response, Error> {
            Ok(Response::empty(204))
        }
    }

    /// More than a socket takes.
    struct Large;

    impl Service for Large {
        fn handle(&self, _request: Request<'_>) -> Result<Response, Error> {
            Ok(Response::bytes(200, "text/plain", vec![b'a'; 8 << 20]))
        }
    }

    #[test]
    fn request_received_before_eviction_is_answered() {
        let shared = ServerState::new(Plain, Waker::new().unwrap(), Limits::default());
        let answer = |bytes: &[u8]| {
            let (near, mut far) = UnixStream::pair().unwrap();
            let client = shared.connections.take(near);
            client.reads(Instant::now());
            far.write_all(bytes).unwrap();
            shared.connections.shut_readers();
            Connection::new(&shared, &client, &mut Buffers::default()).serve();
            shared.connections.leave(&client);
            drop(client);
            let mut text = String::new();
            far.read_to_string(&mut text).unwrap();
            text
        };
        assert!(answer(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 204 "));
        assert!(answer(b"GET / HTT").starts_with("HTTP/1.1 503 "));
        assert_eq!(answer(b""), "");
    }

    #[test]
    fn evicted_client_that_reads_no_answer_holds_no_worker() {
        let limits = Limits { write_pause: Duration::from_secs(60), ..Limits::default() };
        let shared = ServerState::new(Large, Waker::new().unwrap(), limits);
        let (near, mut far) = UnixStream::pair().unwrap();
        let client = shared.connections.take(near);
        client.reads(Instant::now());
        far.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        shared.connections.shut_readers();
        let began = Instant::now();
        Connection::new(&shared, &client, &mut Buffers::default()).serve();
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
