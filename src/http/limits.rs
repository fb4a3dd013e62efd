//! The limits of clients: sizes, numbers and times.
//!
//! Plain values, read by all workers. [`Limits::fitted`] raises the descriptor limit of the
//! process; nothing else here has an effect.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not the clients': database, compositor, children, log.
const OURS: u64 = 128;
/// A worker has its connection, and sometimes a file on its way.
const WORKER: usize = 2;
/// A stream has its connection, and what wakes it.
const STREAM: usize = 2;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time, each with its thread; event streams do not count.
    pub workers: usize,
    /// After which a worker without a connection ends.
    pub worker_idle: Duration,
    /// Bytes of a worker's stack: handlers read pictures on it.
    pub stack: usize,
    /// Bytes of the stack of an event stream's thread.
    pub stream_stack: usize,
    /// Bytes of a request's line and headers.
    pub head: usize,
    /// Bytes of a path.
    pub path: usize,
    /// Bytes of a body.
    pub body: usize,
    /// Bodies of more than 64 KiB on their way at a time.
    pub bodies: usize,
    /// Requests on one connection.
    pub requests: u32,
    /// Requests that wait for slow work.
    pub waiting: usize,
    /// Event streams.
    pub streams: usize,
    /// For a whole head.
    pub head_time: Duration,
    /// Between two pieces of a body.
    pub body_pause: Duration,
    /// For a whole body.
    pub body_time: Duration,
    /// Between two pieces of an answer.
    pub write_pause: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For a refused client to read why, while it still sends.
    pub linger: Duration,
    /// Bytes that it may still send.
    pub linger_bytes: usize,
    /// Between two keepalive comments of an event stream.
    pub keepalive: Duration,
    /// How long an event client may not read.
    pub stream_pause: Duration,
    /// For what the workers have in hand when the time for requests is over.
    pub last_turn: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            workers: 256,
            worker_idle: Duration::from_secs(60),
            stack: 1 << 20,
            stream_stack: 128 << 10,
            head: 16 << 10,
            path: 8 << 10,
            body: 8 << 20,
            bodies: 16,
            requests: 1_000,
            waiting: 64,
            streams: 256,
            head_time: Duration::from_secs(10),
            body_pause: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            write_pause: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            linger: Duration::from_secs(2),
            linger_bytes: 32 << 20,
            keepalive: Duration::from_secs(30),
            stream_pause: Duration::from_secs(600),
            last_turn: Duration::from_millis(500),
        }
    }
}

impl Limits {
    /// The defaults, with no more clients than the process has descriptors for. Raises the soft
    /// descriptor limit towards the hard one, but no further than can be used: children inherit it,
    /// and some of them walk through all of it.
    pub fn fitted() -> Self {
        let limits = Self::default();
        let wanted = OURS + (limits.workers * WORKER + limits.streams * STREAM) as u64;
        let now = getrlimit(Resource::Nofile);
        let mut soft = now.current.unwrap_or(u64::MAX);
        let reachable = wanted.min(now.maximum.unwrap_or(u64::MAX));
        if soft < reachable {
            let raised = Rlimit { current: Some(reachable), maximum: now.maximum };
            match setrlimit(Resource::Nofile, raised) {
                Ok(()) => soft = reachable,
                Err(error) => log::warn!("cannot raise the descriptor limit: {error}"),
            }
        }
        limits.for_descriptors(soft)
    }

    /// Even a process with hardly any descriptors serves a few clients, and some of its workers never
    /// wait for slow work.
    fn for_descriptors(mut self, number: u64) -> Self {
        let left = usize::try_from(number.saturating_sub(OURS)).unwrap_or(usize::MAX);
        let shared = left / (WORKER + STREAM);
        self.workers = self.workers.min(shared.max(8));
        self.streams = self.streams.min(shared.max(4));
        self.waiting = self.waiting.min(self.workers / 2);
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
        assert_eq!(limits.workers, limits.streams);
        for told in [
            format!("in UTF-8, of {body} MiB at most"),
            format!("The body is larger than {body} MiB"),
            format!("waits for nothing is closed after {} seconds", seconds(limits.idle)),
            format!("There are {} at a time, and as many streams", limits.workers),
            format!("At most {} requests at a time wait", limits.waiting),
            format!("Every {} seconds comes a comment", seconds(limits.keepalive)),
            format!("{} seconds for the head", seconds(limits.head_time)),
            format!("{} seconds for its body", seconds(limits.body_time)),
            format!("{} seconds between two pieces", seconds(limits.body_pause)),
            format!("{} seconds to take more of an answer", seconds(limits.write_pause)),
            format!("{} seconds of a stream", seconds(limits.stream_pause)),
        ] {
            assert!(manual.contains(&told), "the manual does not say: {told}");
        }
        assert!(manual.contains("a thousand at most") && limits.requests == 1000);
        // Not in the manual: the memory that bodies take.
        assert!(limits.bodies * limits.body <= 128 << 20);
    }

    #[test]
    fn few_descriptors_mean_few_clients_and_room_for_quick_requests() {
        let check = |descriptors, expected: (usize, usize, usize)| {
            let limits = Limits::default().for_descriptors(descriptors);
            assert_eq!((limits.workers, limits.streams, limits.waiting), expected);
        };
        check(u64::MAX, (256, 256, 64));
        check(OURS + 1024, (256, 256, 64));
        check(1024, (224, 224, 64));
        check(256, (32, 32, 16));
        check(32, (8, 4, 4));
        check(0, (8, 4, 4));
    }
}
