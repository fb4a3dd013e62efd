//! From a whole message to the answer in the output: the part of a connection's turn that knows
//! requests. Handlers run here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Connection, Next, Phase, Shared, Step};
use crate::http::error::Error;
use crate::http::meta::RequestMeta;
use crate::http::parse::{Head, Refusal};
use crate::http::promise::Outcome;
use crate::http::request::Request;
use crate::http::response::{Body, Delimited, Frame, Full, Response, write_head};
use crate::http::sse::Opening;
use crate::thread::panic_text;

/// Larger bodies on their way are counted: together they must not fill the memory.
const LARGE: usize = 64 << 10;

impl Connection {
    /// A head is complete: handles the message if its body is, too. Says how many bytes it took.
    pub(super) fn message(
        &mut self,
        shared: &Shared,
        head: Head<'_>,
        bytes: &[u8],
    ) -> (usize, Step) {
        let mut meta = RequestMeta {
            id: shared.ids.take(head.fields.request_id),
            method: head.method.clone(),
            path: head.path.into(),
            minor: head.minor,
            keep_alive: false,
            began: Instant::now(),
        };
        let framing = match head.framing {
            Ok(framing) => framing,
            Err(refusal) => return (0, self.refuse(shared, meta, refusal)),
        };
        let size = head.size + framing.body;
        if bytes.len() < size {
            let mut claim = None;
            if framing.body > LARGE {
                claim = shared.bodies.claim();
                if claim.is_none() {
                    let busy =
                        Refusal { status: 503, why: "too many large bodies are on their way" };
                    return (0, self.refuse(shared, meta, busy));
                }
            }
            if framing.wants_continue && bytes.len() == head.size {
                self.output.bytes().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            self.phase = Phase::Body { size, since: self.last, _claim: claim };
            return (0, Step::Starved);
        }
        self.phase = Phase::Idle;
        self.served += 1;
        meta.keep_alive = framing.keep_alive && self.served < shared.limits.requests;
        let id = meta.id;
        let body = &bytes[head.size..size];
        let outcome = Request::new(head, body, id.as_str(), &shared.promises, &shared.waiting)
            .and_then(|request| handle(shared, request));
        (size, self.respond(shared, meta, outcome))
    }

    pub(super) fn respond(
        &mut self,
        shared: &Shared,
        meta: RequestMeta<'_>,
        outcome: Outcome,
    ) -> Step {
        let full = match outcome {
            Ok(Response::Full(full)) => full,
            Ok(Response::Later(promise)) => {
                let meta = Box::new(meta.into_owned());
                self.phase = Phase::Promised { promise, meta };
                return Step::Next(Next::Answer);
            }
            Ok(Response::Events { hub, kinds }) => {
                let chunked = meta.minor == 1;
                match shared.streams.seat(&shared.budget) {
                    Some(seat) => {
                        self.open_stream(&meta, chunked);
                        if meta.is_head() {
                            return Step::Answered;
                        }
                        let opening = Opening { seat, hub, kinds, chunked };
                        return Step::Next(Next::Stream(Box::new(opening)));
                    }
                    None => Error::busy("too many event streams").into_full(meta.id.as_str()),
                }
            }
            Err(failure) => failure.into_full(meta.id.as_str()),
        };
        self.put(shared, meta, full);
        Step::Answered
    }

    /// Writes an answer into the output.
    fn put(&mut self, shared: &Shared, meta: RequestMeta<'_>, mut full: Full) {
        let mut claim = None;
        if matches!(full.body, Body::File { .. }) {
            claim = shared.budget.claim();
            if claim.is_none() {
                full = Error::busy("too many connections").into_full(meta.id.as_str());
            }
        }
        let keep_alive = meta.keep_alive && !shared.stopping.load(Ordering::Relaxed);
        let frame = Frame {
            request_id: meta.id.as_str(),
            keep_alive,
            delimited: Delimited::By(full.body.length()),
        };
        let (status, headers) = (full.status, &full.headers);
        write_head(self.output.bytes(), status, full.content_type, headers, frame);
        if !meta.is_head() && full.body.length() > 0 {
            self.output.body(full.body, claim);
        }
        self.closing = !keep_alive;
        self.last = Instant::now();
        meta.log(status);
    }

    /// Writes the head of an event stream, the last answer on this connection.
    fn open_stream(&mut self, meta: &RequestMeta<'_>, chunked: bool) {
        let request_id = meta.id.as_str();
        let delimited = Delimited::Stream { chunked };
        let frame = Frame { request_id, keep_alive: false, delimited };
        let headers = [("Cache-Control", "no-store".to_owned())];
        write_head(self.output.bytes(), 200, "text/event-stream", &headers, frame);
        self.closing = true;
        meta.log(200);
    }

    pub(super) fn refuse(
        &mut self,
        shared: &Shared,
        meta: RequestMeta<'_>,
        refusal: Refusal,
    ) -> Step {
        let failure = Error::new(refusal.status, refusal.why);
        let full = failure.into_full(meta.id.as_str());
        self.put(shared, RequestMeta { keep_alive: false, ..meta }, full);
        self.phase = Phase::Refused;
        Step::Answered
    }

    /// A request of which nothing is known.
    pub(super) fn unknown(&self, shared: &Shared) -> RequestMeta<'static> {
        RequestMeta {
            id: shared.ids.take(None),
            method: "?".parse().expect("ASCII is a method"),
            path: "?".into(),
            minor: 1,
            keep_alive: false,
            began: Instant::now(),
        }
    }
}

/// Runs the handler; its panic is an answer, too.
fn handle(shared: &Shared, request: Request<'_>) -> Outcome {
    let id = request.id();
    catch_unwind(AssertUnwindSafe(|| shared.service.handle(request))).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        log::error!(target: "http", request_id = id; "a handler panicked: {text}");
        Err(Error::new(500, "internal error"))
    })
}
