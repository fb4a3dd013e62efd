//! The connections that have a worker, and the reason why each worker waits.
//!
//! If all workers are taken, the connection that has kept its worker waiting longest for its client
//! is shut down from outside, which frees the worker. A connection whose worker is working is never
//! touched: its state says so, and a worker that goes back to work finds out whether its connection
//! was shut down.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use crate::sys::{lock, unpoisoned};
use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::net::sockopt::socket_peercred;
use rustix::process::getpgid;

/// States of a connection; all others say since when, and for what, its worker waits.
const WORKING: u64 = 0;
const SHUT: u64 = 1;
/// The last bit of a waiting state: the client does not send, or does not read.
const WRITING: u64 = 1;

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    socket: UnixStream,
    /// The client's process group when it was accepted; it may have ended by its first request.
    pub(super) group: Option<i32>,
    state: AtomicU64,
    /// A large body is on its way.
    pub(super) large: AtomicBool,
    /// All times are counted from here.
    began: Instant,
}

#[derive(Debug)]
pub(super) struct Connections {
    taken: Mutex<Vec<Arc<Client>>>,
    emptied: Condvar,
    began: Instant,
    /// A new client waits for a worker. A worker that begins to wait for its client wakes the
    /// listener.
    newcomer: AtomicBool,
    tell: Sender<()>,
    pub(super) told: Receiver<()>,
}

impl Client {
    pub(super) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// The worker waits for its client to send, since then.
    pub(super) fn reads(&self, since: Instant) {
        self.waits(since, 0);
    }

    /// The worker waits for its client to read, since then; `false` where the connection was shut.
    pub(super) fn writes(&self, since: Instant) -> bool {
        self.waits(since, WRITING)
    }

    fn waits(&self, since: Instant, what: u64) -> bool {
        let micros = since.saturating_duration_since(self.began).as_micros();
        let micros = u64::try_from(micros).unwrap_or(u64::MAX >> 2) + 1;
        self.change(micros << 1 | what)
    }

    /// The worker goes back to work; `false` if the connection was shut down.
    pub(super) fn works(&self) -> bool {
        self.change(WORKING)
    }

    /// A connection that is shut down stays so.
    fn change(&self, new: u64) -> bool {
        let change = |state| (state != SHUT).then_some(new);
        self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).is_ok()
    }

    fn waiting(&self) -> Option<u64> {
        Some(self.state.load(Ordering::SeqCst)).filter(|state| *state > SHUT)
    }

    /// Whether its worker is about to find that it waits no more.
    fn has_sent(&self) -> bool {
        rustix::io::ioctl_fionread(&self.socket).is_ok_and(|bytes| bytes > 0)
    }

    /// Shuts it if it is still in this state.
    fn shut(&self, state: u64) -> bool {
        let ours = self.state.compare_exchange(state, SHUT, Ordering::SeqCst, Ordering::SeqCst);
        if ours.is_ok() {
            let how = if state & WRITING == WRITING { Shutdown::Both } else { Shutdown::Read };
            // It fails only where the client has gone by itself.
            self.socket.shutdown(how).ok();
        }
        ours.is_ok()
    }
}

fn group(socket: &UnixStream) -> Option<i32> {
    let peer = socket_peercred(socket).ok()?;
    Some(getpgid(Some(peer.pid)).ok()?.as_raw_nonzero().get())
}

impl Connections {
    pub(super) fn new() -> Self {
        let (tell, told) = bounded(1);
        Self {
            taken: Mutex::default(),
            emptied: Condvar::new(),
            began: Instant::now(),
            newcomer: AtomicBool::new(false),
            tell,
            told,
        }
    }

    pub(super) fn take(&self, socket: UnixStream) -> Arc<Client> {
        let (state, large) = (AtomicU64::new(WORKING), AtomicBool::new(false));
        let group = group(&socket);
        let client = Arc::new(Client { socket, group, state, large, began: self.began });
        self.lock().push(Arc::clone(&client));
        client
    }

    pub(super) fn number(&self) -> usize {
        self.lock().len()
    }

    /// Removes a connection that has ended, or that has become an event stream.
    pub(super) fn leave(&self, client: &Arc<Client>) {
        let mut taken = self.lock();
        taken.retain(|one| !Arc::ptr_eq(one, client));
        if taken.is_empty() {
            self.emptied.notify_all();
        }
    }

    /// Tells the newcomer, if one waits, that a worker waits for its client, or is free.
    pub(super) fn tell(&self) {
        if self.newcomer.load(Ordering::SeqCst) {
            // Full: it was told.
            self.tell.try_send(()).ok();
        }
    }

    /// Returns whether one waited before.
    pub(super) fn newcomer_waits(&self, waits: bool) -> bool {
        self.newcomer.swap(waits, Ordering::SeqCst)
    }

    /// Shuts the connection down that keeps its worker waiting longest; `false` where none does.
    pub(super) fn shut_longest(&self, among: impl Fn(&Client) -> bool) -> bool {
        let taken = self.lock();
        let among = taken.iter().filter(|client| among(client));
        let mut waiting: Vec<_> =
            among.filter_map(|client| Some((client.waiting()?, client))).collect();
        waiting.sort_unstable_by_key(|(state, _)| *state);
        // Its client may have come back this very moment.
        let comes_back = |state, client: &Client| state & WRITING != WRITING && client.has_sent();
        waiting.into_iter().any(|(state, client)| !comes_back(state, client) && client.shut(state))
    }

    /// Shuts down the connections that wait for a request, or for its remaining bytes.
    pub(super) fn shut_readers(&self) {
        for client in self.lock().iter() {
            if let Some(state) = client.waiting().filter(|state| state & WRITING != WRITING) {
                client.shut(state);
            }
        }
    }

    /// Shuts all down, whatever they are at.
    pub(super) fn shut_all(&self) {
        for client in self.lock().iter() {
            client.state.store(SHUT, Ordering::SeqCst);
            client.socket.shutdown(Shutdown::Both).ok();
        }
    }

    /// Waits until all have left; `false` where some are left at the deadline.
    pub(super) fn wait_empty(&self, deadline: Instant) -> bool {
        let mut taken = self.lock();
        while !taken.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.emptied.wait_timeout(taken, left);
            taken = unpoisoned(waited).0;
        }
        true
    }

    /// The list is whole between any two statements that could panic.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        lock(&self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::time::Duration;

    #[test]
    fn who_waits_longest_is_shut_first_and_who_works_never() {
        let connections = Connections::new();
        let mut clients = Vec::new();
        let taken: Vec<_> = (0..4)
            .map(|_| {
                let (near, far) = UnixStream::pair().unwrap();
                clients.push(far);
                connections.take(near)
            })
            .collect();
        let later = |millis| connections.began + Duration::from_millis(millis);
        taken[1].reads(later(30));
        taken[2].reads(later(10));
        taken[3].writes(later(20));
        clients[2].write_all(b"G").unwrap();
        let mut piece = [0];
        for expected in [3, 1, 2] {
            if expected == 2 {
                // A client that has sent something is not shut down.
                assert!(!connections.shut_longest(|_| true));
                taken[2].socket().read_exact(&mut piece).unwrap();
            }
            assert!(connections.shut_longest(|_| true));
            assert_eq!(taken[expected].state.load(Ordering::SeqCst), SHUT);
            assert_eq!(taken[expected].socket().read(&mut piece).unwrap(), 0);
            connections.leave(&taken[expected]);
        }
        assert!(!connections.shut_longest(|_| true) && taken[0].works());
        taken[0].reads(later(1));
        assert!(!connections.shut_longest(|client| client.large.load(Ordering::Relaxed)));
        connections.shut_readers();
        assert!(!taken[0].works());
        connections.leave(&taken[0]);
        assert!(connections.wait_empty(Instant::now()));
    }
}
