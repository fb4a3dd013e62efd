//! The steps of a new process between the fork and the program: session, limits, record, signals.
//! System calls and nothing else.

use std::ffi::CString;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, setrlimit};

/// Between the signal that tells of the end of its processor time and SIGKILL.
const CPU_GRACE: u64 = 2;
const LAST_SIGNAL: i32 = 64;

/// The umask that this process was started with, once it has taken another.
static INHERITED_UMASK: OnceLock<Mode> = OnceLock::new();

/// The limits of a child; none: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Bytes of its address space: past it, allocations fail.
    pub memory: Option<u64>,
    /// Processor time of all its threads, in whole seconds: past it, it is killed.
    pub cpu: Option<Duration>,
    /// Bytes of each file that it writes, shared memory too: past it, writes fail.
    pub output: Option<u64>,
}

/// All that is to be done before the program is there.
#[derive(Debug)]
pub(super) struct Orders {
    /// It is killed when this process, its starter, ends.
    pub(super) bound_to: Option<Pid>,
    /// A file to which it appends its line of `/proc/self/stat`.
    pub(super) record: Option<CString>,
    /// The working directory; the root if this does not exist.
    pub(super) directory: Option<CString>,
    pub(super) limits: ResourceLimits,
    /// None: as its starter has it.
    pub(super) umask: Option<Mode>,
}

/// From now on all files that this process makes are its user's alone. What its children make for
/// others is as open as it would be without us. To be called before the first file and the first
/// thread.
pub(crate) fn keep_files_private() {
    let inherited = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    // A second call would find our own.
    INHERITED_UMASK.get_or_init(|| inherited);
}

pub(super) fn inherited_umask() -> Option<Mode> {
    INHERITED_UMASK.get().copied()
}

impl Orders {
    /// In the new process: no allocation, no lock, and errors that are a number.
    pub(super) fn carry_out(&self) -> io::Result<()> {
        // Without it the first write past the limit kills, and nobody is told why.
        reset_signals(self.limits.output.is_some().then_some(libc::SIGXFSZ));
        rustix::process::setsid()?;
        // We may have been started on a mount that has to go later.
        rustix::process::chdir(c"/")?;
        if let Some(directory) = &self.directory {
            rustix::process::chdir(directory.as_c_str()).ok();
        }
        if let Some(starter) = self.bound_to {
            // Nobody would read its answer any more. Cleared in what it starts itself.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(starter) {
                return Err(rustix::io::Errno::SRCH.into());
            }
        }
        if let Some(umask) = self.umask {
            rustix::process::umask(umask);
        }
        self.limits.set()?;
        match &self.record {
            Some(record) => write_record(record),
            None => Ok(()),
        }
    }
}

impl ResourceLimits {
    fn set(self) -> io::Result<()> {
        let set = |resource, soft: Option<u64>, grace| {
            let Some(soft) = soft else { return Ok(()) };
            let hard = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let maximum = Some(hard.min(soft.saturating_add(grace)));
            setrlimit(resource, Rlimit { current: Some(soft.min(hard)), maximum })
        };
        set(Resource::Fsize, self.output, 0)?;
        set(Resource::Cpu, self.cpu.map(|cpu| cpu.as_secs().max(1)), CPU_GRACE)?;
        // The last: what comes before it may want memory.
        set(Resource::As, self.memory, 0)?;
        Ok(())
    }
}

/// Resets all signals to their defaults, except `ignored`.
fn reset_signals(ignored: Option<i32>) {
    for signal in 1..=LAST_SIGNAL {
        let is_ignored = ignored == Some(signal);
        // SAFETY: this installs no handler, in a process with a table of its own. The C library
        // refuses the signals that it uses itself.
        unsafe { libc::signal(signal, if is_ignored { libc::SIG_IGN } else { libc::SIG_DFL }) };
    }
}

fn write_record(record: &CString) -> io::Result<()> {
    let record = rustix::fs::open(
        record.as_c_str(),
        OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let stat =
        rustix::fs::open(c"/proc/self/stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut line = [0; 1024];
    let length = rustix::io::read(&stat, &mut line)?;
    rustix::io::write(&record, &line[..length])?;
    Ok(())
}
