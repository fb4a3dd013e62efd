//! What is done in a new process before it becomes the program.
//!
//! The daemon is large and has threads: to fork it copies its page tables, and what may be called in
//! the copy is next to nothing. So it starts its own executable, which std does without a copy, with
//! a hidden first argument; [`become_program`] then makes of itself what was ordered. It has one
//! thread, speaks with its starter over its standard input alone, and never returns to the caller.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, setrlimit};

/// The first argument of a launcher.
const VERB: &str = "__launch";
/// This executable also where another lies at its path by now.
const OWN: &str = "/proc/self/exe";
const NONE: &str = "-";
/// As a shell ends that has not found a program.
const NOT_STARTED: u8 = 127;
/// Between the signal that tells of the end of its processor time and SIGKILL.
const CPU_GRACE: u64 = 2;

/// Whether this executable knows [`VERB`]: that of a test or a benchmark does not.
static IS_LAUNCHER: AtomicBool = AtomicBool::new(false);
/// The umask that this process was started with, once it has taken another.
static INHERITED_UMASK: OnceLock<Mode> = OnceLock::new();

/// What a child may use; none: as much as there is.
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
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    /// It is killed when this process, its starter, ends.
    pub(super) bound_to: Option<Pid>,
    /// A file to which it appends its line of `/proc/self/stat`.
    pub(super) record: Option<CString>,
    /// Where it runs; at the root where this is not there.
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

/// To be called first in `main`. Becomes the program if this process was started for that, and gives
/// an exit code if it cannot.
pub(crate) fn become_program() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_none_or(|word| word != VERB) {
        IS_LAUNCHER.store(true, Ordering::Relaxed);
        return None;
    }
    // Where its starter listens: closed by exec, and by nothing before.
    let report = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3);
    let error = become_ordered(words);
    let number = error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error());
    // Where nobody listens, nobody wants to know.
    report.map(|report| rustix::io::write(&report, &number.to_ne_bytes())).ok();
    Some(ExitCode::from(NOT_STARTED))
}

#[allow(clippy::disallowed_methods)]
fn become_ordered(mut words: impl Iterator<Item = OsString>) -> io::Error {
    let Some((orders, program)) = Orders::read(&mut words).zip(words.next()) else {
        return io::ErrorKind::InvalidInput.into();
    };
    match orders.carry_out().and_then(|()| File::open("/dev/null")) {
        Ok(null) => Command::new(program).args(words).stdin(null).exec(),
        Err(error) => error,
    }
}

/// A command that becomes `program`; its standard input must be the other end of what [`outcome`]
/// reads. None where this executable is no launcher.
#[allow(clippy::disallowed_methods)]
pub(super) fn command(orders: &Orders, program: &Path, args: &[OsString]) -> Option<Command> {
    let mut command = IS_LAUNCHER.load(Ordering::Relaxed).then(|| Command::new(OWN))?;
    command.arg0("murald").arg(VERB).args(orders.words()).arg(program).args(args);
    Some(command)
}

/// Waits until the program is there, or why it is not. `report` is closed by the program's start.
pub(super) fn outcome(report: OwnedFd) -> io::Result<()> {
    let mut number = Vec::new();
    File::from(report).take(4).read_to_end(&mut number)?;
    match <[u8; 4]>::try_from(number) {
        Ok(number) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(number))),
        Err(_) => Ok(()),
    }
}

impl Orders {
    /// Makes system calls and nothing else: it is also called between fork and exec.
    pub(super) fn carry_out(&self) -> io::Result<()> {
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

    fn words(&self) -> [OsString; 7] {
        let word = |number: Option<u64>| number.map_or(NONE.into(), |n| n.to_string().into());
        let starter = self.bound_to.map(|pid| pid.as_raw_nonzero().get().unsigned_abs().into());
        let path = |path: &Option<CString>| {
            path.as_ref().map_or(NONE.into(), |path| OsStr::from_bytes(path.as_bytes()).into())
        };
        [
            word(starter),
            path(&self.record),
            path(&self.directory),
            word(self.limits.memory),
            word(self.limits.cpu.map(|cpu| cpu.as_secs())),
            word(self.limits.output),
            word(self.umask.map(|umask| umask.bits().into())),
        ]
    }

    fn read(words: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let number = |word: OsString| match word.to_str()? {
            NONE => Some(None),
            digits => digits.parse::<u64>().ok().map(Some),
        };
        let starter = number(words.next()?)?;
        let path =
            |word: OsString| (word != NONE).then(|| CString::new(word.into_vec()).ok()).flatten();
        let (record, directory) = (path(words.next()?), path(words.next()?));
        Some(Self {
            bound_to: starter.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)),
            record,
            directory,
            limits: ResourceLimits {
                memory: number(words.next()?)?,
                cpu: number(words.next()?)?.map(Duration::from_secs),
                output: number(words.next()?)?,
            },
            umask: number(words.next()?)?
                .and_then(|bits| Some(Mode::from(u32::try_from(bits).ok()?))),
        })
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
        if self.output.is_some() {
            // SAFETY: to ignore a signal installs no handler; this is the calling process's own.
            // Without it the first write past the limit kills, and nobody is told why.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        }
        set(Resource::Fsize, self.output, 0)?;
        set(Resource::Cpu, self.cpu.map(|cpu| cpu.as_secs().max(1)), CPU_GRACE)?;
        // The last: what comes before it may want memory.
        set(Resource::As, self.memory, 0)?;
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_the_command_line() {
        let check = |orders: Orders| {
            let mut words = orders.words().into_iter();
            let read = Orders::read(&mut words).unwrap();
            assert_eq!(format!("{read:?}"), format!("{orders:?}"));
        };
        check(Orders::default());
        check(Orders {
            bound_to: Pid::from_raw(77),
            record: CString::new(b"/a b\xff".to_vec()).ok(),
            directory: CString::new(b"/home/mia".to_vec()).ok(),
            limits: ResourceLimits {
                memory: Some(u64::MAX),
                cpu: Some(Duration::from_secs(120)),
                output: Some(0),
            },
            umask: Some(Mode::RWXO | Mode::WGRP),
        });
        let cut = ["1", "-", "-", "-", "x", "-", "-"].map(OsString::from);
        assert!(Orders::read(&mut cut.into_iter()).is_none());
        assert!(Orders::read(&mut std::iter::empty()).is_none());
    }
}
