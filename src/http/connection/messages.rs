//! From a whole request to its answer. Handlers run here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Connection, GATHERED, Next, Shared};
use crate::http::error::Error;
use crate::http::meta::RequestMeta;
use crate::http::parse::{Framing, Head, Refusal};
use crate::http::request::Request;
use crate::http::response::{Body, Delimited, Frame, Response, write_head};
use crate::http::sse::Opening;
use crate::thread::panic_text;

impl Connection<'_> {
    pub(super) fn meta<'h>(&self, head: &Head<'h>) -> RequestMeta<'h> {
        RequestMeta {
            id: self.shared.ids.take(head.fields.request_id),
            method: head.method.clone(),
            path: head.path.into(),
            minor: head.minor,
            keep_alive: false,
            began: Instant::now(),
        }
    }

    /// Answers a whole request.
    pub(super) fn answer(&mut self, head: Head<'_>, framing: Framing, body: &[u8]) -> Next {
        self.served += 1;
        let mut meta = self.meta(&head);
        meta.keep_alive = framing.keep_alive && self.served < self.shared.limits.requests;
        let id = meta.id;
        let answer = Request::new(head, body, id.as_str(), &self.shared.waiting)
            .map(|request| request.among(&self.shared.seats, self.seat))
            .and_then(|request| handle(self.shared, request))
            .unwrap_or_else(|error| error.into_response(id.as_str()));
        if let Body::Events { .. } = answer.body {
            return self.open_stream(meta, answer);
        }
        self.put(&meta, answer)
    }

    pub(super) fn refuse(&mut self, meta: &RequestMeta<'_>, refusal: Refusal) -> Next {
        let error = Error::new(refusal.status, refusal.why);
        self.put(meta, error.into_response(meta.id.as_str()));
        Next::Linger
    }

    /// Writes an answer, behind those of the requests before it.
    fn put(&mut self, meta: &RequestMeta<'_>, answer: Response) -> Next {
        let keep_alive = meta.keep_alive && !self.shared.stopping.load(Ordering::Relaxed);
        let frame = Frame {
            request_id: meta.id.as_str(),
            keep_alive,
            delimited: Delimited::By(answer.body.length()),
        };
        let output = &mut self.buffers.output;
        write_head(output, answer.status, answer.content_type, &answer.headers, frame);
        let status = answer.status;
        let sent = if meta.is_head() { Ok(()) } else { self.put_body(&answer.body) };
        meta.log(status);
        if sent.is_ok() && keep_alive { Next::Request } else { Next::Close }
    }

    fn put_body(&mut self, body: &Body) -> Result<(), super::Stop> {
        let bytes: &[u8] = match body {
            Body::Bytes(bytes) => bytes,
            Body::Shared(bytes) => bytes,
            Body::File { file, offset, length } => {
                self.flush()?;
                return self.send_file(file, *offset, *length);
            }
            Body::Events { .. } => &[],
        };
        if self.buffers.output.len() + bytes.len() <= GATHERED {
            self.buffers.output.extend_from_slice(bytes);
            return Ok(());
        }
        self.send_behind(bytes)
    }

    /// The connection becomes a stream, and its socket another thread's.
    fn open_stream(&mut self, meta: RequestMeta<'_>, answer: Response) -> Next {
        let Body::Events { bus, filter } = answer.body else { return Next::Close };
        let chunked = meta.minor == 1;
        let frame = Frame {
            request_id: meta.id.as_str(),
            keep_alive: false,
            delimited: Delimited::Stream { chunked },
        };
        let mut head = Vec::new();
        write_head(&mut head, 200, answer.content_type, &answer.headers, frame);
        if meta.is_head() {
            self.buffers.output.append(&mut head);
            meta.log(200);
            return Next::Close;
        }
        if self.flush().is_err() {
            return Next::Close;
        }
        let opening = Opening { seat: Arc::clone(self.seat), head, bus, filter, chunked };
        match self.shared.streams.open(opening) {
            Ok(()) => {
                meta.log(200);
                Next::Close
            }
            Err(error) => self.put(&meta, error.into_response(meta.id.as_str())),
        }
    }
}

/// Runs the handler; its panic is an answer, too.
fn handle(shared: &Shared, request: Request<'_>) -> Result<Response, Error> {
    let id = request.id();
    catch_unwind(AssertUnwindSafe(|| shared.service.handle(request))).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        log::error!(target: "http", request_id = id; "a handler panicked: {text}");
        Err(Error::new(500, "internal error"))
    })
}
