//! The limits of clients: sizes, numbers and times.
//!
//! Plain values, read by all threads of clients. [`Limits::fitted`] raises the descriptor limit of the
//! process; nothing else here has an effect.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors besides those of clients: database, compositor, children, log.
const OURS: u64 = 128;
/// A connection has its socket and, at times, the file that it sends.
const CONNECTION: usize = 2;
/// A stream has its connection and its waker.
const STREAM: usize = 2;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time, each with its thread; event streams do not count.
    pub connections: usize,
    /// The time without new clients until the memory kept for the next request is released.
    pub release_after: Duration,
    /// Bytes of the stack of a connection's thread: handlers read pictures on it.
    pub stack: usize,
    /// Bytes of the stack of an event stream's thread.
    pub stream_stack: usize,
    /// Bytes of a request's line and headers.
    pub head: usize,
    /// Bytes of a path.
    pub path: usize,
    /// Bytes of a body.
    pub body: usize,
    /// Requests on one connection.
    pub requests: u32,
    /// Requests that may wait for slow work at a time.
    pub waiting: usize,
    /// Event streams at a time.
    pub streams: usize,
    /// The time to send a whole head.
    pub head_time: Duration,
    /// The time between two pieces of a body.
    pub body_pause: Duration,
    /// The time to send a whole body.
    pub body_time: Duration,
    /// The time between two pieces of an answer.
    pub write_pause: Duration,
    /// The time between two requests.
    pub idle: Duration,
    /// The same, if fewer than a sixteenth of the connections are free.
    pub idle_when_full: Duration,
    /// How long a refused client may keep sending before its connection is closed.
    pub linger: Duration,
    /// How many bytes a refused client may still send.
    pub linger_bytes: usize,
    /// The time between two keepalive comments of an event stream.
    pub keepalive: Duration,
    /// How long the client of an event stream may read nothing.
    pub stream_pause: Duration,
    /// The time for the requests that still run at the deadline of `Server::end`.
    pub last_turn: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            release_after: Duration::from_secs(10),
            stack: 1 << 20,
            stream_stack: 128 << 10,
            head: 16 << 10,
            path: 8 << 10,
            body: 8 << 20,
            requests: 1_000,
            waiting: 64,
            streams: 256,
            head_time: Duration::from_secs(10),
            body_pause: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            write_pause: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            idle_when_full: Duration::from_secs(15),
            linger: Duration::from_secs(2),
            linger_bytes: 32 << 20,
            keepalive: Duration::from_secs(30),
            stream_pause: Duration::from_secs(600),
            last_turn: Duration::from_millis(500),
        }
    }
}

impl Limits {
    /// The defaults, with clients limited by the descriptors of the process. Raises the soft
    /// descriptor limit towards the hard one, but only as far as needed: children inherit it, and
    /// some of them iterate over it.
    pub fn fitted() -> Self {
        let limits = Self::default();
        let wanted = OURS + (limits.connections * CONNECTION + limits.streams * STREAM) as u64;
        let now = getrlimit(Resource::Nofile);
        let mut soft = now.current.unwrap_or(u64::MAX);
        let reachable = wanted.min(now.maximum.unwrap_or(u64::MAX));
        if soft < reachable {
            let raised = Rlimit {
                current: Some(reachable),
                maximum: now.maximum,
            };
            match setrlimit(Resource::Nofile, raised) {
                Ok(()) => soft = reachable,
                Err(error) => log::warn!("cannot raise the descriptor limit: {error}"),
            }
        }
        limits.for_descriptors(soft)
    }

    /// Idle connections are closed sooner if fewer than this number are free.
    pub(super) fn reserve(&self) -> usize {
        (self.connections / 16).max(1)
    }

    /// Fits the limits to a number of descriptors. A few clients are served in any case, and some
    /// connections never wait for slow work.
    fn for_descriptors(mut self, number: u64) -> Self {
        let left = usize::try_from(number.saturating_sub(OURS)).unwrap_or(usize::MAX);
        let shared = left / (CONNECTION + STREAM);
        self.connections = self.connections.min(shared.max(8));
        self.streams = self.streams.min(shared.max(4));
        self.waiting = self.waiting.min(self.connections / 2);
        self
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
        let (body, seconds) = (limits.body >> 20, |time: Duration| time.as_secs());
        let idle_when_full = seconds(limits.idle_when_full);
        for told in [
            format!("in UTF-8, at most {body} MiB"),
            format!("The body is larger than {body} MiB"),
            format!(
                "At most {} connections and {} event",
                limits.connections, limits.streams
            ),
            format!("is closed after {} idle seconds", seconds(limits.idle)),
            format!(
                "or after {} if fewer than {} more",
                idle_when_full,
                limits.reserve()
            ),
            format!("At most {} requests wait for slow work", limits.waiting),
            format!("follows every {} seconds", seconds(limits.keepalive)),
            format!("{} seconds to send the header", seconds(limits.head_time)),
            format!("{} seconds for the body", seconds(limits.body_time)),
            format!("{} seconds between two parts", seconds(limits.body_pause)),
            format!(
                "{} seconds to read a part of an answer",
                seconds(limits.write_pause)
            ),
            format!(
                "{} seconds on an event stream",
                seconds(limits.stream_pause)
            ),
        ] {
            assert!(manual.contains(&told), "the manual does not say: {told}");
        }
        assert!(manual.contains("up to 1,000 requests") && limits.requests == 1000);
    }

    #[test]
    fn few_descriptors_mean_few_clients_and_room_for_quick_requests() {
        let check = |descriptors, expected: (usize, usize, usize)| {
            let limits = Limits::default().for_descriptors(descriptors);
            assert_eq!(
                (limits.connections, limits.streams, limits.waiting),
                expected
            );
        };
        check(u64::MAX, (256, 256, 64));
        check(OURS + 1024, (256, 256, 64));
        check(1024, (224, 224, 64));
        check(256, (32, 32, 16));
        check(32, (8, 4, 4));
        check(0, (8, 4, 4));
    }
}
