//! Where connections stand while they wait, and which of them has been silent longest.
//!
//! A slot is locked only to put a connection in or take it out, never while it has its turn.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use super::connection::Connection;

/// Slots whose memory is taken together.
const CHUNK: usize = 256;
/// Silent connections found in one look through all slots.
const CANDIDATES: usize = 64;

type Chunk = Box<[Mutex<Slot>]>;

pub(super) struct Slots {
    chunks: Vec<OnceLock<Chunk>>,
    free: Mutex<Free>,
    silent: Mutex<VecDeque<Silent>>,
}

#[derive(Default)]
pub(super) struct Slot {
    /// Which of the connections that stood here this is: events of others are stale.
    generation: u32,
    /// The entry in the timers, also while the connection has its turn.
    pub(super) timer: Option<Instant>,
    /// Absent during its turn.
    pub(super) connection: Option<Box<Connection>>,
}

#[derive(Default)]
struct Free {
    indexes: Vec<u32>,
    /// Slots from here on were never used.
    fresh: u32,
}

#[derive(Clone, Copy)]
struct Silent {
    since: Instant,
    token: Token,
}

/// A connection in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) index: u32,
    generation: u32,
}

impl Token {
    pub(super) fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(super) fn of(number: u64) -> Self {
        Self { index: number as u32, generation: (number >> 32) as u32 }
    }
}

impl Slots {
    pub(super) fn new(number: usize) -> Self {
        let chunks = (0..number.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect();
        Self { chunks, free: Mutex::default(), silent: Mutex::default() }
    }

    /// An empty slot for a new connection; `None` where all are taken.
    pub(super) fn allot(&self) -> Option<Token> {
        let mut free = lock(&self.free);
        let index = free.indexes.pop().or_else(|| {
            let fresh = (free.fresh as usize) < self.chunks.len() * CHUNK;
            fresh.then(|| {
                free.fresh += 1;
                free.fresh - 1
            })
        })?;
        drop(free);
        let mut slot = lock(self.slot(index));
        slot.generation = slot.generation.wrapping_add(1);
        Some(Token { index, generation: slot.generation })
    }

    /// The slot, if it is still this connection's.
    pub(super) fn lock(&self, token: Token) -> Option<MutexGuard<'_, Slot>> {
        let slot = lock(self.slot(token.index));
        (slot.generation == token.generation).then_some(slot)
    }

    /// The slot of this number and the token of whoever stands there.
    pub(super) fn lock_any(&self, index: u32) -> (MutexGuard<'_, Slot>, Token) {
        let slot = lock(self.slot(index));
        let token = Token { index, generation: slot.generation };
        (slot, token)
    }

    pub(super) fn release(&self, token: Token) {
        lock(&self.free).indexes.push(token.index);
    }

    /// Whether no slot is taken.
    pub(super) fn is_empty(&self) -> bool {
        let free = lock(&self.free);
        free.indexes.len() == free.fresh as usize
    }

    /// All slots that were ever used.
    pub(super) fn indexes(&self) -> std::ops::Range<u32> {
        0..lock(&self.free).fresh
    }

    /// Takes the connection out that has been silent longest.
    pub(super) fn take_most_silent(&self) -> Option<(Token, Box<Connection>)> {
        let mut silent = lock(&self.silent);
        for looked in [false, true] {
            // Those found by the last look that have kept silent since are still more silent than
            // all that were not found.
            while let Some(candidate) = silent.pop_front() {
                let Some(mut slot) = self.lock(candidate.token) else { continue };
                if slot.connection.as_ref().and_then(|c| c.silent_since()) == Some(candidate.since)
                {
                    return slot.connection.take().map(|connection| (candidate.token, connection));
                }
            }
            if !looked {
                *silent = self.look();
            }
        }
        None
    }

    fn look(&self) -> VecDeque<Silent> {
        let mut found: Vec<Silent> = self
            .indexes()
            .filter_map(|index| {
                let (slot, token) = self.lock_any(index);
                let since = slot.connection.as_ref()?.silent_since()?;
                Some(Silent { since, token })
            })
            .collect();
        found.sort_unstable_by_key(|silent| silent.since);
        found.truncate(CANDIDATES);
        found.into()
    }

    fn slot(&self, index: u32) -> &Mutex<Slot> {
        let index = index as usize;
        let chunk = self.chunks[index / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| Mutex::default()).collect());
        &chunk[index % CHUNK]
    }
}

/// Slots and lists are whole between any two statements that could panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::limits::Semaphore;
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_most_silent_is_found_again_and_again() {
        let (slots, budget) = (Slots::new(300), Semaphore::new(300));
        let tokens: Vec<Token> = (0..300)
            .map(|_| {
                let token = slots.allot().unwrap();
                let (socket, _) = UnixStream::pair().unwrap();
                let connection = Box::new(Connection::new(socket, budget.claim().unwrap()));
                slots.lock(token).unwrap().connection = Some(connection);
                token
            })
            .collect();
        // The second has its turn: it is not silent.
        let busy = slots.lock(tokens[1]).unwrap().connection.take();
        for &expected in tokens.iter().filter(|&&token| token != tokens[1]) {
            let (token, connection) = slots.take_most_silent().unwrap();
            assert_eq!(token, expected);
            drop(connection);
        }
        drop(busy);
        assert!(slots.take_most_silent().is_none());
    }

    #[test]
    fn a_slot_s_next_connection_is_another() {
        let slots = Slots::new(1);
        let one = slots.allot().unwrap();
        slots.release(one);
        let two = slots.allot().unwrap();
        assert_eq!((one.index, Token::of(two.number())), (two.index, two));
        assert!(slots.lock(one).is_none() && slots.lock(two).is_some());
    }
}
