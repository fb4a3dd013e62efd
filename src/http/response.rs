//! The answer of a handler, and the only place where heads of answers are written.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tiny_http::StatusCode;

use crate::events::{EventBus, EventFilter};

const JSON: &str = "application/json";

/// An answer; its head is written once its request is known.
#[derive(Debug)]
pub struct Response {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Bytes(Cow<'static, [u8]>),
    /// `length` bytes of a file, sent as the client takes them, without a copy in our memory.
    File {
        file: File,
        offset: u64,
        length: u64,
    },
    /// The connection becomes a stream of these events.
    Events {
        bus: EventBus,
        filter: EventFilter,
    },
}

impl Response {
    pub fn json(status: u16, value: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self::bytes(status, JSON, serde_json::to_vec(value)?))
    }

    pub fn empty(status: u16) -> Self {
        Self::bytes(status, "", Vec::new())
    }

    pub fn bytes(
        status: u16,
        content_type: &'static str,
        bytes: impl Into<Cow<'static, [u8]>>,
    ) -> Self {
        Self::new(status, content_type, Body::Bytes(bytes.into()))
    }

    /// A success whose body is JSON text.
    pub(super) fn written_json(json: Vec<u8>) -> Self {
        Self::bytes(200, JSON, json)
    }

    pub fn events(bus: &EventBus, filter: EventFilter) -> Self {
        let body = Body::Events {
            bus: bus.clone(),
            filter,
        };
        Self::new(200, "text/event-stream", body).header("Cache-Control", "no-store")
    }

    pub(super) fn new(status: u16, content_type: &'static str, body: Body) -> Self {
        Self {
            status,
            content_type,
            headers: Vec::new(),
            body,
        }
    }

    #[must_use]
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        match &self.body {
            Body::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Body::File { length, .. } => format!("{length} bytes of a file"),
            Body::Events { .. } => "events".to_owned(),
        }
    }
}

impl Body {
    /// 0 for a stream, as its length is not known.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
            Self::Events { .. } => 0,
        }
    }
}

impl Response {
    /// Appends the head to `out`. A stream has no length: it comes in chunks or, over HTTP/1.0,
    /// lasts until the connection ends.
    pub(super) fn write_head(
        &self,
        out: &mut Vec<u8>,
        request_id: &str,
        keep_alive: bool,
        minor: u8,
    ) {
        let status = self.status;
        let reason = StatusCode(status).default_reason_phrase();
        put(out, format_args!("HTTP/1.1 {status} {reason}\r\nDate: "));
        put_date(out);
        if !self.content_type.is_empty() {
            put(out, format_args!("\r\nContent-Type: {}", self.content_type));
        }
        match &self.body {
            Body::Events { .. } if minor == 0 => {}
            Body::Events { .. } => out.extend(b"\r\nTransfer-Encoding: chunked"),
            // These two never have a body, and therefore no length.
            _ if matches!(status, 204 | 304) => {}
            body => put(out, format_args!("\r\nContent-Length: {}", body.length())),
        }
        put(out, format_args!("\r\nX-Request-ID: {request_id}"));
        for (name, value) in &self.headers {
            put(out, format_args!("\r\n{name}: {value}"));
        }
        let end: &[u8] = if keep_alive {
            b""
        } else {
            b"\r\nConnection: close"
        };
        out.extend_from_slice(end);
        out.extend_from_slice(b"\r\n\r\n");
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a Vec takes everything");
}

/// Appends the date, which each thread formats once a second.
fn put_date(out: &mut Vec<u8>) {
    thread_local! {
        static DATE: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    let now = SystemTime::now();
    let second = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    DATE.with_borrow_mut(|(of, text)| {
        if *of != second {
            *of = second;
            *text = httpdate::fmt_http_date(now);
        }
        out.extend_from_slice(text.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_announces_the_body() {
        let events = || Body::Events {
            bus: EventBus::new(),
            filter: EventFilter::ALL,
        };
        let bytes = |length| Body::Bytes(vec![b'x'; length].into());
        let check = |status, body, minor, keep_alive, has: &[&str], lacks: &[&str]| {
            let mut out = Vec::new();
            let answer = Response::new(status, "", body).header("Allow", "GET");
            answer.write_head(&mut out, "r-1", keep_alive, minor);
            let text = String::from_utf8(out).unwrap();
            assert!(
                text.ends_with("\r\n\r\n") && text.contains("\r\nDate: "),
                "{text}"
            );
            assert!(text.contains("X-Request-ID: r-1\r\n") && text.contains("Allow: GET\r\n"));
            assert!(has.iter().all(|part| text.contains(part)), "{text}");
            assert!(!lacks.iter().any(|part| text.contains(part)), "{text}");
        };
        check(
            405,
            bytes(7),
            1,
            true,
            &["405 Method Not Allowed", "Length: 7"],
            &["close"],
        );
        check(
            304,
            bytes(0),
            1,
            true,
            &["304 Not Modified"],
            &["Content-Length"],
        );
        check(200, events(), 1, true, &["chunked"], &["Content-Length"]);
        check(200, events(), 0, false, &["n: close"], &["chunked"]);
    }
}
