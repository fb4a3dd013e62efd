//! What a client may take: sizes, numbers and times.
//!
//! Plain values, read by all workers. [`Limits::fitted`] raises the descriptor limit of the
//! process; nothing else here has an effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not the clients': database, compositor, children, log.
const OURS: u64 = 128;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Descriptors that clients may hold together: one for a connection, one more for an event
    /// stream or a file on its way.
    pub connections: usize,
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
    /// Answers owed by other threads.
    pub promises: usize,
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
    /// Between two keepalive comments of an event stream.
    pub keepalive: Duration,
    /// How long an event client may not read.
    pub stream_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            head: 16 << 10,
            path: 8 << 10,
            body: 8 << 20,
            bodies: 16,
            requests: 1_000,
            promises: 256,
            waiting: 64,
            streams: 256,
            head_time: Duration::from_secs(10),
            body_pause: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            write_pause: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            linger: Duration::from_secs(2),
            keepalive: Duration::from_secs(30),
            stream_pause: Duration::from_secs(600),
        }
    }
}

impl Limits {
    /// The defaults, with no more connections than the process has descriptors for. Raises the
    /// soft descriptor limit towards the hard one, but no further than can be used: children
    /// inherit it, and some of them walk through all of it.
    pub fn fitted() -> Self {
        let mut limits = Self::default();
        let wanted = limits.connections as u64 + OURS;
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
        // Even a process with hardly any descriptors serves a few clients.
        let left = soft.saturating_sub(OURS).max(16);
        limits.connections = limits.connections.min(usize::try_from(left).unwrap_or(usize::MAX));
        limits
    }
}

/// A number of things that may exist at a time; each holds a [`Permit`] while it does.
#[derive(Debug)]
pub(super) struct Semaphore {
    used: AtomicUsize,
    most: usize,
}

/// One thing of a [`Semaphore`]; dropping it makes room for the next.
#[derive(Debug)]
pub struct Permit {
    budget: Arc<Semaphore>,
}

impl Semaphore {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), most })
    }

    pub(super) fn claim(self: &Arc<Self>) -> Option<Permit> {
        let raised = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < self.most).then_some(used + 1)
            })
            .is_ok();
        raised.then(|| Permit { budget: Arc::clone(self) })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_exceeded_and_given_back() {
        let budget = Semaphore::new(2);
        let (one, two) = (budget.claim(), budget.claim());
        assert!(one.is_some() && two.is_some() && budget.claim().is_none());
        drop(one);
        let three = budget.claim();
        assert!(three.is_some() && budget.claim().is_none());
    }
}
