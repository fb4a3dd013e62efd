//! Answers a whole request, and sends the bytes. Handlers run here.
//!
//! Most answers fit into the socket at once. Otherwise the worker waits for its client, as long as
//! the client goes on reading.

use std::fs::File;
use std::io::IoSlice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use super::{Connection, GATHERED, Next, ServerState, Stop};
use crate::http::error::Error;
use crate::http::parse::{Framing, Head, Refusal};
use crate::http::request::Request;
use crate::http::request_context::RequestContext;
use crate::http::response::{Body, Delimited, Frame, Response, write_head};
use crate::http::sse::Opening;
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
        let id = context.id;
        let answer = Request::new(head, body, id.as_str(), &self.shared.waiting)
            .map(|request| request.among(&self.shared.connections, self.client))
            .and_then(|request| handle(self.shared, request))
            .unwrap_or_else(|error| error.into_response(id.as_str()));
        if let Body::Events { .. } = answer.body {
            return self.open_stream(context, answer);
        }
        self.put(&context, answer)
    }

    pub(super) fn refuse(&mut self, context: &RequestContext<'_>, refusal: Refusal) -> Next {
        let error = Error::new(refusal.status, refusal.why);
        self.put(context, error.into_response(context.id.as_str()));
        Next::Linger
    }

    /// Writes an answer, behind those of the requests before it.
    fn put(&mut self, context: &RequestContext<'_>, answer: Response) -> Next {
        let keep_alive = context.keep_alive && !self.shared.stopping.load(Ordering::Relaxed);
        let frame = Frame {
            request_id: context.id.as_str(),
            keep_alive,
            delimited: Delimited::By(answer.body.length()),
        };
        let output = &mut self.buffers.output;
        write_head(output, answer.status, answer.content_type, &answer.headers, frame);
        let status = answer.status;
        let sent = if context.is_head() { Ok(()) } else { self.put_body(&answer.body) };
        context.log(status);
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
    fn open_stream(&mut self, context: RequestContext<'_>, answer: Response) -> Next {
        let Body::Events { bus, filter } = answer.body else { return Next::Close };
        let chunked = context.minor == 1;
        let frame = Frame {
            request_id: context.id.as_str(),
            keep_alive: false,
            delimited: Delimited::Stream { chunked },
        };
        let mut head = Vec::new();
        write_head(&mut head, 200, answer.content_type, &answer.headers, frame);
        if context.is_head() {
            self.buffers.output.append(&mut head);
            context.log(200);
            return Next::Close;
        }
        if self.flush().is_err() {
            return Next::Close;
        }
        let opening = Opening { client: Arc::clone(self.client), head, bus, filter, chunked };
        match self.shared.streams.open(opening) {
            Ok(()) => {
                context.log(200);
                Next::Close
            }
            Err(error) => self.put(&context, error.into_response(context.id.as_str())),
        }
    }
}

/// Runs the handler; its panic is an answer, too.
fn handle(shared: &ServerState, request: Request<'_>) -> Result<Response, Error> {
    let id = request.id();
    catch_unwind(AssertUnwindSafe(|| shared.service.handle(request))).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        log::error!(target: "http", request_id = id; "a handler panicked: {text}");
        Err(Error::new(500, "internal error"))
    })
}

const AT_ONCE: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// Bytes sent at a time. After each piece the time since the client last read is counted again.
const PIECE: usize = 256 << 10;
/// The same, of a file.
const FILE_PIECE: u64 = 1 << 20;
/// How long a client that was shut down may take to read the answer to its last request.
const PARTING: Duration = Duration::from_millis(100);
/// More is not kept for the next answers.
const KEPT: usize = 64 << 10;

impl Connection<'_> {
    /// Sends what was gathered.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        if self.buffers.output.is_empty() {
            return Ok(());
        }
        let sent = self.send(&self.buffers.output);
        self.buffers.output.clear();
        if self.buffers.output.capacity() > KEPT {
            self.buffers.output = Vec::new();
        }
        sent
    }

    /// Sends what was gathered and this behind it: at once, where the socket takes both.
    pub(super) fn send_behind(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let output = &self.buffers.output;
        let both = [IoSlice::new(output), IoSlice::new(bytes)];
        let (mut nothing, flags) = (SendAncillaryBuffer::default(), AT_ONCE);
        let sent = match sendmsg(self.client.socket(), &both, &mut nothing, flags) {
            Ok(sent) => sent,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return Err(Stop::Quietly),
        };
        let of_output = sent.min(output.len());
        let done = self.send(&output[of_output..]);
        self.buffers.output.clear();
        done?;
        self.send(&bytes[sent - of_output..])
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Stop> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut rest = match send(self.client.socket(), bytes, AT_ONCE) {
            Ok(sent) => &bytes[sent..],
            Err(Errno::AGAIN | Errno::INTR) => bytes,
            Err(_) => return Err(Stop::Quietly),
        };
        if rest.is_empty() {
            return Ok(());
        }
        while !rest.is_empty() {
            self.waits_for_reader();
            let piece = &rest[..rest.len().min(PIECE)];
            match send(self.client.socket(), piece, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::INTR) => {}
                // Among them the time-out, and a shutdown for somebody else.
                Err(_) => return Err(Stop::Quietly),
            }
        }
        self.back_to_work()
    }

    /// Sends a part of a file without copying it through our memory.
    pub(super) fn send_file(&self, file: &File, offset: u64, length: u64) -> Result<(), Stop> {
        let (mut at, end) = (offset, offset + length);
        while at < end {
            self.waits_for_reader();
            let piece = usize::try_from((end - at).min(FILE_PIECE)).unwrap_or(usize::MAX);
            match rustix::fs::sendfile(self.client.socket(), file, Some(&mut at), piece) {
                // The file has shrunk, and the length that was announced cannot be kept.
                Ok(0) => return Err(Stop::Quietly),
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return Err(Stop::Quietly),
            }
        }
        self.back_to_work()
    }

    fn waits_for_reader(&self) {
        if !self.client.writes(Instant::now()) {
            // The connection was shut down while its request arrived, and its worker is promised to
            // a new client. If this fails, the new client waits longer.
            self.client.socket().set_write_timeout(Some(PARTING)).ok();
        }
        self.shared.connections.tell();
    }

    fn back_to_work(&self) -> Result<(), Stop> {
        if self.client.works() { Ok(()) } else { Err(Stop::Quietly) }
    }
}
