//! Wakers, timers and cancellation as descriptors, `poll` with a deadline, gates, and locks that
//! ignore poisoning.
//!
//! Runs on the calling thread. Waits continue after signals.
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{
    Arc, LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// Wakes a thread that waits in `poll` (an eventfd).
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Makes the descriptor readable until it is reset. Never blocks.
    pub(crate) fn wake(&self) {
        // Writing fails only if the counter is at its maximum; then the descriptor is readable
        // already.
        rustix::io::write(&self.0, &1u64.to_ne_bytes()).ok();
    }

    pub(crate) fn reset(&self) {
        // Reading fails only if there was no wake-up.
        rustix::io::read(&self.0, &mut [0u8; 8]).ok();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A timer as a descriptor (timerfd), which is readable once the time has come.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new(clock: TimerfdClockId) -> io::Result<Self> {
        Ok(Self(timerfd_create(
            clock,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?))
    }

    /// Sets the timer for a single expiry; `nanos` 0 disarms it. Returns whether the clock was set
    /// since the last read: the kernel reports this once, and arms the timer nevertheless.
    pub fn set(&self, flags: TimerfdTimerFlags, nanos: i64) -> io::Result<bool> {
        let it_value = Timespec {
            tv_sec: nanos / 1_000_000_000,
            tv_nsec: nanos % 1_000_000_000,
        };
        let it_interval = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match timerfd_settime(
            &self.0,
            flags,
            &Itimerspec {
                it_interval,
                it_value,
            },
        ) {
            Ok(_) => Ok(false),
            Err(Errno::CANCELED) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the time has come or the clock was set. Makes the descriptor unreadable again.
    pub fn expired(&self) -> bool {
        matches!(
            rustix::io::read(&self.0, &mut [0_u8; 8]),
            Ok(_) | Err(Errno::CANCELED)
        )
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Timer> for OwnedFd {
    fn from(timer: Timer) -> Self {
        timer.0
    }
}

/// A request to stop, as a descriptor. It can be cancelled once, from any thread; clones are
/// cancelled together.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Readable once cancelled; never reset.
    waker: Arc<Waker>,
}

impl Cancel {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            waker: Arc::new(Waker::new()?),
        })
    }

    pub fn cancel(&self) {
        self.waker.wake();
    }

    pub fn is_cancelled(&self) -> bool {
        is_readable(self)
    }
}

/// Cancels when it is dropped. In a handle, it is declared above the thread that it stops, so that
/// the thread is joined afterwards.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(pub(crate) Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Waits until a descriptor is ready (`true`) or the deadline has passed (`false`). Without a
/// deadline, waits forever.
pub(crate) fn poll_until(fds: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // A duration too long for the type is treated like no limit.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(fds, timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether the descriptor is readable, or closed by the other end.
pub(crate) fn is_readable(fd: &impl AsFd) -> bool {
    poll_until(&mut [PollFd::new(fd, PollFlags::IN)], Some(Instant::now())).unwrap_or(false)
}

/// A one-time event that threads can wait for. Any thread can open the gate; clones open together.
/// The default is open.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// Dropping the sender disconnects all receivers.
    closed: Arc<Mutex<Option<Sender<()>>>>,
    opened: Receiver<()>,
}

impl Default for Gate {
    fn default() -> Self {
        let gate = Self::closed();
        gate.open();
        gate
    }
}

impl Gate {
    pub(crate) fn closed() -> Self {
        let (closed, opened) = bounded(0);
        Self {
            closed: Arc::new(Mutex::new(Some(closed))),
            opened,
        }
    }

    pub(crate) fn open(&self) {
        *lock(&self.closed) = None;
    }

    /// Waits until the gate is open, at most for `patience`.
    pub(crate) fn wait(&self, patience: Duration) {
        self.opened.recv_timeout(patience).ok();
    }

    /// Returns a channel for `select!`, which is disconnected when the gate opens.
    pub(crate) fn opened(&self) -> &Receiver<()> {
        &self.opened
    }
}

/// Locks a mutex, ignoring poisoning: all state behind murald's locks is valid at every point at
/// which a holder may panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

pub(crate) fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    unpoisoned(lock.read())
}

pub(crate) fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    unpoisoned(lock.write())
}

/// Returns the result of waiting on a condition variable, ignoring poisoning.
pub(crate) fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
