//! The workers (`http-N`), each of which serves one connection from start to end, and the thread
//! `listen`, which accepts clients and gives each a worker.
//!
//! A worker is started if none is free, and ends after a minute without work. Free workers are
//! counted under the lock by the thread that hands out work, so that no connection waits for a
//! worker that only seems free. When the last worker ends, the service releases the memory that it
//! keeps for the next request.
//!
//! The listener survives a shortage of descriptors and of threads. Silent or slow clients cannot
//! lock others out: the connection that has kept its worker waiting longest is closed. If all
//! workers are working, the new client waits in the listener, and others wait in the backlog.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, select};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};
use rustix::process::geteuid;

use super::connection::{Buffers, Connection, ServerState};
use super::connections::Client;
use super::error::Error;
use super::response::{Body, Delimited, Frame, write_head};
use crate::memory;
use crate::sys::{Waker, lock, poll_until, unpoisoned};
use crate::thread::{self, Thread, panic_text};

pub(super) struct Pool {
    pub(super) shared: ServerState,
    state: Mutex<PoolState>,
    work: Condvar,
}

#[derive(Default)]
struct PoolState {
    /// Connections that wait for a worker: a free one, or one whose connection was shut for them.
    queue: VecDeque<Arc<Client>>,
    /// Workers that wait for a connection.
    free: usize,
    running: usize,
    started: u64,
    threads: Vec<Thread>,
    ended: bool,
}

/// The result of placing a connection with a worker.
pub(super) enum Placed {
    Yes,
    /// All workers are at work for their clients.
    NoRoom(Arc<Client>),
    /// There is no worker and none can be started.
    NoWorker(Arc<Client>, io::Error),
}

impl Pool {
    pub(super) fn new(shared: ServerState) -> Arc<Self> {
        Arc::new(Self { shared, state: Mutex::default(), work: Condvar::new() })
    }

    /// Gives a connection a worker: a free one, a new one, or that of the connection that has kept
    /// its worker waiting longest.
    pub(super) fn place(self: &Arc<Self>, client: Arc<Client>) -> Placed {
        let mut state = self.lock();
        if state.free > state.queue.len() {
            state.queue.push_back(client);
            self.work.notify_one();
            return Placed::Yes;
        }
        if state.running < self.shared.limits.workers {
            match self.start(&mut state, &client) {
                Ok(()) => return Placed::Yes,
                Err(error) if state.running == 0 => return Placed::NoWorker(client, error),
                // The existing workers have to do.
                Err(_) => {}
            }
        }
        if self.shared.connections.shut_longest(|_| true) {
            state.queue.push_back(client);
            return Placed::Yes;
        }
        Placed::NoRoom(client)
    }

    fn start(self: &Arc<Self>, state: &mut PoolState, client: &Arc<Client>) -> io::Result<()> {
        state.threads.retain(|thread| !thread.has_ended());
        let (pool, first) = (Arc::clone(self), Arc::clone(client));
        // The number is for the log; the kernel shows ten digits of it.
        let name = format!("http-{}", state.started % 10_000_000_000);
        let stack = self.shared.limits.stack;
        let thread = thread::expendable(&name, stack, move || pool.work(first))?;
        state.threads.push(thread);
        state.started += 1;
        state.running += 1;
        Ok(())
    }

    /// A worker's whole life.
    fn work(&self, first: Arc<Client>) {
        let mut buffers = Buffers::default();
        let mut next = Some(first);
        while let Some(client) = next {
            let serve = || Connection::new(&self.shared, &client, &mut buffers).serve();
            if let Err(panic) = catch_unwind(AssertUnwindSafe(serve)) {
                let text = panic_text(&*panic);
                log::error!(target: "http", "a connection is lost: its worker panicked: {text}");
            }
            self.shared.connections.leave(&client);
            // Here its socket is closed, if it has not become a stream's.
            drop(client);
            next = self.next();
        }
        drop(buffers);
        if self.is_idle() {
            // A burst leaves readers with their caches, and an allocator with free memory.
            self.shared.service.release_memory();
            memory::trim();
        }
    }

    /// Whether the last worker has ended because nobody asked.
    fn is_idle(&self) -> bool {
        let state = self.lock();
        state.running == 0 && !state.ended
    }

    /// Waits for the next connection; `None` after a minute without any, and at the end.
    fn next(&self) -> Option<Arc<Client>> {
        let deadline = Instant::now() + self.shared.limits.worker_idle;
        let mut state = self.lock();
        state.free += 1;
        self.shared.connections.tell();
        let next = loop {
            if let Some(client) = state.queue.pop_front() {
                break Some(client);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.ended || left.is_zero() {
                break None;
            }
            let waited = self.work.wait_timeout(state, left);
            state = unpoisoned(waited).0;
        };
        state.free -= 1;
        if next.is_none() {
            state.running -= 1;
        }
        next
    }

    /// Nothing more is handed out: the workers end as soon as they have nothing in hand.
    pub(super) fn dismiss(&self) {
        self.lock().ended = true;
        self.work.notify_all();
    }

    /// Waits for the dismissed workers; returns the names of those that are late.
    pub(super) fn end(&self, deadline: Instant) -> Vec<String> {
        let mut state = self.lock();
        // Connections that still wait in the queue are closed.
        state.queue.clear();
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        let late = threads.into_iter().filter_map(|thread| {
            let name = thread.name().to_owned();
            (!thread.join_by(deadline)).then_some(name)
        });
        late.collect()
    }

    /// Counters and lists are whole between any two statements that could panic.
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        lock(&self.state)
    }
}

/// How long the listener waits when descriptors are short.
const REST: Duration = Duration::from_millis(50);
/// Between two complaints about that in the log.
const COMPLAINT: Duration = Duration::from_secs(60);

pub(super) struct Listener {
    /// Shut down by the server where another socket takes its place.
    pub(super) socket: Arc<UnixListener>,
    pub(super) pool: Arc<Pool>,
    /// The end of the server: for a wait in `poll`, and for one on a channel, where it closes.
    pub(super) end: Arc<Waker>,
    pub(super) ended: Receiver<()>,
    /// When it was last said that descriptors are short.
    pub(super) complained: Option<Instant>,
}

impl Listener {
    /// The thread's whole life.
    pub(super) fn run(mut self) {
        while !self.is_ending() {
            let mut waited =
                [PollFd::new(&*self.socket, PollFlags::IN), PollFd::new(&*self.end, PollFlags::IN)];
            if let Err(error) = poll_until(&mut waited, None) {
                panic!("cannot wait for clients: {error}");
            }
            let come = waited[0].revents();
            if !come.is_empty() && !self.is_ending() {
                self.accept();
            }
            if come.contains(PollFlags::HUP) {
                return;
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.pool.shared.stopping.load(Ordering::SeqCst)
    }

    /// Takes in those that wait in the backlog.
    fn accept(&mut self) {
        while !self.is_ending() {
            match accept_with(&*self.socket, SocketFlags::CLOEXEC) {
                Ok(socket) => self.welcome(socket.into()),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    self.complain(error);
                    // A connection that keeps its worker waiting is shut down for its descriptor.
                    // This takes a moment, and another process may take the descriptor, so the
                    // listener waits in any case.
                    self.pool.shared.service.release_memory();
                    self.pool.shared.connections.shut_longest(|_| true);
                    let mut end = [PollFd::new(&*self.end, PollFlags::IN)];
                    poll_until(&mut end, Some(Instant::now() + REST)).ok();
                }
            }
        }
    }

    fn welcome(&self, socket: UnixStream) {
        if !is_ours(&socket) {
            return self.refuse(&socket, Error::new(403, "this socket is another user's"));
        }
        let connections = &self.pool.shared.connections;
        let mut client = connections.take(socket);
        loop {
            match self.pool.place(client) {
                Placed::Yes => break,
                Placed::NoWorker(client, error) => {
                    log::error!(target: "http", "cannot start a thread for a client: {error}");
                    self.refuse(client.socket(), Error::busy("there is no thread to be had"));
                    connections.leave(&client);
                    break;
                }
                Placed::NoRoom(back) => client = back,
            }
            if self.is_ending() {
                connections.leave(&client);
                break;
            }
            self.wait_for_room();
        }
        connections.newcomer_waits(false);
    }

    /// The first time round it only says that it waits: who was at work until then may not be now.
    fn wait_for_room(&self) {
        let connections = &self.pool.shared.connections;
        if !connections.newcomer_waits(true) {
            return;
        }
        select! {
            recv(connections.told) -> _ => {}
            recv(self.ended) -> _ => {}
        }
    }

    /// Says why, as far as the socket takes it, before it is closed.
    fn refuse(&self, mut socket: &UnixStream, error: Error) {
        let id = self.pool.shared.ids.take(None);
        let answer = error.into_response(id.as_str());
        let delimited = Delimited::By(answer.body.length());
        let frame = Frame { request_id: id.as_str(), keep_alive: false, delimited };
        let mut bytes = Vec::new();
        write_head(&mut bytes, answer.status, answer.content_type, &answer.headers, frame);
        if let Body::Bytes(body) = &answer.body {
            bytes.extend_from_slice(body);
        }
        // Into the empty buffer of a fresh socket: this never waits.
        socket.write_all(&bytes).ok();
        log::info!(target: "http", request_id = id.as_str(); "refused a client: {}", answer.status);
    }

    fn complain(&mut self, error: Errno) {
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAINT) {
            self.complained = Some(Instant::now());
            log::warn!(target: "http", "cannot accept clients: {error}; silent ones are closed");
        }
    }
}

/// The directory keeps other users out; should its permissions be loosened, this does.
fn is_ours(socket: &UnixStream) -> bool {
    match sockopt::socket_peercred(socket) {
        Ok(peer) => {
            log::debug!(target: "http", "connected: process {}, user {}", peer.pid, peer.uid.as_raw());
            peer.uid.is_root() || peer.uid == geteuid()
        }
        // The peer is gone already.
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use crossbeam_channel::{Sender, unbounded};

    use super::*;
    use crate::http::{Error, Limits, Request, Response, Service};
    use crate::sys::Waker;

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
    fn what_is_kept_goes_with_the_last_worker() {
        let (release, released) = unbounded();
        let limits = Limits { worker_idle: Duration::from_millis(10), ..Limits::default() };
        let end = Waker::new().unwrap();
        let pool = Pool::new(ServerState::new(Releasing(release), end, limits));
        let client = || {
            let (near, mut far) = UnixStream::pair().unwrap();
            assert!(matches!(pool.place(pool.shared.connections.take(near)), Placed::Yes));
            far.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            far.read_exact(&mut [0; 12]).unwrap();
            far
        };
        let clients = [client(), client(), client()];
        assert!(released.is_empty(), "each of them has a worker");
        drop(clients);
        released.recv_timeout(Duration::from_secs(60)).expect("they end");
        pool.dismiss();
        assert!(pool.end(Instant::now() + Duration::from_secs(60)).is_empty());
    }
}
