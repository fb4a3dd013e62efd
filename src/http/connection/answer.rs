//! Answers a whole request, and sends the bytes. Handlers run here.
//!
//! Most answers fit into the socket at once. Otherwise the thread waits for its client, as long as
//! the client keeps reading.

use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::io::Errno;

use super::{Connection, GATHERED, Next, ServerState, Stop};
use crate::http::error::Error;
use crate::http::parse::{Framing, Head, Refusal};
use crate::http::request::Request;
use crate::http::request_context::RequestContext;
use crate::http::response::{Body, Response};
use crate::thread::panic_text;

impl Connection<'_> {
    pub(super) fn context<'h>(&self, head: &Head<'h>) -> RequestContext<'h> {
        RequestContext {
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
        let mut context = self.context(&head);
        context.keep_alive = framing.keep_alive && self.served < self.shared.limits.requests;
        let id = &context.id;
        let answer = Request::new(head, body, id, &self.shared.waiting)
            .map(|request| request.among(&self.shared.connections, &self.client))
            .and_then(|request| handle(self.shared, request))
            .unwrap_or_else(|error| error.into_response(id));
        if let Body::Events { .. } = answer.body {
            return self.open_stream(context, answer);
        }
        self.put(&context, answer)
    }

    pub(super) fn refuse(&mut self, context: &RequestContext<'_>, refusal: Refusal) -> Next {
        let error = Error::new(refusal.status, refusal.why);
        self.put(context, error.into_response(&context.id))
    }

    /// Writes an answer, after the answers to earlier requests.
    fn put(&mut self, context: &RequestContext<'_>, answer: Response) -> Next {
        let keep_alive = context.keep_alive && !self.shared.stopping.load(Ordering::Relaxed);
        answer.write_head(&mut self.output, &context.id, keep_alive, context.minor);
        let sent = if context.is_head() {
            Ok(())
        } else {
            self.put_body(&answer.body)
        };
        context.log(answer.status);
        if sent.is_ok() && keep_alive {
            Next::Request
        } else {
            Next::Close
        }
    }

    fn put_body(&mut self, body: &Body) -> Result<(), Stop> {
        let bytes: &[u8] = match body {
            Body::Bytes(bytes) => bytes,
            Body::File {
                file,
                offset,
                length,
            } => {
                self.flush()?;
                return self.send_file(file, *offset, *length);
            }
            Body::Events { .. } => &[],
        };
        if self.output.len() + bytes.len() <= GATHERED {
            self.output.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        self.send(bytes)
    }

    /// Turns the connection into a stream, whose thread then owns the socket.
    fn open_stream(&mut self, context: RequestContext<'_>, answer: Response) -> Next {
        let mut head = Vec::new();
        answer.write_head(&mut head, &context.id, false, context.minor);
        let Body::Events { bus, filter } = answer.body else {
            return Next::Close;
        };
        if context.is_head() {
            self.output.append(&mut head);
            context.log(200);
            return Next::Close;
        }
        if self.flush().is_err() {
            return Next::Close;
        }
        let client = Arc::clone(&self.client);
        let chunked = context.minor == 1;
        let streams = &self.shared.streams;
        match streams.open(client, head, (&bus, filter), chunked) {
            Ok(()) => {
                context.log(200);
                Next::Close
            }
            Err(error) => self.put(&context, error.into_response(&context.id)),
        }
    }
}

/// Runs the handler; a panic becomes an answer, too.
fn handle(shared: &ServerState, request: Request<'_>) -> Result<Response, Error> {
    let id = request.id();
    catch_unwind(AssertUnwindSafe(|| shared.service.handle(request))).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        log::error!(target: "http", request_id = id; "a handler panicked: {text}");
        Err(Error::new(500, "internal error"))
    })
}

/// Bytes of a file that are sent at a time, with a time-out for each.
const FILE_PIECE: u64 = 1 << 20;

impl Connection<'_> {
    /// Sends the gathered bytes.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        let sent = self.send(&self.output);
        self.output.clear();
        sent
    }

    /// Fails if the client is gone, or if it reads nothing until the time-out of the socket.
    fn send(&self, bytes: &[u8]) -> Result<(), Stop> {
        (&self.client.socket)
            .write_all(bytes)
            .map_err(|_| Stop::Quietly)
    }

    /// Sends a part of a file without copying it through our memory.
    fn send_file(&self, file: &File, offset: u64, length: u64) -> Result<(), Stop> {
        let mut at = offset;
        let end = offset + length;
        while at < end {
            let piece = usize::try_from((end - at).min(FILE_PIECE)).unwrap_or(usize::MAX);
            match rustix::fs::sendfile(&self.client.socket, file, Some(&mut at), piece) {
                // The file has shrunk, and the length that was announced cannot be kept.
                Ok(0) => return Err(Stop::Quietly),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return Err(Stop::Quietly),
            }
        }
        Ok(())
    }
}
