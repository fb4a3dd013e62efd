//! Waits: wakers, timers and cancellation as descriptors, `poll` with a deadline, gates and locks.
//!
//! Runs on the thread that waits. Every wait here survives signals.
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
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable until it is reset. Never blocks.
    pub(crate) fn wake(&self) {
        // Writing fails only if the counter is full, and then the descriptor is readable already.
        rustix::io::write(&self.0, &1u64.to_ne_bytes()).ok();
    }

    pub(crate) fn reset(&self) {
        // Reading fails only if nobody has woken the thread.
        rustix::io::read(&self.0, &mut [0u8; 8]).ok();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A timer as a descriptor (timerfd), readable once its time has come.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new(clock: TimerfdClockId) -> io::Result<Self> {
        Ok(Self(timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?))
    }

    /// Sets the timer again, for one expiry; `nanos` 0 disarms it. Returns whether the clock was set
    /// since the last read: the kernel arms the timer all the same, and reports that here only once.
    pub fn set(&self, flags: TimerfdTimerFlags, nanos: i64) -> io::Result<bool> {
        let it_value = Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        match timerfd_settime(&self.0, flags, &Itimerspec { it_interval, it_value }) {
            Ok(_) => Ok(false),
            Err(Errno::CANCELED) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the time has come, or the clock was set. Makes the descriptor unreadable again.
    pub fn expired(&self) -> bool {
        matches!(rustix::io::read(&self.0, &mut [0_u8; 8]), Ok(_) | Err(Errno::CANCELED))
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

/// A request to stop, as a descriptor. Any thread cancels it, once and for good; all clones are
/// cancelled together.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// Stays readable once cancelled: nobody resets it.
    waker: Arc<Waker>,
}

impl Cancel {
    pub fn new() -> io::Result<Self> {
        Ok(Self { waker: Arc::new(Waker::new()?) })
    }

    pub fn cancel(&self) {
        self.waker.wake();
    }

    pub fn is_cancelled(&self) -> bool {
        is_readable(self)
    }
}

/// Cancels when it is dropped. In a handle, this field stands above the thread that it stops, so that
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

/// Waits until one of the descriptors is ready (`true`) or the deadline has passed (`false`).
/// Without a deadline it waits for ever.
pub(crate) fn poll_until(fds: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // A wait too long for the type is as good as an endless one.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(fds, timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether the descriptor can be read now, or has hung up.
pub(crate) fn is_readable(fd: &impl AsFd) -> bool {
    poll_until(&mut [PollFd::new(fd, PollFlags::IN)], Some(Instant::now())).unwrap_or(false)
}

/// Something that happens once and that other threads wait for. Any thread opens the gate; all clones
/// open together. The default is open.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// Dropping the sender disconnects every receiver.
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
        Self { closed: Arc::new(Mutex::new(Some(closed))), opened }
    }

    pub(crate) fn open(&self) {
        *lock(&self.closed) = None;
    }

    /// Returns when the gate is open, or after `patience`.
    pub(crate) fn wait(&self, patience: Duration) {
        self.opened.recv_timeout(patience).ok();
    }

    /// A channel for `select!`, which is disconnected when the gate opens.
    pub(crate) fn opened(&self) -> &Receiver<()> {
        &self.opened
    }
}

/// Locks whose last holder may have panicked. Every state behind a lock of ours is valid between any two
/// statements that can panic, so the next holder uses it as it is.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

pub(crate) fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    unpoisoned(lock.read())
}

pub(crate) fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    unpoisoned(lock.write())
}

/// The result of waiting on a condition variable.
pub(crate) fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
