//! The API: HTTP/1.1 on a Unix socket.
//!
//! Reads and writes block, and each connection has a worker. From the socket up: `pool` accepts
//! clients and gives each a worker; `connections` knows what each worker waits for; `connection`
//! serves a client from the first byte to the last; `parse` and `request` read a request; `router`
//! finds its handler in the table of `routes`; and `response`, `error`, `files` and `sse` are the
//! kinds of answers. `waiting` limits the handlers that wait for slow work, and `limits` has every
//! limit.

mod connection;
mod connections;
mod error;
mod error_status;
mod files;
#[cfg(debug_assertions)]
#[path = "../../tests/fuzz/src/parsers/http.rs"]
pub mod fuzz;
mod handlers;
mod input;
mod limits;
mod parse;
mod pool;
mod query;
mod request;
mod request_context;
mod response;
mod router;
mod routes;
mod sse;
mod waiting;

use std::fmt;
use std::io;
use std::os::unix::net::UnixListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

pub use error::Error;
pub use files::file;
pub use handlers::{Api, ListCache, Stop};
pub use limits::Limits;
pub(crate) use query::Paging;
pub use request::Request;
pub use response::Response;
pub(crate) use router::Service;
pub use router::{Handler, Route, Router};
pub use routes::ROUTES;
pub use waiting::Reply;

use connection::ServerState;

use crate::sys::Waker;
use crate::thread::{Spawner, Thread};

/// A running server. Dropping it ends it at once; [`Server::end`] lets requests finish.
pub struct Server {
    pool: Arc<pool::Pool>,
    end: Arc<Waker>,
    /// Closed, it ends the listener where it waits for a worker.
    ended: Option<Sender<()>>,
    /// The other end, for the next listener.
    ends: Receiver<()>,
    /// The listener alone keeps it open.
    socket: Weak<UnixListener>,
    // Joined after `stop` has told it to end.
    listener: Option<Thread>,
}

/// A socket on which clients may wait already, with all the descriptors that a server needs to
/// start. A process that has few descriptors opens these before its threads share the others.
#[derive(Debug)]
pub struct Listening {
    socket: UnixListener,
    end: Waker,
    streams_end: Waker,
}

impl Listening {
    pub fn new(socket: UnixListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, end: Waker::new()?, streams_end: Waker::new()? })
    }
}

impl Server {
    /// Serves the clients of `listening` from now on, those that wait there first.
    pub fn start(
        listening: Listening,
        spawner: &Spawner,
        service: impl Service,
        limits: Limits,
    ) -> io::Result<Self> {
        let Listening { socket, end, streams_end } = listening;
        let pool = pool::Pool::new(ServerState::new(service, streams_end, limits));
        let end = Arc::new(end);
        let (sender, ends) = bounded(0);
        let ended = Some(sender);
        let mut server = Self { pool, end, ended, ends, socket: Weak::new(), listener: None };
        server.listen(socket, spawner)?;
        Ok(server)
    }

    /// Takes clients in at another socket in place of the one before.
    pub(crate) fn move_to(&mut self, socket: UnixListener, spawner: &Spawner) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        if let Some(before) = self.socket.upgrade() {
            rustix::net::shutdown(&*before, rustix::net::Shutdown::Both)?;
        }
        // Joined.
        self.listener = None;
        self.listen(socket, spawner)
    }

    fn listen(&mut self, socket: UnixListener, spawner: &Spawner) -> io::Result<()> {
        let socket = Arc::new(socket);
        self.socket = Arc::downgrade(&socket);
        let listener = pool::Listener {
            socket,
            pool: Arc::clone(&self.pool),
            end: Arc::clone(&self.end),
            ended: self.ends.clone(),
            complained: None,
        };
        self.listener = Some(spawner.spawn("listen", move || listener.run())?);
        Ok(())
    }

    /// Accepts no more clients, lets running requests finish and ends the event streams. Requests
    /// that are not finished by the deadline are refused. Returns the names of the threads that
    /// were late.
    pub fn end(mut self, deadline: Instant) -> Vec<String> {
        self.stop();
        let shared = &self.pool.shared;
        shared.connections.shut_readers();
        let mut late = shared.streams.end(deadline);
        let finished = shared.connections.wait_empty(deadline);
        shared.waiting.end();
        let last = deadline.max(Instant::now()) + shared.limits.last_turn;
        if !finished && !shared.connections.wait_empty(last) {
            shared.connections.shut_all();
        }
        late.extend(self.pool.end(last));
        late
    }

    /// No new clients, and no further request from those that are there.
    fn stop(&mut self) {
        self.pool.shared.stopping.store(true, Ordering::SeqCst);
        self.end.wake();
        self.ended = None;
        // Joined: nobody can connect any more.
        self.listener = None;
        // Now, not when the last request is done: who is idle is not late for the others' sake.
        self.pool.dismiss();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let shared = &self.pool.shared;
        shared.waiting.end();
        shared.connections.shut_all();
        // The streams of a server that was not ended in order get no farewell to wait for.
        shared.streams.end(Instant::now());
        self.pool.end(Instant::now() + shared.limits.last_turn);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
