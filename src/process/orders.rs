//! Prepares a new process between the fork and the program: session, limits, record and signals.
//! Makes system calls only.

use std::ffi::CString;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use landlock::RulesetCreated;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, setrlimit};

/// Seconds between SIGXCPU and SIGKILL.
const CPU_GRACE: u64 = 2;
const LAST_SIGNAL: i32 = 64;

/// The umask with which the daemon was started, before it set its own.
static INHERITED_UMASK: OnceLock<Mode> = OnceLock::new();

/// Limits for a child process; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Address space in bytes; beyond it, allocations fail.
    pub memory: Option<u64>,
    /// Data segment in bytes: writable memory that no other process shares. Beyond it, allocations fail.
    pub data: Option<u64>,
    /// Processor time of all threads, in whole seconds; beyond it, the process is killed.
    pub cpu: Option<Duration>,
    /// Size in bytes of each file that it writes, including shared memory; beyond it, writes fail.
    pub output: Option<u64>,
}

/// The steps before the program is executed.
#[derive(Debug)]
pub(super) struct Orders {
    /// The parent process with which the process is killed.
    pub(super) bound_to: Option<Pid>,
    /// The file to which the process appends its line of `/proc/self/stat`.
    pub(super) record: Option<CString>,
    /// The working directory; `/` if it does not exist.
    pub(super) directory: Option<CString>,
    pub(super) limits: ResourceLimits,
    /// Landlock's rules for the process.
    pub(super) sandbox: Option<RulesetCreated>,
    /// `None` leaves the umask as it is.
    pub(super) umask: Option<Mode>,
}

/// Makes the files that this process creates from now on accessible by its user only. Files that
/// its children create for others get the umask that murald was started with. To be called before
/// the first file and thread are created.
pub(crate) fn keep_files_private() {
    let inherited = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    // A second call would return the new umask.
    INHERITED_UMASK.get_or_init(|| inherited);
}

pub(super) fn inherited_umask() -> Option<Mode> {
    INHERITED_UMASK.get().copied()
}

impl Orders {
    /// Runs in the new process: no allocation, no lock, and errors with a code only.
    pub(super) fn carry_out(&mut self) -> io::Result<()> {
        // SIGXFSZ is ignored, so that a write beyond the limit fails with an error instead of
        // killing the process.
        reset_signals(self.limits.output.is_some().then_some(libc::SIGXFSZ));
        rustix::process::setsid()?;
        // The current directory may be on a file system that is to be unmounted later.
        rustix::process::chdir(c"/")?;
        if let Some(directory) = &self.directory {
            rustix::process::chdir(directory.as_c_str()).ok();
        }
        if let Some(starter) = self.bound_to {
            // Without its parent, no process reads its result. The setting does not apply to its own
            // children.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(starter) {
                return Err(rustix::io::Errno::SRCH.into());
            }
        }
        if let Some(umask) = self.umask {
            rustix::process::umask(umask);
        }
        self.limits.set()?;
        if let Some(record) = &self.record {
            write_record(record)?;
        }
        match self.sandbox.take() {
            Some(rules) => rules
                .restrict_self()
                .map(drop)
                .map_err(|_| io::ErrorKind::PermissionDenied.into()),
            None => Ok(()),
        }
    }
}

impl ResourceLimits {
    fn set(self) -> io::Result<()> {
        let set = |resource, soft: Option<u64>, grace| {
            let Some(soft) = soft else { return Ok(()) };
            let hard = rustix::process::getrlimit(resource)
                .maximum
                .unwrap_or(u64::MAX);
            let maximum = Some(hard.min(soft.saturating_add(grace)));
            setrlimit(
                resource,
                Rlimit {
                    current: Some(soft.min(hard)),
                    maximum,
                },
            )
        };
        set(Resource::Fsize, self.output, 0)?;
        set(
            Resource::Cpu,
            self.cpu.map(|cpu| cpu.as_secs().max(1)),
            CPU_GRACE,
        )?;
        // Set last, as the steps before may need memory.
        set(Resource::Data, self.data, 0)?;
        set(Resource::As, self.memory, 0)?;
        Ok(())
    }
}

/// Resets all signals to their defaults, but ignores `ignored`.
fn reset_signals(ignored: Option<i32>) {
    for signal in 1..=LAST_SIGNAL {
        let is_ignored = ignored == Some(signal);
        // SAFETY: installs no handler, in a process with a signal table of its own. The C library
        // refuses the signals that it uses itself.
        unsafe {
            libc::signal(
                signal,
                if is_ignored {
                    libc::SIG_IGN
                } else {
                    libc::SIG_DFL
                },
            )
        };
    }
}

fn write_record(record: &CString) -> io::Result<()> {
    let record = rustix::fs::open(
        record.as_c_str(),
        OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let stat = rustix::fs::open(
        c"/proc/self/stat",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut line = [0; 1024];
    let length = rustix::io::read(&stat, &mut line)?;
    rustix::io::write(&record, &line[..length])?;
    Ok(())
}
