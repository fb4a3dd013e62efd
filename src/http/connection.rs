//! Serves one client's connection, from the first byte to the last, with blocking reads and writes.
//!
//! Runs in the thread of the connection. The time-outs of the socket are set once, and deadlines are
//! checked between reads. At the end of the server the socket is shut down from outside.

mod answer;
mod body;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::connections::{Client, ClientThreads, Connections};
use super::input::Input;
use super::limits::Limits;
use super::parse::{self, Refusal};
use super::request_context::{RequestContext, RequestIds};
use super::router::Service;
use super::sse::Streams;
use super::waiting::PendingRequests;
use crate::sys::Waker;

/// Answers to pipelined requests are gathered up to this size.
const GATHERED: usize = 16 << 10;
/// How often a connection that waits checks its deadline.
const CHECK: Duration = Duration::from_secs(5);

/// The state that all connections of a server share.
pub(super) struct ServerState {
    pub(super) service: Arc<dyn Service>,
    pub(super) limits: Limits,
    pub(super) connections: Connections,
    pub(super) threads: ClientThreads,
    pub(super) waiting: PendingRequests,
    pub(super) streams: Streams,
    pub(super) ids: RequestIds,
    pub(super) stopping: AtomicBool,
}

impl ServerState {
    pub(super) fn new(service: impl Service, streams_end: Waker, limits: Limits) -> Self {
        Self {
            service: Arc::new(service),
            connections: Connections::default(),
            threads: ClientThreads::new("http", "connections", limits.connections, limits.stack),
            waiting: PendingRequests::new(limits.waiting),
            streams: Streams::new(streams_end, &limits),
            ids: RequestIds::new(),
            stopping: AtomicBool::new(false),
            limits,
        }
    }
}

pub(super) struct Connection<'s> {
    shared: &'s ServerState,
    client: Arc<Client>,
    input: Input,
    output: Vec<u8>,
    served: u32,
    /// When the last request was answered, or the connection was made.
    idle_since: Instant,
}

impl Drop for Connection<'_> {
    /// Removes the connection before its socket is closed. A stream that it has become keeps the
    /// socket.
    fn drop(&mut self) {
        self.shared.connections.remove(&self.client);
    }
}

/// The next step after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Request,
    Close,
}

/// Why nothing more is read.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// The connection ends without an answer.
    Quietly,
    Refuse(Refusal),
}

const LATE: Stop = Stop::Refuse(Refusal {
    status: 408,
    why: "the request was not completed in time",
});

impl<'s> Connection<'s> {
    pub(super) fn new(shared: &'s ServerState, client: Arc<Client>) -> Self {
        let (input, output) = (Input::default(), Vec::new());
        Self {
            shared,
            client,
            input,
            output,
            served: 0,
            idle_since: Instant::now(),
        }
    }

    /// Serves requests until the connection ends.
    pub(super) fn serve(mut self) {
        let limits = &self.shared.limits;
        let check = CHECK.min(limits.idle).min(limits.pause);
        let check = check.min(limits.body_time);
        let socket = &self.client.socket;
        if socket.set_read_timeout(Some(check)).is_err()
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
                Err(_) => return,
            }
        }
    }

    /// Reads and answers one request.
    fn request(&mut self) -> Result<Next, Stop> {
        let bytes = match self.head() {
            Ok(bytes) => bytes,
            Err(Stop::Refuse(refusal)) => {
                let context = self.unknown();
                return Ok(self.refuse(&context, refusal));
            }
            Err(Stop::Quietly) => return Err(Stop::Quietly),
        };
        let Ok(Some(head)) = parse::head(&bytes, &self.shared.limits) else {
            unreachable!("it was parsed before");
        };
        let framing = head.framing.map_err(Stop::Refuse);
        let next = match framing.and_then(|framing| Ok((framing, self.body(framing)?))) {
            Ok((framing, body)) => self.answer(head, framing, &body),
            Err(Stop::Refuse(refusal)) => {
                let context = self.context(&head);
                self.refuse(&context, refusal)
            }
            Err(Stop::Quietly) => return Err(Stop::Quietly),
        };
        self.idle_since = Instant::now();
        Ok(next)
    }

    /// Waits for a whole head. It is copied, because the input moves while the body arrives.
    fn head(&mut self) -> Result<Vec<u8>, Stop> {
        let (shared, idle_since) = (self.shared, self.idle_since);
        let limits = &shared.limits;
        let mut since = None;
        loop {
            let unread = self.input.unread();
            if let Some(head) = parse::head(unread, limits).map_err(Stop::Refuse)? {
                let (size, bytes) = (head.size, unread[..head.size].to_vec());
                self.input.consume(size);
                return Ok(bytes);
            }
            if !unread.is_empty() {
                since = since.or_else(|| Some(Instant::now()));
            }
            match since {
                None => self.fill(idle_since + limits.idle, Stop::Quietly)?,
                Some(since) => self.fill(since + limits.pause, LATE)?,
            }
        }
    }

    /// Waits for bytes until the deadline. Sends pending answers first.
    fn fill(&mut self, deadline: Instant, late: Stop) -> Result<(), Stop> {
        self.flush()?;
        self.input.trim();
        while Instant::now() < deadline {
            match self.input.fill(&self.client.socket) {
                Ok(0) => return Err(Stop::Quietly),
                Ok(_) => return Ok(()),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {}
                    _ => return Err(Stop::Quietly),
                },
            }
        }
        Err(late)
    }

    /// The context of a request that cannot be read.
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
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    struct Plain;

    impl Service for Plain {
        fn handle(&self, _request: Request<'_>) -> Result<Response, Error> {
            Ok(Response::empty(204))
        }
    }

    #[test]
    fn request_received_before_the_end_is_answered() {
        let shared = ServerState::new(Plain, Waker::new().unwrap(), Limits::default());
        let answer = |bytes: &[u8]| {
            let (near, mut far) = UnixStream::pair().unwrap();
            let client = shared.connections.add(near);
            far.write_all(bytes).unwrap();
            shared.connections.shut(Shutdown::Read);
            Connection::new(&shared, client).serve();
            assert_eq!(shared.connections.number(), 0);
            let mut text = String::new();
            far.read_to_string(&mut text).unwrap();
            text
        };
        assert!(answer(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 204 "));
        assert_eq!(
            (answer(b"GET / HTT"), answer(b"")),
            (String::new(), String::new())
        );
    }
}
