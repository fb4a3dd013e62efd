//! Limits a process that reads hostile files: memory, open files and processor time. The limit on memory
//! for one image is in `media::decoder`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Address space in bytes: enough for 512 MiB of pixels and a copy.
const MEMORY: u64 = 1536 << 20;
const FILES: u64 = 64;
/// Processor time for each job.
const JOB_TIME: Duration = Duration::from_secs(60);

/// Sets the limits of this process.
pub(super) fn limit() -> io::Result<()> {
    set(Resource::Core, 0)?;
    set(Resource::Nofile, FILES)?;
    set(Resource::As, MEMORY)?;
    // Handled, so that a write beyond `ulimit -f` fails with an error instead of killing the process.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default())?;
    limit_time();
    Ok(())
}

/// Renews the limit on processor time for the next job. Without a limit it sets none: unit tests hash
/// files in their own process.
pub(super) fn renew_time() {
    if getrlimit(Resource::Cpu).current.is_some() {
        limit_time();
    }
}

fn limit_time() {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    // The kernel counts whole seconds.
    set(Resource::Cpu, used.tv_sec as u64 + 1 + JOB_TIME.as_secs()).ok();
}

/// Sets the soft limit only, no higher than the hard one.
fn set(resource: Resource, limit: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(limit, |hard| hard.min(limit)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}
