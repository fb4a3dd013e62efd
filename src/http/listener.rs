//! The thread `listen`: takes clients in and gives each a worker.
//!
//! It survives a shortage of descriptors and of threads, and never lets a silent or slow crowd lock
//! a client out: the connection that has kept its worker waiting longest makes room. Where all
//! workers are at work, the newcomer waits here, and those behind it in the backlog.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, select};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};
use rustix::process::geteuid;

use super::error::Error;
use super::pool::{Placed, Pool};
use super::response::{Body, Delimited, Frame, write_head};
use crate::sys::{Waker, poll_until};

/// How long the listener rests when descriptors are short.
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
                    // One that keeps its worker waiting has a descriptor to give. It takes a moment,
                    // and another process may take what was given: so it rests in any case.
                    self.pool.shared.service.spare();
                    self.pool.shared.seats.shut_longest(|_| true);
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
        let seats = &self.pool.shared.seats;
        let mut seat = seats.take(socket);
        loop {
            match self.pool.place(seat) {
                Placed::Yes => break,
                Placed::NoWorker(seat, error) => {
                    log::error!(target: "http", "cannot start a thread for a client: {error}");
                    self.refuse(seat.socket(), Error::busy("there is no thread to be had"));
                    seats.leave(&seat);
                    break;
                }
                Placed::NoRoom(back) => seat = back,
            }
            if self.is_ending() {
                seats.leave(&seat);
                break;
            }
            self.wait_for_room();
        }
        seats.newcomer_waits(false);
    }

    /// The first time round it only says that it waits: who was at work until then may not be now.
    fn wait_for_room(&self) {
        let seats = &self.pool.shared.seats;
        if !seats.newcomer_waits(true) {
            return;
        }
        select! {
            recv(seats.told) -> _ => {}
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
