//! The workers (`http-N`): each serves one connection from its beginning to its end.
//!
//! One is started when none is free, and ends after a minute without work. How many are free is
//! counted by whoever hands out work, under the lock, so that no connection waits for a worker that
//! only seems free. With the last one goes the memory that the service keeps for the next request.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use super::connection::{Buffers, Connection, Shared};
use super::seats::Seat;
use crate::memory;
use crate::sys::{lock, unpoisoned};
use crate::thread::{self, Thread, panic_text};

pub(super) struct Pool {
    pub(super) shared: Shared,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// Connections that wait for a worker: a free one, or one whose connection was shut for them.
    queue: VecDeque<Arc<Seat>>,
    /// Workers that wait for a connection.
    free: usize,
    running: usize,
    started: u64,
    threads: Vec<Thread>,
    ended: bool,
}

/// What became of a connection that was to be given a worker.
pub(super) enum Placed {
    Yes,
    /// All workers are at work for their clients.
    NoRoom(Arc<Seat>),
    /// There is no worker and none can be started.
    NoWorker(Arc<Seat>, io::Error),
}

impl Pool {
    pub(super) fn new(shared: Shared) -> Arc<Self> {
        Arc::new(Self { shared, state: Mutex::default(), work: Condvar::new() })
    }

    /// Gives a connection a worker: a free one, a new one, or that of the connection that has kept
    /// its worker waiting longest.
    pub(super) fn place(self: &Arc<Self>, seat: Arc<Seat>) -> Placed {
        let mut state = self.lock();
        if state.free > state.queue.len() {
            state.queue.push_back(seat);
            self.work.notify_one();
            return Placed::Yes;
        }
        if state.running < self.shared.limits.workers {
            match self.start(&mut state, &seat) {
                Ok(()) => return Placed::Yes,
                Err(error) if state.running == 0 => return Placed::NoWorker(seat, error),
                // Those that there are must do.
                Err(_) => {}
            }
        }
        if self.shared.seats.shut_longest(|_| true) {
            state.queue.push_back(seat);
            return Placed::Yes;
        }
        Placed::NoRoom(seat)
    }

    fn start(self: &Arc<Self>, state: &mut State, seat: &Arc<Seat>) -> io::Result<()> {
        state.threads.retain(|thread| !thread.has_ended());
        let (pool, first) = (Arc::clone(self), Arc::clone(seat));
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
    fn work(&self, first: Arc<Seat>) {
        let mut buffers = Buffers::default();
        let mut next = Some(first);
        while let Some(seat) = next {
            let serve = || Connection::new(&self.shared, &seat, &mut buffers).serve();
            if let Err(panic) = catch_unwind(AssertUnwindSafe(serve)) {
                let text = panic_text(&*panic);
                log::error!(target: "http", "a connection is lost: its worker panicked: {text}");
            }
            self.shared.seats.leave(&seat);
            // Here its socket is closed, if it has not become a stream's.
            drop(seat);
            next = self.next();
        }
        drop(buffers);
        if self.is_at_rest() {
            // A burst leaves readers with their caches, and an allocator with free memory.
            self.shared.service.spare();
            memory::trim();
        }
    }

    /// Whether the last worker has ended because nobody asked.
    fn is_at_rest(&self) -> bool {
        let state = self.lock();
        state.running == 0 && !state.ended
    }

    /// Waits for the next connection; `None` after a minute without any, and at the end.
    fn next(&self) -> Option<Arc<Seat>> {
        let deadline = Instant::now() + self.shared.limits.worker_idle;
        let mut state = self.lock();
        state.free += 1;
        self.shared.seats.tell();
        let next = loop {
            if let Some(seat) = state.queue.pop_front() {
                break Some(seat);
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
        // Whoever still waits in the queue is hung up on.
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
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
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

    struct Sparing(Sender<()>);

    impl Service for Sparing {
        fn handle(&self, _request: Request<'_>) -> Result<Response, Error> {
            Ok(Response::empty(204))
        }

        fn spare(&self) {
            self.0.send(()).unwrap();
        }
    }

    #[test]
    fn what_is_kept_goes_with_the_last_worker() {
        let (spare, spared) = unbounded();
        let limits = Limits { worker_idle: Duration::from_millis(10), ..Limits::default() };
        let end = Waker::new().unwrap();
        let pool = Pool::new(Shared::new(Sparing(spare), end, limits));
        let client = || {
            let (near, mut far) = UnixStream::pair().unwrap();
            assert!(matches!(pool.place(pool.shared.seats.take(near)), Placed::Yes));
            far.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            far.read_exact(&mut [0; 12]).unwrap();
            far
        };
        let clients = [client(), client(), client()];
        assert!(spared.is_empty(), "each of them has a worker");
        drop(clients);
        spared.recv_timeout(Duration::from_secs(60)).expect("they end");
        pool.dismiss();
        assert!(pool.end(Instant::now() + Duration::from_secs(60)).is_empty());
    }
}
