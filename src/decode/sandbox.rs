//! The limits of a process that reads hostile files: memory, open files, processor time, and where it
//! may write. The lower limit of memory for one picture is in `media::decoder`.
//!
//! Landlock is enforced as far as the kernel has it; reading is free everywhere.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of its address space: 512 MiB of pixels and one copy of them fit.
const MEMORY: u64 = 1536 << 20;
const FILES: u64 = 64;
/// Processor time of each job.
const JOB_TIME: Duration = Duration::from_secs(60);

/// Limits this process, which decodes for the daemon.
pub(super) fn limit() -> io::Result<()> {
    set(Resource::Core, 0)?;
    set(Resource::Nofile, FILES)?;
    set(Resource::As, MEMORY)?;
    renew_time();
    Ok(())
}

/// Gives the next job its processor time.
pub(super) fn renew_time() {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    // In whole seconds, as the kernel counts.
    set(Resource::Cpu, used.tv_sec as u64 + 1 + JOB_TIME.as_secs()).ok();
}

/// The soft limit alone, no higher than the hard one.
fn set(resource: Resource, limit: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(limit, |hard| hard.min(limit)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

/// Lets this process write only below these directories, start no program and use no TCP. It gains no
/// privileges from now on. A directory that is not there is skipped.
pub(crate) fn confine(writable: impl IntoIterator<Item = PathBuf>) -> io::Result<()> {
    enforce(writable).map_err(io::Error::other)
}

fn enforce(writable: impl IntoIterator<Item = PathBuf>) -> Result<(), RulesetError> {
    // The version with truncation of files and TCP; an older kernel enforces what it knows.
    let version = ABI::V4;
    let write = AccessFs::from_write(version);
    Ruleset::default()
        .handle_access(write | AccessFs::Execute)?
        .handle_access(AccessNet::from_all(version))?
        .create()?
        .add_rules(path_beneath_rules(writable, write))?
        .restrict_self()?;
    Ok(())
}
