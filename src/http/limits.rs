//! The limits of clients: sizes, numbers and times.
//!
//! Plain values, read by all threads of clients.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Two for each connection and stream, and others for the database, the compositor and children.
const DESCRIPTORS: u64 = 1152;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time, each with its thread; event streams do not count.
    pub connections: usize,
    /// Event streams at a time.
    pub streams: usize,
    /// Requests that may wait for slow work at a time.
    pub waiting: usize,
    /// Requests on one connection.
    pub requests: u32,
    /// Bytes of a request's line and headers.
    pub head: usize,
    /// Bytes of a body.
    pub body: usize,
    /// The time to send a whole head, and between two pieces of a body.
    pub pause: Duration,
    /// The time to send a whole body.
    pub body_time: Duration,
    /// The time between two pieces of an answer.
    pub write_pause: Duration,
    /// The time between two requests.
    pub idle: Duration,
    /// The time between two keepalive comments of an event stream.
    pub keepalive: Duration,
    /// How long the client of an event stream may read nothing.
    pub stream_pause: Duration,
    /// The time without new clients until the memory kept for the next request is released.
    pub release_after: Duration,
    /// The time for the requests that still run at the deadline of `Server::end`.
    pub last_turn: Duration,
    /// Bytes of the stack of a connection's thread: handlers read pictures on it.
    pub stack: usize,
    /// Bytes of the stack of an event stream's thread.
    pub stream_stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            streams: 256,
            waiting: 64,
            requests: 1_000,
            head: 16 << 10,
            body: 8 << 20,
            pause: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            write_pause: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            keepalive: Duration::from_secs(30),
            stream_pause: Duration::from_secs(600),
            release_after: Duration::from_secs(10),
            last_turn: Duration::from_millis(500),
            stack: 1 << 20,
            stream_stack: 128 << 10,
        }
    }
}

/// Raises the soft descriptor limit of the process, but only as far as needed: children inherit it,
/// and some of them iterate over it.
pub(crate) fn raise_descriptors() {
    let now = getrlimit(Resource::Nofile);
    let reachable = DESCRIPTORS.min(now.maximum.unwrap_or(u64::MAX));
    if now.current.is_some_and(|soft| soft < reachable) {
        let raised = Rlimit {
            current: Some(reachable),
            maximum: now.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            log::warn!("cannot raise the descriptor limit: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The manual states these limits.
    #[test]
    fn limits_are_those_of_the_manual() {
        let manual = include_str!("../../man/murald-api.7").replace('\n', " ");
        let limits = Limits::default();
        let body = limits.body >> 20;
        let seconds = |time: Duration| time.as_secs();
        for told in [
            format!("in UTF-8, at most {body} MiB"),
            format!("The body is larger than {body} MiB"),
            format!("connections Ta {} Ta", limits.connections),
            format!("event streams Ta {} Ta", limits.streams),
            format!("requests for slow work Ta {} Ta", limits.waiting),
            format!("time between requests Ta {} s", seconds(limits.idle)),
            format!("header Ta {} s", seconds(limits.pause)),
            format!("body Ta {} s, {body} MiB", seconds(limits.body_time)),
            format!("parts of a body Ta {} s", seconds(limits.pause)),
            format!("a part of a response Ta {} s", seconds(limits.write_pause)),
            format!("a part of a stream Ta {} s", seconds(limits.stream_pause)),
            format!("follows every {} seconds", seconds(limits.keepalive)),
        ] {
            assert!(manual.contains(&told), "the manual does not say: {told}");
        }
        assert!(manual.contains("on a connection Ta 1,000 Ta") && limits.requests == 1000);
    }
}
