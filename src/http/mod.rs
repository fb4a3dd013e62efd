//! The API: HTTP/1.1 on a Unix socket.
//!
//! Reads and writes block, and each connection has a thread. From the socket up: `listener` accepts
//! clients; `connections` knows them and their threads; `connection` serves a client from the first
//! byte to the last; `parse` and `request` read a request; `router` finds its handler in the table of
//! `routes`; and `response`, `error`, `files` and `sse` are the kinds of answers. `waiting` limits the
//! handlers that wait for slow work, and `limits` has the limits of connections.

mod connection;
mod connections;
mod error;
mod error_status;
mod files;
#[cfg(parsers)]
#[path = "../../tests/fuzz/src/parsers/http.rs"]
pub mod fuzz;
mod handlers;
mod input;
mod limits;
mod listener;
mod parse;
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
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;

pub use error::Error;
pub use files::file;
pub use handlers::{Api, Stop};
pub use limits::Limits;
pub(crate) use limits::raise_descriptors;
pub(crate) use query::Paging;
pub use request::Request;
pub use response::Response;
pub(crate) use router::Service;
pub use router::{Handler, Route, Router};
pub use routes::ROUTES;
pub use waiting::Reply;

use connection::ServerState;
use listener::Listener;

use crate::sys::Waker;
use crate::thread::{Spawner, Thread};

/// A running server. Dropping it ends it at once; [`Server::end`] lets requests finish.
pub struct Server {
    shared: Arc<ServerState>,
    end: Arc<Waker>,
    /// Only the listener keeps it open.
    socket: Weak<UnixListener>,
    // Joined after `stop` has ended it.
    listener: Option<Thread>,
}

impl Server {
    /// Serves the clients of a socket, beginning with those that wait there.
    pub fn start(
        socket: UnixListener,
        spawner: &Spawner,
        service: impl Service,
        limits: Limits,
    ) -> io::Result<Self> {
        let shared = Arc::new(ServerState::new(service, Waker::new()?, limits));
        let mut server = Self {
            shared,
            end: Arc::new(Waker::new()?),
            socket: Weak::new(),
            listener: None,
        };
        server.listen(socket, spawner)?;
        Ok(server)
    }

    /// Accepts clients at another socket, instead of the present one.
    pub(crate) fn move_to(&mut self, socket: UnixListener, spawner: &Spawner) -> io::Result<()> {
        if let Some(before) = self.socket.upgrade() {
            rustix::net::shutdown(&*before, rustix::net::Shutdown::Both)?;
        }
        // Dropping the thread joins it.
        self.listener = None;
        self.listen(socket, spawner)
    }

    fn listen(&mut self, socket: UnixListener, spawner: &Spawner) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let socket = Arc::new(socket);
        self.socket = Arc::downgrade(&socket);
        let listener = Listener::new(socket, Arc::clone(&self.shared), Arc::clone(&self.end));
        self.listener = Some(spawner.spawn("listen", move || listener.run())?);
        Ok(())
    }

    /// Accepts no more clients, lets running requests finish and ends the event streams. Requests
    /// that are not finished by the deadline are refused. Returns the names of the threads that
    /// were late.
    pub fn end(mut self, deadline: Instant) -> Vec<String> {
        self.stop();
        let shared = &self.shared;
        // Clients that wait for no answer are disconnected at once, the others after their answer.
        shared.connections.shut(Shutdown::Read);
        let mut late = shared.streams.end(deadline);
        let finished = shared.connections.wait_empty(deadline);
        shared.waiting.end();
        let last = deadline.max(Instant::now()) + shared.limits.last_turn;
        if !finished && !shared.connections.wait_empty(last) {
            shared.connections.shut(Shutdown::Both);
        }
        late.extend(shared.threads.end(last));
        late
    }

    /// Accepts no new clients, and no further request from connected ones.
    fn stop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.end.wake();
        // Dropping the thread joins it: no client can connect any more.
        self.listener = None;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let shared = &self.shared;
        shared.waiting.end();
        shared.connections.shut(Shutdown::Both);
        // Without [`Server::end`], streams get no time for a farewell.
        shared.streams.end(Instant::now());
        shared.threads.end(Instant::now() + shared.limits.last_turn);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
