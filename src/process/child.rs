//! A running process, watched and signalled through its pidfd.
//!
//! It need not be a child of this process: a process that an earlier daemon started works the same,
//! except that its exit code is unknown. Dropping a [`Child`] does not end the process.

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

/// Time limit for a killed process to end; the kernel ends it soon unless a device blocks it.
const KILLED: Duration = Duration::from_secs(2);

const CPU_IS_USED_UP: i32 = Signal::XCPU.as_raw();

/// Killed processes that did not end in time, because the machine is slow or they wait for a disk.
static KILLED_LATE: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Reaps the killed processes that have ended since.
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
    /// The process was not a child of this one, so only its absence is known.
    Gone,
}

impl Child {
    /// Opens a process by its identity; `None` if it no longer exists.
    pub fn hold(identity: Identity) -> Option<Self> {
        let pid = Pid::from_raw(identity.pid)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Checked after opening the pidfd, which then refers to one process for good.
        identity.is_running().then(|| Self {
            identity,
            pidfd: Arc::new(pidfd),
        })
    }

    /// Opens a child that was just started and may have ended. Only this module reaps children, so
    /// the PID cannot be reused yet.
    pub(super) fn own(started: &std::process::Child) -> io::Result<Self> {
        let pid = Pid::from_child(started);
        let pidfd = Arc::new(pidfd_open(pid, PidfdFlags::empty())?);
        let pid = pid.as_raw_pid();
        let identity = Identity::from_pid(pid).unwrap_or(Identity { pid, start_time: 0 });
        Ok(Self { identity, pidfd })
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    pub fn is_running(&self) -> bool {
        !self.wait(Some(Instant::now()), None)
    }

    /// Waits until the process ends; returns `false` if `until` has passed or the wait is
    /// cancelled.
    pub fn wait(&self, until: Option<Instant>, cancel: Option<&Cancel>) -> bool {
        wait_readable(&[self.as_fd()], until, cancel.as_slice())
    }

    /// Returns how the process ended; `None` while it runs. Reaps it, and kills the rest of its
    /// process group.
    pub fn ended(&self) -> Option<Ended> {
        self.reap(true)
    }

    /// Like [`Self::ended`], but leaves the rest of the process group alone.
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
        // The process is a zombie until it is reaped, so its PID still identifies the group.
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

    /// Ends the process and its group with SIGTERM, and with SIGKILL after `grace`. Returns `false`
    /// if it is not gone two seconds after that.
    pub fn end(&self, grace: Duration) -> bool {
        self.signal(Signal::TERM);
        if !self.wait(Some(Instant::now() + grace), None) {
            log::warn!(
                "process {} ignores SIGTERM; sending SIGKILL",
                self.identity.pid
            );
            self.signal(Signal::KILL);
        }
        self.is_gone_soon()
    }

    /// Kills the process; returns `false` if it is not gone within two seconds.
    pub fn kill(&self) -> bool {
        self.signal(Signal::KILL);
        self.is_gone_soon()
    }

    /// Waits for a killed process to end; one that takes longer is reaped by [`reap_killed`].
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
        // The group is signalled only while its leader runs, as its ID might be reused afterwards.
        if self.is_running() && pidfd_send_signal(&self.pidfd, signal).is_ok() {
            self.signal_group(signal);
        }
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.identity.pid) {
            // An error means that the group is empty.
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
            Self::Signal(CPU_IS_USED_UP) => f.write_str("it exceeded its limit of processor time"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Gone => f.write_str("unknown exit code"),
        }
    }
}

/// Waits until a descriptor is readable or closed by the other end; returns `false` if `until` has
/// passed or the wait is cancelled.
pub(super) fn wait_readable(
    fds: &[BorrowedFd<'_>],
    until: Option<Instant>,
    cancels: &[&Cancel],
) -> bool {
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    polled.extend(
        cancels
            .iter()
            .map(|cancel| PollFd::new(*cancel, PollFlags::IN)),
    );
    // An error (ENOMEM) is treated like a timeout.
    poll_until(&mut polled, until).unwrap_or(false)
        && polled[..fds.len()]
            .iter()
            .any(|fd| !fd.revents().is_empty())
}
