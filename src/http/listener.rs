//! The listening socket: takes clients in, runs in whichever worker its event reaches.
//!
//! It survives a shortage of descriptors, and never lets a silent crowd lock a client out: at the
//! cap the connection that has been silent longest makes room.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};
use rustix::process::geteuid;

use super::error::Error;
use super::response::{Body, Delimited, Frame, write_head};
use super::workers::{LISTENER_KEY, Pool};

/// Clients taken in before others have their turn.
const AT_ONCE: u32 = 64;
/// How long the listener rests when descriptors are short.
const REST: Duration = Duration::from_millis(50);
/// Between two complaints about that in the log.
const COMPLAINT: Duration = Duration::from_secs(60);

impl Pool {
    /// Takes in those that wait.
    pub(super) fn accept(&self) {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(listener) = listener.as_ref() else { return };
        let mut made_room = false;
        for _ in 0..AT_ONCE {
            match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    made_room = false;
                    self.welcome(socket.into());
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    self.complain(error);
                    // A descriptor that another process takes at once helps nobody.
                    if !made_room && self.evict() {
                        made_room = true;
                        continue;
                    }
                    // The listener is armed again when it has rested.
                    self.timers.set(LISTENER_KEY, None, Some(Instant::now() + REST));
                    return;
                }
            }
        }
        self.rearm_listener(listener);
    }

    fn welcome(&self, socket: UnixStream) {
        if !is_ours(&socket) {
            return self.refuse(&socket, Error::new(403, "this socket is another user's"));
        }
        let budget = &self.shared.budget;
        // Another newcomer may take the place that was made for this one.
        let claim = budget.claim().or_else(|| {
            std::iter::from_fn(|| self.evict().then(|| budget.claim())).take(4).flatten().next()
        });
        match claim {
            Some(claim) => self.admit(socket, claim),
            None => self.refuse(&socket, Error::busy("too many connections")),
        }
    }

    /// Says why, as far as the socket takes it, before it is closed.
    fn refuse(&self, mut socket: &UnixStream, failure: Error) {
        let id = self.shared.ids.take(None);
        let full = failure.into_full(id.as_str());
        let delimited = Delimited::By(full.body.length());
        let frame = Frame { request_id: id.as_str(), keep_alive: false, delimited };
        let mut bytes = Vec::new();
        write_head(&mut bytes, full.status, full.content_type, &full.headers, frame);
        if let Body::Bytes(body) = &full.body {
            bytes.extend_from_slice(body);
        }
        socket.write_all(&bytes).ok();
        log::info!(target: "http", request_id = id.as_str(); "refused a client: {}", full.status);
    }

    fn complain(&self, error: Errno) {
        let mut last = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= COMPLAINT) {
            *last = Some(Instant::now());
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
