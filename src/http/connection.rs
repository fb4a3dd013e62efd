//! One client's connection: a state machine over a non-blocking socket.
//!
//! A worker takes a connection out of its slot, lets it have a turn, and puts it back to wait for
//! what [`Next`] says. Nothing here waits. Handlers run inside a turn, with the whole request.

use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{mem, net};

use super::answer::{Answer, Body, Delimited, Frame, Full, write_head};
use super::buffers::{Filled, Flushed, Input, Output};
use super::exchange::{Exchange, RequestIds};
use super::failure::Failure;
use super::limits::{Budget, Claim, Limits};
use super::parse::{self, Head, Refusal};
use super::promise::{Outcome, Promise, Promises};
use super::request::Request;
use super::sse::{Opening, Streams};
use crate::thread::panic_text;

/// Pipelined requests of one connection before others have their turn.
const PIPELINED: u32 = 16;
/// Reads of a refused client's leftovers in one turn.
const LEFTOVERS: u32 = 64;

/// What all connections of a server share.
pub(super) struct Shared {
    pub(super) service: Arc<dyn super::Service>,
    pub(super) limits: Limits,
    /// Descriptors.
    pub(super) budget: Arc<Budget>,
    pub(super) promises: Arc<Promises>,
    pub(super) streams: Arc<Streams>,
    pub(super) ids: RequestIds,
    pub(super) stopping: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: UnixStream,
    input: Input,
    output: Output,
    phase: Phase,
    served: u32,
    /// The last byte either way.
    last: Instant,
    /// After what is in `output`, it is over.
    closing: bool,
    claim: Claim,
}

#[derive(Debug)]
enum Phase {
    /// No byte of a request yet.
    Idle,
    Head {
        since: Instant,
    },
    /// The whole message has `size` bytes.
    Body {
        size: usize,
        since: Instant,
    },
    Promised {
        promise: Promise,
        exchange: Box<Exchange<'static>>,
    },
    /// The refusal is in the output.
    Refused,
    /// The refusal is out; the client may still send what it had in mind.
    Linger {
        until: Instant,
    },
}

/// What a connection waits for after its turn.
#[derive(Debug)]
pub(super) enum Next {
    Read,
    Write,
    /// Its next turn, after the others'.
    Turn,
    /// The answer that another thread owes it.
    Answer,
    Close,
    /// It becomes an event stream.
    Stream(Box<Opening>),
}

enum Step {
    Answered,
    /// More bytes are needed.
    Starved,
    Next(Next),
}

impl Connection {
    pub(super) fn new(socket: UnixStream, claim: Claim) -> Self {
        let (input, output) = (Input::default(), Output::default());
        let (phase, last) = (Phase::Idle, Instant::now());
        Self { socket, input, output, phase, served: 0, last, closing: false, claim }
    }

    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    pub(super) fn promise(&self) -> Option<&Promise> {
        match &self.phase {
            Phase::Promised { promise, .. } => Some(promise),
            _ => None,
        }
    }

    /// Since when it has neither sent nor taken a byte; `None` where that is our fault.
    pub(super) fn silent_since(&self) -> Option<Instant> {
        self.promise().is_none().then_some(self.last)
    }

    /// Whether we owe it nothing.
    pub(super) fn is_settled(&self) -> bool {
        self.promise().is_none() && self.output.is_empty()
    }

    pub(super) fn deadline(&self, limits: &Limits) -> Instant {
        if !self.output.is_empty() {
            return self.last + limits.write_pause;
        }
        match &self.phase {
            Phase::Idle | Phase::Refused => self.last + limits.idle,
            Phase::Head { since } => *since + limits.head_time,
            Phase::Body { since, .. } => {
                (self.last + limits.body_pause).min(*since + limits.body_time)
            }
            Phase::Promised { promise, .. } => promise.deadline,
            Phase::Linger { until } => *until,
        }
    }

    /// The socket, what must still be sent on it, and its descriptor's claim.
    pub(super) fn into_parts(self) -> (UnixStream, Vec<u8>, Claim) {
        (self.socket, self.output.into_bytes(), self.claim)
    }

    /// Lends it a thread's buffers for a turn, or takes them back from an idle one.
    pub(super) fn unpark(&mut self, spare: &mut [Vec<u8>; 2]) {
        self.input.unpark(&mut spare[0]);
        self.output.unpark(&mut spare[1]);
    }

    pub(super) fn park(&mut self, spare: &mut [Vec<u8>; 2]) {
        self.input.park(&mut spare[0]);
        self.output.park(&mut spare[1]);
    }

    /// The socket is readable or writable.
    pub(super) fn turn(&mut self, shared: &Shared) -> Next {
        if !self.output.is_empty()
            && let Some(next) = self.flush()
        {
            return next;
        }
        match self.phase {
            Phase::Linger { .. } => return self.linger(),
            Phase::Promised { .. } => return Next::Answer,
            _ => {}
        }
        let mut handled = 0;
        let mut drained = false;
        loop {
            if (self.output.is_full() || self.closing || handled == PIPELINED)
                && let Some(next) = self.flush()
            {
                return next;
            }
            if self.closing {
                return self.farewell(shared);
            }
            if handled == PIPELINED && !self.input.is_empty() {
                return Next::Turn;
            }
            match self.step(shared) {
                Step::Answered => handled += 1,
                Step::Next(Next::Answer) => return self.flush().unwrap_or(Next::Answer),
                Step::Next(next) => return next,
                Step::Starved => {
                    if let Some(next) = self.flush() {
                        return next;
                    }
                    if mem::take(&mut drained) {
                        return Next::Read;
                    }
                    match self.input.fill(&self.socket) {
                        Filled::Some { drained: all } => drained = all,
                        Filled::Nothing => return Next::Read,
                        Filled::End => return Next::Close,
                    }
                    self.last = Instant::now();
                }
            }
        }
    }

    /// Its deadline has passed.
    pub(super) fn expire(&mut self, shared: &Shared) -> Next {
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Promised { promise, exchange } => {
                drop(promise);
                let late = Failure::busy("the answer takes too long");
                self.answer(shared, *exchange, Err(late))
            }
            Phase::Head { .. } | Phase::Body { .. } if self.output.is_empty() => {
                let why = Refusal { status: 408, why: "the request does not come to its end" };
                let exchange = self.unknown(shared);
                self.refuse(shared, exchange, why);
                self.turn(shared)
            }
            _ => Next::Close,
        }
    }

    /// The promised answer is there.
    pub(super) fn keep_promise(&mut self, shared: &Shared, outcome: Outcome) -> Next {
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Promised { promise, exchange } => {
                // Its place is free for the next before the client hears.
                drop(promise);
                self.answer(shared, *exchange, outcome)
            }
            phase => {
                self.phase = phase;
                self.turn(shared)
            }
        }
    }

    fn answer(&mut self, shared: &Shared, exchange: Exchange<'_>, outcome: Outcome) -> Next {
        match self.respond(shared, exchange, outcome) {
            Step::Next(next) => next,
            Step::Answered | Step::Starved => self.turn(shared),
        }
    }

    /// Handles one request, if there is a whole one.
    fn step(&mut self, shared: &Shared) -> Step {
        if self.input.is_empty() {
            self.phase = Phase::Idle;
            return Step::Starved;
        }
        if matches!(self.phase, Phase::Body { size, .. } if self.input.unread().len() < size) {
            return Step::Starved;
        }
        // The head borrows from the input while the rest of the connection changes.
        let mut input = mem::take(&mut self.input);
        let (used, step) = match parse::head(input.unread(), &shared.limits) {
            Ok(Some(head)) => self.message(shared, head, input.unread()),
            Ok(None) => {
                if matches!(self.phase, Phase::Idle) {
                    self.phase = Phase::Head { since: self.last };
                }
                (0, Step::Starved)
            }
            Err(refusal) => {
                let exchange = self.unknown(shared);
                (0, self.refuse(shared, exchange, refusal))
            }
        };
        input.consume(used);
        self.input = input;
        step
    }

    /// A head is complete: handles the message if its body is, too. Says how many bytes it took.
    fn message(&mut self, shared: &Shared, head: Head<'_>, bytes: &[u8]) -> (usize, Step) {
        let mut exchange = Exchange {
            id: shared.ids.take(head.fields.request_id),
            method: head.method.clone(),
            path: head.path.into(),
            minor: head.minor,
            keep_alive: false,
            began: Instant::now(),
        };
        let framing = match head.framing {
            Ok(framing) => framing,
            Err(refusal) => return (0, self.refuse(shared, exchange, refusal)),
        };
        let size = head.size + framing.body;
        if bytes.len() < size {
            if framing.wants_continue && bytes.len() == head.size {
                self.output.bytes().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            self.phase = Phase::Body { size, since: self.last };
            return (0, Step::Starved);
        }
        self.phase = Phase::Idle;
        self.served += 1;
        exchange.keep_alive = framing.keep_alive && self.served < shared.limits.requests;
        let id = exchange.id;
        let body = &bytes[head.size..size];
        let outcome = Request::new(head, body, id.as_str(), &shared.promises)
            .and_then(|request| handle(shared, request));
        (size, self.respond(shared, exchange, outcome))
    }

    fn respond(&mut self, shared: &Shared, exchange: Exchange<'_>, outcome: Outcome) -> Step {
        let full = match outcome {
            Ok(Answer::Full(full)) => full,
            Ok(Answer::Later(promise)) => {
                let exchange = Box::new(exchange.into_owned());
                self.phase = Phase::Promised { promise, exchange };
                return Step::Next(Next::Answer);
            }
            Ok(Answer::Events { hub, kinds }) => {
                let chunked = exchange.minor == 1;
                match shared.streams.seat(&shared.budget) {
                    Some(seat) => {
                        self.open_stream(&exchange, chunked);
                        if exchange.is_head() {
                            return Step::Answered;
                        }
                        let opening = Opening { seat, hub, kinds, chunked };
                        return Step::Next(Next::Stream(Box::new(opening)));
                    }
                    None => Failure::busy("too many event streams").into_full(exchange.id.as_str()),
                }
            }
            Err(failure) => failure.into_full(exchange.id.as_str()),
        };
        self.put(shared, exchange, full);
        Step::Answered
    }

    /// Writes an answer into the output.
    fn put(&mut self, shared: &Shared, exchange: Exchange<'_>, mut full: Full) {
        let mut claim = None;
        if matches!(full.body, Body::File { .. }) {
            claim = shared.budget.claim();
            if claim.is_none() {
                full = Failure::busy("too many connections").into_full(exchange.id.as_str());
            }
        }
        let keep_alive = exchange.keep_alive && !shared.stopping.load(Ordering::Relaxed);
        let frame = Frame {
            request_id: exchange.id.as_str(),
            keep_alive,
            delimited: Delimited::By(full.body.length()),
        };
        let (status, headers) = (full.status, &full.headers);
        write_head(self.output.bytes(), status, full.content_type, headers, frame);
        if !exchange.is_head() && full.body.length() > 0 {
            self.output.body(full.body, claim);
        }
        self.closing = !keep_alive;
        self.last = Instant::now();
        exchange.log(status);
    }

    /// Writes the head of an event stream, the last answer on this connection.
    fn open_stream(&mut self, exchange: &Exchange<'_>, chunked: bool) {
        let request_id = exchange.id.as_str();
        let delimited = Delimited::Stream { chunked };
        let frame = Frame { request_id, keep_alive: false, delimited };
        let headers = [("Cache-Control", "no-store".to_owned())];
        write_head(self.output.bytes(), 200, "text/event-stream", &headers, frame);
        self.closing = true;
        exchange.log(200);
    }

    fn refuse(&mut self, shared: &Shared, exchange: Exchange<'_>, refusal: Refusal) -> Step {
        let failure = Failure::new(refusal.status, refusal.why);
        let full = failure.into_full(exchange.id.as_str());
        self.put(shared, Exchange { keep_alive: false, ..exchange }, full);
        self.phase = Phase::Refused;
        Step::Answered
    }

    /// A request of which nothing is known.
    fn unknown(&self, shared: &Shared) -> Exchange<'static> {
        Exchange {
            id: shared.ids.take(None),
            method: "?".parse().expect("ASCII is a method"),
            path: "?".into(),
            minor: 1,
            keep_alive: false,
            began: Instant::now(),
        }
    }

    /// Sends what is in the output; `Some` where the turn ends with it.
    fn flush(&mut self) -> Option<Next> {
        match self.output.flush(&self.socket) {
            Flushed::All => None,
            Flushed::Blocked { some } => {
                if some {
                    self.last = Instant::now();
                }
                Some(Next::Write)
            }
            Flushed::Paused => {
                self.last = Instant::now();
                Some(Next::Write)
            }
            Flushed::Gone => Some(Next::Close),
        }
    }

    /// The last answer is out.
    fn farewell(&mut self, shared: &Shared) -> Next {
        if matches!(self.phase, Phase::Refused) {
            // Closing with unread bytes would cut the client's own sending short with an error,
            // and it might never read why.
            self.phase = Phase::Linger { until: Instant::now() + shared.limits.linger };
            self.socket.shutdown(net::Shutdown::Write).ok();
            return self.linger();
        }
        Next::Close
    }

    fn linger(&mut self) -> Next {
        for _ in 0..LEFTOVERS {
            self.input.clear();
            match self.input.fill(&self.socket) {
                Filled::Some { .. } => {}
                Filled::Nothing => {
                    self.input.clear();
                    return Next::Read;
                }
                Filled::End => return Next::Close,
            }
        }
        self.input.clear();
        Next::Read
    }
}

/// Runs the handler; its panic is an answer, too.
fn handle(shared: &Shared, request: Request<'_>) -> Outcome {
    let id = request.id();
    catch_unwind(AssertUnwindSafe(|| shared.service.handle(request))).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        log::error!(target: "http", request_id = id; "a handler panicked: {text}");
        Err(Failure::new(500, "internal error"))
    })
}
