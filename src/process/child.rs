//! A running process, watched and signalled through its pidfd.
//!
//! It need not be a child of this process: one that an earlier daemon started works the same, only
//! its exit code stays unknown. Dropping a [`Child`] leaves the process alone.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};

use super::Identity;
use crate::sys::{Cancel, lock, poll_until};

/// After SIGKILL a process is gone as soon as the kernel gets round to it, unless a device holds it.
const KILLED: Duration = Duration::from_secs(2);

const CPU_IS_USED_UP: i32 = Signal::XCPU.as_raw();

/// Killed processes that were not gone in time: the machine was slow, or they hang on a disk.
static KILLED_LATE: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Reaps those of the killed processes that have ended by now.
pub(super) fn reap_killed() {
    lock(&KILLED_LATE).retain(|process| process.ended().is_none());
}

#[derive(Clone, Debug)]
pub struct Child {
    identity: Identity,
    pidfd: Arc<OwnedFd>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
    /// It was not our child: only that it is gone is known.
    Gone,
}

impl Child {
    /// Takes hold of a process by what is known of it; none if it is no longer there.
    pub fn hold(identity: Identity) -> Option<Self> {
        let pid = Pid::from_raw(identity.pid)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // After the descriptor is there: what it means can no longer change under the check.
        identity.is_running().then(|| Self { identity, pidfd: Arc::new(pidfd) })
    }

    /// One that was just started; it may have ended already. Nobody else waits for it, so its number
    /// is its own until it is reaped here.
    pub(super) fn own(started: &std::process::Child) -> io::Result<Self> {
        let pid = Pid::from_child(started);
        let pidfd = Arc::new(pidfd_open(pid, PidfdFlags::empty())?);
        let pid = pid.as_raw_pid();
        let identity = Identity::of(pid).unwrap_or(Identity { pid, start_time: 0 });
        Ok(Self { identity, pidfd })
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    pub fn is_running(&self) -> bool {
        !self.wait(Some(Instant::now()), None)
    }

    /// Waits until it has ended; `false` when the time is up or the wait is cancelled.
    pub fn wait(&self, until: Option<Instant>, cancel: Option<&Cancel>) -> bool {
        wait_readable(&[self.as_fd()], until, cancel.as_slice())
    }

    /// How it ended; none while it runs. Takes it out of the process table, and with it whatever it
    /// has left behind in its process group.
    pub fn ended(&self) -> Option<Ended> {
        self.reap(true)
    }

    /// The same, but what it has left behind in its process group stays.
    pub(super) fn ended_alone(&self) -> Option<Ended> {
        self.reap(false)
    }

    fn reap(&self, with_group: bool) -> Option<Ended> {
        if self.is_running() {
            return None;
        }
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let seen = waitid(WaitId::PidFd(self.as_fd()), how | WaitIdOptions::NOWAIT);
        if !matches!(seen, Ok(Some(_))) {
            return Some(Ended::Gone);
        }
        // Still a zombie of ours: until it is reaped its number can mean no other group.
        if with_group {
            self.signal_group(Signal::KILL);
        }
        let Ok(Some(status)) = waitid(WaitId::PidFd(self.as_fd()), how) else {
            return Some(Ended::Gone);
        };
        Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Ended::Code(code),
            (None, Some(signal)) => Ended::Signal(signal),
            (None, None) => Ended::Gone,
        })
    }

    /// Ends it and its process group: SIGTERM, and SIGKILL after `grace`. `false` if even that has
    /// not helped within two seconds.
    pub fn end(&self, grace: Duration) -> bool {
        self.signal(Signal::TERM);
        if !self.wait(Some(Instant::now() + grace), None) {
            log::warn!("process {} ignores SIGTERM; sending SIGKILL", self.identity.pid);
            self.signal(Signal::KILL);
        }
        self.is_gone_soon()
    }

    /// Ends it at once; `false` if it is not gone within two seconds.
    pub fn kill(&self) -> bool {
        self.signal(Signal::KILL);
        self.is_gone_soon()
    }

    /// Waits for the end of a killed process; one that needs longer is reaped by [`reap_killed`].
    fn is_gone_soon(&self) -> bool {
        self.wait(Some(Instant::now() + KILLED), None);
        let gone = self.ended().is_some();
        let mut late = lock(&KILLED_LATE);
        if !gone && late.iter().all(|process| process.identity != self.identity) {
            late.push(self.clone());
        }
        gone
    }

    fn signal(&self, signal: Signal) {
        // The group only while its leader lives: then the number is still this group's.
        if self.is_running() && pidfd_send_signal(&self.pidfd, signal).is_ok() {
            self.signal_group(signal);
        }
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.identity.pid) {
            // Nobody left in it is what we want.
            kill_process_group(group, signal).ok();
        }
    }
}

impl AsFd for Child {
    /// Readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(CPU_IS_USED_UP) => f.write_str("it used more processor time than it may"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Gone => f.write_str("unknown exit code"),
        }
    }
}

/// Waits until one of the descriptors can be read or has hung up: `true`; `false` when the time is
/// up or the wait is cancelled.
pub(super) fn wait_readable(
    fds: &[BorrowedFd<'_>],
    until: Option<Instant>,
    cancels: &[&Cancel],
) -> bool {
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    polled.extend(cancels.iter().map(|cancel| PollFd::new(*cancel, PollFlags::IN)));
    // Only a full kernel fails (ENOMEM): as if the time were up.
    poll_until(&mut polled, until).unwrap_or(false)
        && polled[..fds.len()].iter().any(|fd| !fd.revents().is_empty())
}
