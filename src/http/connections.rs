//! The connected clients and their threads: one for each connection (`http-N`) and one for each
//! event stream (`sse-N`). The number of both is limited.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use super::error::Error;
use crate::sys::{lock, peer, process_group, unpoisoned};
use crate::thread::{self, Thread};

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) socket: UnixStream,
    /// The client's process group when it was accepted; the client may exit before its first
    /// request is read.
    pub(super) group: Option<i32>,
}

/// The connections that are served now, without those that have become event streams.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<Vec<Arc<Client>>>,
    emptied: Condvar,
}

impl Connections {
    pub(super) fn add(&self, socket: UnixStream) -> Arc<Client> {
        let group = peer(&socket).ok().and_then(|peer| process_group(peer.pid));
        let client = Arc::new(Client { socket, group });
        self.lock().push(Arc::clone(&client));
        client
    }

    /// Removes a connection that has ended, or that has become an event stream.
    pub(super) fn remove(&self, client: &Arc<Client>) {
        let mut open = self.lock();
        open.retain(|one| !Arc::ptr_eq(one, client));
        if open.is_empty() {
            self.emptied.notify_all();
        }
    }

    pub(super) fn number(&self) -> usize {
        self.lock().len()
    }

    /// Ends all reads, or all reads and writes. Bytes that have arrived can still be read.
    pub(super) fn shut(&self, how: Shutdown) {
        for client in self.lock().iter() {
            // Fails only if the client has closed the connection.
            client.socket.shutdown(how).ok();
        }
    }

    /// Waits until all connections are removed; `false` if some are left at the deadline.
    pub(super) fn wait_empty(&self, deadline: Instant) -> bool {
        let mut open = self.lock();
        while !open.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            open = unpoisoned(self.emptied.wait_timeout(open, left)).0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        lock(&self.open)
    }
}

/// The threads of one kind.
#[derive(Debug)]
pub(super) struct ClientThreads {
    /// The start of their names.
    name: &'static str,
    /// The word for them in an error.
    what: &'static str,
    most: usize,
    /// Bytes of each one's stack.
    stack: usize,
    started: Mutex<Started>,
}

#[derive(Debug, Default)]
struct Started {
    number: u64,
    running: Vec<Thread>,
    ended: bool,
}

impl ClientThreads {
    pub(super) fn new(name: &'static str, what: &'static str, most: usize, stack: usize) -> Self {
        Self {
            name,
            what,
            most,
            stack,
            started: Mutex::default(),
        }
    }

    /// Starts a thread; fails (503) if there are too many, or if none can be started.
    pub(super) fn start(&self, body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let mut started = lock(&self.started);
        if started.ended {
            return Err(Error::busy("the daemon is shutting down"));
        }
        started.running.retain(|thread| !thread.has_ended());
        if started.running.len() >= self.most {
            return Err(Error::busy(format!(
                "too many {}: {}",
                self.what, self.most
            )));
        }
        // The number is for the log; the kernel shows ten digits of it.
        let name = format!("{}-{}", self.name, started.number % 10_000_000_000);
        let failed = |error: io::Error| Error::busy("no thread is available").cause(error);
        let thread = thread::expendable(&name, self.stack, body).map_err(failed)?;
        started.running.push(thread);
        started.number += 1;
        Ok(())
    }

    /// Starts no further threads, and waits for the running ones; returns the names of the late ones.
    pub(super) fn end(&self, deadline: Instant) -> Vec<String> {
        let running = {
            let mut started = lock(&self.started);
            started.ended = true;
            std::mem::take(&mut started.running)
        };
        thread::join_all(running, deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn reads_of_all_connections_are_ended() {
        let connections = Connections::default();
        let mut pairs: Vec<_> = (0..2)
            .map(|_| {
                let (near, far) = UnixStream::pair().unwrap();
                (connections.add(near), far)
            })
            .collect();
        pairs[0].1.write_all(b"G").unwrap();
        connections.shut(Shutdown::Read);
        let mut piece = [0; 2];
        let mut read = |at: usize| (&pairs[at].0.socket).read(&mut piece).unwrap();
        assert_eq!([read(0), read(0), read(1)], [1, 0, 0]);
        assert!(!connections.wait_empty(Instant::now()));
        pairs
            .iter()
            .for_each(|(client, _)| connections.remove(client));
        assert!(connections.wait_empty(Instant::now()));
    }
}
