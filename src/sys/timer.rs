//! Timers as descriptors (timerfd).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Readable once its time has come.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new(clock: TimerfdClockId) -> io::Result<Self> {
        Ok(Self(timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?))
    }

    /// Sets it anew, once; `nanos` 0 disarms it. Returns whether the clock was set before and nobody
    /// has noticed yet: the kernel arms it all the same, and says so here and not again.
    pub fn set(&self, flags: TimerfdTimerFlags, nanos: i64) -> io::Result<bool> {
        let it_value = Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        match timerfd_settime(&self.0, flags, &Itimerspec { it_interval, it_value }) {
            Ok(_) => Ok(false),
            Err(Errno::CANCELED) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether its time has come, or it was cancelled because the clock was set. Silences it.
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
