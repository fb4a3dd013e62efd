//! The context of a request: its ID, method, path and start, for the head and the log line of its
//! answer.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tiny_http::Method;

use crate::logging::{self, RequestLine};
use crate::random;

const ID_MOST: usize = 64;

/// The ID in `X-Request-ID` and in the log.
#[derive(Clone, Copy)]
pub(super) struct RequestId {
    bytes: [u8; ID_MOST],
    length: u8,
}

/// Makes request ids that no other run of the daemon makes.
#[derive(Debug)]
pub(super) struct RequestIds {
    run: u32,
    next: AtomicU64,
}

/// Everything about a request that its answer's head and log line need.
#[derive(Debug)]
pub(super) struct RequestContext<'a> {
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) path: Cow<'a, str>,
    /// The minor version of HTTP/1.
    pub(super) minor: u8,
    pub(super) keep_alive: bool,
    pub(super) began: Instant,
}

impl RequestIds {
    pub(super) fn new() -> Self {
        // Collisions would only confuse.
        let run = random::seed() as u32;
        Self { run, next: AtomicU64::new(1) }
    }

    /// The client's own id if it is a proper one, else a fresh one.
    pub(super) fn take(&self, offered: Option<&str>) -> RequestId {
        match offered {
            Some(id) if is_proper(id) => RequestId::of(format_args!("{id}")),
            _ => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                RequestId::of(format_args!("{:08x}-{number:x}", self.run))
            }
        }
    }
}

fn is_proper(id: &str) -> bool {
    let proper = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=ID_MOST).contains(&id.len()) && id.bytes().all(proper)
}

impl RequestId {
    fn of(text: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; ID_MOST];
        let mut rest = &mut bytes[..];
        rest.write_fmt(text).expect("an id fits: 8 + 1 + 16 digits, or measured before");
        let length = (ID_MOST - rest.len()) as u8;
        Self { bytes, length }
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).expect("ids are ASCII")
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl RequestContext<'_> {
    pub(super) fn is_head(&self) -> bool {
        self.method == Method::Head
    }

    /// The request's line in the log, which has every id that a client was given.
    pub(super) fn log(&self, status: u16) {
        logging::request(&RequestLine {
            id: self.id.as_str(),
            method: self.method.as_str(),
            path: &self.path,
            status,
            duration: self.began.elapsed(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proper_ids_are_taken_and_others_replaced() {
        let ids = RequestIds::new();
        let check = |offered: &str, taken: bool| {
            let id = ids.take(Some(offered));
            assert_eq!(id.as_str() == offered, taken, "{offered:?}");
            assert!(is_proper(id.as_str()));
        };
        check("a", true);
        check("A.b_c-9", true);
        check(&"x".repeat(64), true);
        check(&"x".repeat(65), false);
        check("", false);
        check("a b", false);
        check("a\u{e9}", false);
        assert_ne!(ids.take(None).as_str(), ids.take(None).as_str());
    }
}
