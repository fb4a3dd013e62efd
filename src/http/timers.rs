//! Deadlines of connections: one timer in the workers' epoll, armed for the earliest.
//!
//! Nothing fires while nothing is due. A connection's entry is often earlier than its deadline,
//! which moves with every byte; it is then set again when it fires.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

#[derive(Debug)]
pub(super) struct Timers {
    fd: OwnedFd,
    due: Mutex<Due>,
}

#[derive(Debug, Default)]
struct Due {
    entries: BTreeSet<(Instant, u32)>,
    armed: Option<Instant>,
}

impl Timers {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { fd, due: Mutex::default() })
    }

    /// Replaces the entry of `key`; `old` is what was set last.
    pub(super) fn set(&self, key: u32, old: Option<Instant>, new: Option<Instant>) {
        let mut due = self.lock();
        if let Some(old) = old {
            due.entries.remove(&(old, key));
        }
        if let Some(new) = new {
            due.entries.insert((new, key));
        }
        self.arm(&mut due);
    }

    /// Takes the entries whose time has come.
    pub(super) fn take_due(&self) -> Vec<(Instant, u32)> {
        // Fails only where the timer was set anew meanwhile.
        rustix::io::read(&self.fd, &mut [0u8; 8]).ok();
        let mut due = self.lock();
        let now = Instant::now();
        let later = due.entries.split_off(&(now, 0));
        let taken = std::mem::replace(&mut due.entries, later);
        due.armed = None;
        self.arm(&mut due);
        taken.into_iter().collect()
    }

    /// Arms the timer for the first entry. It may fire too early, never too late.
    fn arm(&self, due: &mut Due) {
        let first = due.entries.first().map(|&(time, _)| time);
        match (first, due.armed) {
            (Some(first), Some(armed)) if armed <= first => {}
            (None, None) => {}
            (first, _) => {
                due.armed = first;
                let left = first.map_or(Duration::ZERO, |first| {
                    // Zero would disarm it.
                    first.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1))
                });
                self.fire_in(left);
            }
        }
    }

    fn fire_in(&self, left: Duration) {
        let value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once)
            .expect("a relative time of less than a second's nanoseconds is valid");
    }

    fn lock(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Timers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn fires_within(timers: &Timers, millis: i64) -> bool {
        let time = rustix::event::Timespec { tv_sec: 0, tv_nsec: millis * 1_000_000 };
        let mut waited = [PollFd::new(timers, PollFlags::IN)];
        poll(&mut waited, Some(&time)).unwrap() == 1
    }

    #[test]
    fn only_what_is_due_fires() {
        let timers = Timers::new().unwrap();
        let now = Instant::now();
        let (soon, late) = (now + Duration::from_millis(5), now + Duration::from_secs(60));
        timers.set(1, None, Some(late));
        assert!(!fires_within(&timers, 1));
        timers.set(2, None, Some(soon));
        assert!(fires_within(&timers, 500));
        assert_eq!(timers.take_due(), [(soon, 2)]);
        assert!(!fires_within(&timers, 1));
        timers.set(1, Some(late), Some(now));
        assert!(fires_within(&timers, 500));
        timers.set(1, Some(now), None);
        assert!(!fires_within(&timers, 1) && timers.take_due().is_empty());
    }
}
