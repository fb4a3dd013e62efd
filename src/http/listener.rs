//! The thread `listen`: accepts clients and starts a thread for each.
//!
//! It never waits for a client. It survives a shortage of descriptors and of threads. While no client
//! is connected, it releases the memory that the service keeps for the next request.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::geteuid;

use super::connection::{Connection, ServerState};
use super::connections::Client;
use super::error::Error;
use super::response::Body;
use crate::memory;
use crate::sys::{Waker, peer, poll_until};

/// How long the listener waits when descriptors are short.
const PAUSE: Duration = Duration::from_millis(50);
/// The shortest time between two warnings about that in the log.
const COMPLAINT: Duration = Duration::from_secs(60);

pub(super) struct Listener {
    /// Shut down by the server when another socket replaces it.
    socket: Arc<UnixListener>,
    shared: Arc<ServerState>,
    /// Wakes the thread at the end of the server.
    end: Arc<Waker>,
    /// When the last warning about a shortage was logged.
    complained: Option<Instant>,
    /// When to check whether any client is connected.
    release_at: Option<Instant>,
}

impl Listener {
    pub(super) fn new(
        socket: Arc<UnixListener>,
        shared: Arc<ServerState>,
        end: Arc<Waker>,
    ) -> Self {
        let complained = None;
        let release_at = None;
        Self {
            socket,
            shared,
            end,
            complained,
            release_at,
        }
    }

    /// Accepts clients until the server ends or its socket is replaced.
    pub(super) fn run(mut self) {
        while !self.is_ending() {
            let mut waited = [
                PollFd::new(&*self.socket, PollFlags::IN),
                PollFd::new(&*self.end, PollFlags::IN),
            ];
            let polled = poll_until(&mut waited, self.release_at);
            let come = waited[0].revents();
            match polled {
                Ok(true) => {}
                Ok(false) => self.release(),
                Err(error) => panic!("cannot wait for clients: {error}"),
            }
            if !come.is_empty() && !self.is_ending() {
                self.accept();
            }
            if come.contains(PollFlags::HUP) {
                return;
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.shared.stopping.load(Ordering::SeqCst)
    }

    /// Releases the caches of readers and the free memory that a burst of requests leaves, once no
    /// client is connected.
    fn release(&mut self) {
        if self.shared.connections.number() > 0 {
            self.release_at = Some(Instant::now() + self.shared.limits.release_after);
            return;
        }
        self.release_at = None;
        self.shared.service.release_memory();
        memory::trim();
    }

    /// Accepts the clients that wait in the backlog.
    fn accept(&mut self) {
        self.release_at = Some(Instant::now() + self.shared.limits.release_after);
        while !self.is_ending() {
            match accept_with(&*self.socket, SocketFlags::CLOEXEC) {
                Ok(socket) => self.serve(socket.into()),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    self.complain(error);
                    self.shared.service.release_memory();
                    let mut end = [PollFd::new(&*self.end, PollFlags::IN)];
                    poll_until(&mut end, Some(Instant::now() + PAUSE)).ok();
                }
            }
        }
    }

    fn serve(&self, socket: UnixStream) {
        let client = self.shared.connections.add(socket);
        let started = if is_ours(&client.socket) {
            let shared = Arc::clone(&self.shared);
            let client = Arc::clone(&client);
            self.shared
                .threads
                .start(move || Connection::new(&shared, client).serve())
        } else {
            Err(Error::new(403, "this socket is another user's"))
        };
        if let Err(error) = started {
            self.shared.connections.remove(&client);
            self.refuse(&client, error);
        }
    }

    /// Sends the reason, as far as the socket accepts it.
    fn refuse(&self, client: &Client, error: Error) {
        let id = self.shared.ids.take(None);
        let answer = error.into_response(&id);
        let mut bytes = Vec::new();
        answer.write_head(&mut bytes, &id, false, 1);
        if let Body::Bytes(body) = &answer.body {
            bytes.extend_from_slice(body);
        }
        // The buffer of a new socket is empty, so this does not block.
        (&client.socket).write_all(&bytes).ok();
        log::info!(target: "http", request_id = id; "refused a client: {}", answer.status);
    }

    fn complain(&mut self, error: Errno) {
        if self
            .complained
            .is_none_or(|last| last.elapsed() >= COMPLAINT)
        {
            self.complained = Some(Instant::now());
            log::warn!(target: "http", "cannot accept clients: {error}");
        }
    }
}

/// Whether the peer is the daemon's user or root. The directory keeps other users out already,
/// unless its permissions are loosened.
fn is_ours(socket: &UnixStream) -> bool {
    match peer(socket) {
        Ok(peer) => {
            log::debug!(target: "http", "connected: process {}, user {}", peer.pid, peer.uid);
            peer.uid == 0 || peer.uid == geteuid().as_raw()
        }
        // The peer is gone.
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::time::Duration;

    use crossbeam_channel::{Sender, unbounded};

    use super::*;
    use crate::http::{Limits, Request, Response, Server, Service};
    use crate::thread::Spawner;

    struct Releasing(Sender<()>);

    impl Service for Releasing {
        fn handle(&self, _request: Request<'_>) -> Result<Response, Error> {
            Ok(Response::empty(204))
        }

        fn release_memory(&self) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn memory_is_released_when_nobody_is_connected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let listening = UnixListener::bind(&path).unwrap();
        let (release, released) = unbounded();
        let limits = Limits {
            release_after: Duration::from_millis(10),
            ..Limits::default()
        };
        let (spawner, _deaths) = Spawner::new();
        let _server = Server::start(listening, &spawner, Releasing(release), limits).unwrap();
        let mut client = crate::sys::connect(&path).unwrap();
        client.set_nonblocking(false).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        client.read_exact(&mut [0; 12]).unwrap();
        assert!(
            released.recv_timeout(Duration::from_millis(50)).is_err(),
            "one is connected"
        );
        drop(client);
        released
            .recv_timeout(Duration::from_secs(60))
            .expect("it is released");
    }
}
