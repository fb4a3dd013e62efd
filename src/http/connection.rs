//! One client's connection: a state machine over a non-blocking socket.
//!
//! A worker takes a connection out of its slot, lets it have a turn, and puts it back to wait for
//! what [`Next`] says. Nothing here waits.

mod messages;

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use std::{mem, net};

use super::buffers::{Filled, Flushed, Input, Output};
use super::error::Error;
use super::limits::{Limits, Permit, Semaphore};
use super::meta::{RequestIds, RequestMeta};
use super::parse::{self, Refusal};
use super::promise::{Outcome, Promise, Promises};
use super::sse::{Opening, Streams};
use super::waiting::Waiting;

/// Pipelined requests of one connection before others have their turn.
const PIPELINED: u32 = 16;
/// Reads of a refused client's leftovers in one turn.
const LEFTOVERS: u32 = 64;

/// What all connections of a server share.
pub(super) struct Shared {
    pub(super) service: Arc<dyn super::Service>,
    pub(super) limits: Limits,
    /// Descriptors.
    pub(super) budget: Arc<Semaphore>,
    /// Large bodies on their way.
    pub(super) bodies: Arc<Semaphore>,
    pub(super) promises: Arc<Promises>,
    pub(super) waiting: Waiting,
    pub(super) streams: Arc<Streams>,
    pub(super) ids: RequestIds,
    pub(super) stopping: AtomicBool,
    /// The time for answers is over: what is still owed is refused.
    pub(super) refusing: AtomicBool,
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
    claim: Permit,
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
        _claim: Option<Permit>,
    },
    Promised {
        promise: Promise,
        meta: Box<RequestMeta<'static>>,
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
    pub(super) fn new(socket: UnixStream, claim: Permit) -> Self {
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
    pub(super) fn into_parts(self) -> (UnixStream, Vec<u8>, Permit) {
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
        if self.promise().is_some() {
            return self.keep_promise(shared, Err(Error::busy("the answer takes too long")));
        }
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Head { .. } | Phase::Body { .. } if self.output.is_empty() => {
                let why = Refusal { status: 408, why: "the request does not come to its end" };
                let meta = self.unknown(shared);
                self.refuse(shared, meta, why);
                self.turn(shared)
            }
            _ => Next::Close,
        }
    }

    /// The promised answer is there.
    pub(super) fn keep_promise(&mut self, shared: &Shared, outcome: Outcome) -> Next {
        match mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Promised { promise, meta } => {
                // Its place is free for the next before the client hears.
                drop(promise);
                self.answer(shared, *meta, outcome)
            }
            phase => {
                self.phase = phase;
                self.turn(shared)
            }
        }
    }

    fn answer(&mut self, shared: &Shared, meta: RequestMeta<'_>, outcome: Outcome) -> Next {
        match self.respond(shared, meta, outcome) {
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
                let meta = self.unknown(shared);
                (0, self.refuse(shared, meta, refusal))
            }
        };
        input.consume(used);
        self.input = input;
        step
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
