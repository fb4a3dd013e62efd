//! The workers: `http-0` to `http-3` wait on one shared epoll and give connections their turns.
//!
//! Every event is one-shot: whoever takes it is the only one at work on that connection until it
//! is armed again. A worker never waits for a client; it wakes up for an event, for the earliest
//! deadline, for a promised answer, and for the end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crossbeam_channel::Sender;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::bell::Bell;
use super::connection::{Connection, Next, Shared};
use super::error::Error;
use super::limits::Permit;
use super::slots::{Slots, Token};
use super::timers::Timers;

/// Numbers that are no connection's: no slot has an index this high.
const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const PROMISES: u64 = u64::MAX - 2;
const END: u64 = u64::MAX - 3;
/// The listener's key among the timers, while it rests.
pub(super) const LISTENER_KEY: u32 = u32::MAX;

pub(super) struct Pool {
    pub(super) shared: Shared,
    pub(super) listener: Mutex<Option<UnixListener>>,
    pub(super) timers: Timers,
    pub(super) slots: Slots,
    /// When it was last said that descriptors are short.
    pub(super) complained: Mutex<Option<Instant>>,
    epoll: OwnedFd,
    end: Bell,
    /// Told when the last connection goes after the end has begun.
    emptied: Sender<()>,
}

/// What a client gets whose answer is not there when the server must end.
fn ending() -> Error {
    Error::busy("the daemon is ending")
}

/// A worker's buffers, lent to the connection that has its turn.
type Spare = [Vec<u8>; 2];

impl Pool {
    pub(super) fn new(
        shared: Shared,
        listener: UnixListener,
        emptied: Sender<()>,
    ) -> io::Result<Arc<Self>> {
        let pool = Self {
            slots: Slots::new(shared.limits.connections),
            shared,
            timers: Timers::new()?,
            complained: Mutex::default(),
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            end: Bell::new()?,
            emptied,
            listener: Mutex::new(None),
        };
        listener.set_nonblocking(true)?;
        let once = EventFlags::IN | EventFlags::ONESHOT;
        pool.add(&listener, LISTENER, once)?;
        pool.add(&pool.timers, TIMER, once)?;
        pool.add(&pool.shared.promises.bell, PROMISES, once)?;
        // Not one-shot: every worker sees the end.
        pool.add(&pool.end, END, EventFlags::IN)?;
        *pool.listener.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(listener);
        Ok(Arc::new(pool))
    }

    /// A worker's whole life.
    pub(super) fn work(&self) {
        let mut spare = Spare::default();
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }];
        loop {
            match epoll::wait(&self.epoll, &mut events[..], None) {
                Ok(1) => {}
                Ok(_) | Err(rustix::io::Errno::INTR) => continue,
                Err(error) => panic!("cannot wait for clients: {error}"),
            }
            let [Event { flags, data }] = events;
            match data.u64() {
                LISTENER => self.accept(),
                TIMER => {
                    let due = self.timers.take_due();
                    self.rearm(&self.timers, TIMER);
                    due.into_iter().for_each(|entry| self.expire(entry, &mut spare));
                }
                PROMISES => {
                    let ready = self.shared.promises.take_ready();
                    self.rearm(&self.shared.promises.bell, PROMISES);
                    ready.into_iter().for_each(|token| self.keep_promise(token, &mut spare));
                }
                END => return,
                token => self.turn(Token::of(token), flags, &mut spare),
            }
        }
    }

    /// Takes a new client in.
    pub(super) fn admit(&self, socket: UnixStream, claim: Permit) {
        // Semaphore and slots have the same number: a claim has a slot, or another is just leaving it.
        let Some(token) = self.slots.allot() else { return };
        let connection = Box::new(Connection::new(socket, claim));
        let added = self.add(connection.socket(), token.number(), EventFlags::ONESHOT);
        match added {
            Ok(()) => self.park(token, connection, Next::Read, &mut Spare::default()),
            Err(error) => {
                log::warn!(target: "http", "cannot watch a connection: {error}");
                self.slots.release(token);
            }
        }
    }

    /// Closes the connection that has been silent longest; `false` where none is silent.
    pub(super) fn evict(&self) -> bool {
        let Some((token, connection)) = self.slots.take_most_silent() else { return false };
        self.close(token, connection);
        true
    }

    pub(super) fn rearm_listener(&self, listener: &UnixListener) {
        self.rearm(listener, LISTENER);
    }

    /// No new clients, and no further request from those that are there.
    pub(super) fn begin_end(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        let listener = self.listener.lock();
        drop(listener.unwrap_or_else(std::sync::PoisonError::into_inner).take());
        for index in self.slots.indexes() {
            let (mut slot, token) = self.slots.lock_any(index);
            // One that has its turn now sees `stopping` when it is put back.
            if slot.connection.as_ref().is_some_and(|connection| connection.is_settled())
                && let Some(connection) = slot.connection.take()
            {
                drop(slot);
                self.close(token, connection);
            }
        }
        self.tell_if_empty();
    }

    /// Refuses what is still owed: its clients are told before their connections go.
    pub(super) fn refuse_owed(&self) {
        self.shared.refusing.store(true, Ordering::SeqCst);
        for index in self.slots.indexes() {
            let (mut slot, token) = self.slots.lock_any(index);
            // One that has its turn now sees `refusing` when it is put back.
            if slot.connection.as_ref().is_some_and(|connection| connection.promise().is_some())
                && let Some(mut connection) = slot.connection.take()
            {
                drop(slot);
                let mut spare = Spare::default();
                connection.unpark(&mut spare);
                let next = connection.keep_promise(&self.shared, Err(ending()));
                self.park(token, connection, next, &mut spare);
            }
        }
    }

    /// Ends the workers.
    pub(super) fn finish_end(&self) {
        self.end.ring();
    }

    fn turn(&self, token: Token, flags: EventFlags, spare: &mut Spare) {
        let Some(mut slot) = self.slots.lock(token) else { return };
        let Some(mut connection) = slot.connection.take() else { return };
        drop(slot);
        let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        let next = if gone && connection.promise().is_some() {
            Next::Close
        } else {
            connection.unpark(spare);
            connection.turn(&self.shared)
        };
        self.park(token, connection, next, spare);
    }

    fn expire(&self, (time, index): (Instant, u32), spare: &mut Spare) {
        if index == LISTENER_KEY {
            return self.accept();
        }
        let (mut slot, token) = self.slots.lock_any(index);
        if slot.timer != Some(time) {
            // The slot has another connection, or the entry was replaced.
            return;
        }
        slot.timer = None;
        let deadline = slot.connection.as_ref().map(|c| c.deadline(&self.shared.limits));
        match deadline {
            // It has its turn: the entry is set again when it is put back.
            None => {}
            Some(deadline) if deadline > Instant::now() => {
                slot.timer = Some(deadline);
                self.timers.set(index, None, Some(deadline));
            }
            Some(_) => {
                let Some(mut connection) = slot.connection.take() else { return };
                drop(slot);
                connection.unpark(spare);
                let next = connection.expire(&self.shared);
                self.park(token, connection, next, spare);
            }
        }
    }

    fn keep_promise(&self, token: u64, spare: &mut Spare) {
        let token = Token::of(token);
        let Some(mut slot) = self.slots.lock(token) else { return };
        let outcome = slot.connection.as_ref().and_then(|c| c.promise()?.await_at(token.number()));
        let Some(outcome) = outcome else { return };
        let Some(mut connection) = slot.connection.take() else { return };
        drop(slot);
        connection.unpark(spare);
        let next = connection.keep_promise(&self.shared, outcome);
        self.park(token, connection, next, spare);
    }

    /// Puts a connection back to wait for what comes next.
    fn park(&self, token: Token, mut connection: Box<Connection>, next: Next, spare: &mut Spare) {
        let mut next = next;
        loop {
            let flags = match next {
                Next::Close => return self.close(token, connection),
                Next::Stream(opening) => {
                    self.forget(token, &connection);
                    let parts = connection.into_parts();
                    if let Err(error) = self.shared.streams.start(*opening, parts) {
                        log::error!(target: "http", "cannot start an event stream: {error}");
                    }
                    return self.tell_if_empty();
                }
                Next::Read => EventFlags::IN,
                Next::Write => EventFlags::OUT,
                // Writable at once, and then behind those that are ready now.
                Next::Turn => EventFlags::IN | EventFlags::OUT,
                // The end of the connection is reported without being asked for.
                Next::Answer => EventFlags::empty(),
            };
            connection.park(spare);
            let Some(mut slot) = self.slots.lock(token) else { return };
            if self.shared.stopping.load(Ordering::SeqCst) && connection.is_settled() {
                drop(slot);
                return self.close(token, connection);
            }
            // In this order: whoever finds the promise kept must find the connection here.
            let outcome = connection.promise().and_then(|promise| {
                let refusing = self.shared.refusing.load(Ordering::SeqCst);
                promise.await_at(token.number()).or_else(|| refusing.then(|| Err(ending())))
            });
            if let Some(outcome) = outcome {
                drop(slot);
                next = connection.keep_promise(&self.shared, outcome);
                continue;
            }
            let deadline = connection.deadline(&self.shared.limits);
            if slot.timer.is_none_or(|timer| timer > deadline) {
                self.timers.set(token.index, slot.timer, Some(deadline));
                slot.timer = Some(deadline);
            }
            self.arm(connection.socket(), token.number(), flags);
            slot.connection = Some(connection);
            return;
        }
    }

    fn close(&self, token: Token, connection: Box<Connection>) {
        self.forget(token, &connection);
        drop(connection);
        self.tell_if_empty();
    }

    /// Takes a connection off the epoll, the timers and its slot.
    fn forget(&self, token: Token, connection: &Connection) {
        epoll::delete(&self.epoll, connection.socket()).ok();
        if let Some(mut slot) = self.slots.lock(token)
            && let Some(timer) = slot.timer.take()
        {
            self.timers.set(token.index, Some(timer), None);
        }
        self.slots.release(token);
    }

    fn tell_if_empty(&self) {
        if self.shared.stopping.load(Ordering::SeqCst) && self.slots.is_empty() {
            // Full: it was told already.
            self.emptied.try_send(()).ok();
        }
    }

    fn add(&self, source: &impl AsFd, number: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(number), flags)?)
    }

    fn rearm(&self, source: &impl AsFd, number: u64) {
        self.arm(source, number, EventFlags::IN);
    }

    fn arm(&self, source: &impl AsFd, number: u64, flags: EventFlags) {
        let data = EventData::new_u64(number);
        epoll::modify(&self.epoll, source, data, flags | EventFlags::ONESHOT)
            .expect("what was added to the epoll can be changed there");
    }
}
