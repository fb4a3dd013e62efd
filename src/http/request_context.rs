//! The context of a request: its ID, method, path and start, for the head and the log line of its
//! answer.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use log::Level;
use tiny_http::Method;

use crate::random;

const ID_MOST: usize = 64;

/// Makes request ids that differ between runs of the daemon.
#[derive(Debug)]
pub(super) struct RequestIds {
    run: u32,
    next: AtomicU64,
}

/// Everything about a request that its answer's head and log line need.
#[derive(Debug)]
pub(super) struct RequestContext<'a> {
    /// The ID in `X-Request-ID` and in the log.
    pub(super) id: String,
    pub(super) method: Method,
    pub(super) path: Cow<'a, str>,
    /// The minor version of HTTP/1.
    pub(super) minor: u8,
    pub(super) keep_alive: bool,
    pub(super) began: Instant,
}

impl RequestIds {
    pub(super) fn new() -> Self {
        // A collision would only make the log ambiguous.
        let run = random::seed() as u32;
        Self {
            run,
            next: AtomicU64::new(1),
        }
    }

    /// The client's own id if it is valid, otherwise a new one.
    pub(super) fn take(&self, offered: Option<&str>) -> String {
        offered
            .filter(|id| is_proper(id))
            .map(str::to_owned)
            .unwrap_or_else(|| {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                format!("{:08x}-{number:x}", self.run)
            })
    }
}

fn is_proper(id: &str) -> bool {
    let proper = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=ID_MOST).contains(&id.len()) && id.bytes().all(proper)
}

impl RequestContext<'_> {
    pub(super) fn is_head(&self) -> bool {
        self.method == Method::Head
    }

    /// Logs the request under the id that its client gets.
    pub(super) fn log(&self, status: u16) {
        let duration_ms = self.began.elapsed().as_micros() as f64 / 1000.0;
        let request_id = &*self.id;
        let method = self.method.as_str();
        let path = &*self.path;
        let level = if status >= 500 {
            Level::Error
        } else {
            Level::Info
        };
        log::log!(
            target: "http", level, request_id, method, path, status, duration_ms;
            "{method} {path} {status} in {duration_ms:.3} ms"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_ids_are_kept_and_others_replaced() {
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
