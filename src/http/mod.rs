//! The API: HTTP/1.1 on a Unix socket.
//!
//! Blocking handlers on workers that share one epoll: a connection costs a slot, no thread.
//! From the socket up: `listener` takes clients in, `workers` give them their turns, `connection`
//! is the state machine of one, `parse` and `request` make a request of its bytes, `router` finds
//! the handler in the one table of `routes`, `response`, `error`, `files`, `promise`, `errand` and
//! `sse` are what can come back. `limits` has every bound.

mod bell;
mod buffers;
mod connection;
mod errand;
mod error;
mod error_status;
mod files;
mod handlers;
mod limits;
mod listener;
mod meta;
mod nearest;
mod parse;
mod promise;
mod query;
mod request;
mod response;
mod router;
mod routes;
mod slots;
mod sse;
mod timers;
mod waiting;
mod workers;

use std::fmt;
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

pub use error::Error;
pub use files::{Conditions, file};
pub use handlers::{Api, ListCache, Stop};
pub use limits::{Limits, Permit};
pub use promise::{Giver, Promise};
pub use query::{Paging, Query};
pub use request::Request;
pub use response::{Full, Response};
pub use router::{Handler, Route, Router};
pub use routes::ROUTES;
pub use waiting::Reply;

use crate::thread::{Spawner, Thread};

/// More than requests may wait for slow work.
const WORKERS: usize = 72;
const RUNNERS: usize = 2;
/// What the threads get for what they have in hand when the time for requests is over.
const LAST_TURN: Duration = Duration::from_millis(200);

/// What answers requests; it is called by several workers at a time.
pub trait Service: Send + Sync + 'static {
    fn handle(&self, request: Request<'_>) -> Result<Response, Error>;
}

/// A running server. Dropping it ends it at once; [`Server::end`] lets requests finish.
pub struct Server {
    pool: Arc<workers::Pool>,
    emptied: Receiver<()>,
    /// Closed, it ends the threads of the errands.
    errands: Option<Sender<()>>,
    // Joined after `Drop` has told them to end.
    threads: Vec<Thread>,
}

impl Server {
    /// Serves the clients of `listener` from now on.
    pub fn start(
        listener: UnixListener,
        spawner: &Spawner,
        service: impl Service,
        limits: Limits,
    ) -> io::Result<Self> {
        let shared = connection::Shared {
            service: Arc::new(service),
            budget: limits::Semaphore::new(limits.connections),
            bodies: limits::Semaphore::new(limits.bodies),
            promises: promise::Promises::new(limits.promises)?,
            waiting: waiting::Waiting::new(limits.waiting),
            streams: sse::Streams::new(spawner, &limits)?,
            ids: meta::RequestIds::new(),
            stopping: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            limits,
        };
        let (emptied, told) = bounded(1);
        let pool = workers::Pool::new(shared, listener, emptied)?;
        let (errands, end) = bounded(0);
        let mut server = Self { pool, emptied: told, errands: Some(errands), threads: Vec::new() };
        for number in 0..WORKERS {
            let pool = Arc::clone(&server.pool);
            server.threads.push(spawner.spawn(&format!("http-{number}"), move || pool.work())?);
        }
        for number in 0..RUNNERS {
            let (promises, end) = (Arc::clone(&server.pool.shared.promises), end.clone());
            let body = move || promises.errands.run(&end);
            server.threads.push(spawner.spawn(&format!("errand-{number}"), body)?);
        }
        Ok(server)
    }

    /// Takes no more clients, lets running requests finish and ends the event streams. What is not
    /// finished by the deadline is refused. Returns the names of threads that were late.
    pub fn end(mut self, deadline: Instant) -> Vec<String> {
        self.pool.begin_end();
        let mut late = self.pool.shared.streams.end(deadline);
        // Closed only with the pool, which we hold: what comes is the word or the deadline.
        if self.emptied.recv_deadline(deadline).is_err() {
            self.pool.shared.waiting.end();
            self.pool.refuse_owed();
        }
        self.pool.finish_end();
        self.errands = None;
        let last = deadline.max(Instant::now()) + LAST_TURN;
        for thread in self.threads.drain(..) {
            let name = thread.name().to_owned();
            if !thread.join_by(last) {
                late.push(name);
            }
        }
        late
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.pool.shared.waiting.end();
        self.pool.finish_end();
        self.errands = None;
        // The streams of a server that was not ended in order get no farewell to wait for.
        self.pool.shared.streams.end(Instant::now());
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("threads", &self.threads).finish_non_exhaustive()
    }
}
