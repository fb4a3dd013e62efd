//! What a process uses, and since when it runs, as the kernel tells.

use std::fs;
use std::time::Duration;

use super::Identity;

/// Linux counts times for everybody in hundredths of a second.
const TICKS: u64 = 100;
const DESCENDANTS_MAX: usize = 1000;

/// A line of a process's status that is a size.
fn status_kb(pid: i32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// The processes that each of its threads has started; none where the kernel does not tell.
fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = |list: String| -> Vec<i32> {
        list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    listed.flat_map(numbers).collect()
}

impl Identity {
    /// What it has of the machine's memory, in KiB, with what those have for themselves that it has
    /// started, and so on: a web engine keeps its pages in others. None where it does not run.
    pub(crate) fn memory_kb(self) -> Option<u64> {
        let mut kb = status_kb(self.pid, "VmRSS:")?;
        let mut left = children(self.pid);
        // A process that starts others without an end is not followed for ever.
        for _ in 0..DESCENDANTS_MAX {
            let Some(pid) = left.pop() else { break };
            kb += status_kb(pid, "RssAnon:").unwrap_or(0);
            left.extend(children(pid));
        }
        // Still the one that was meant.
        self.is_running().then_some(kb)
    }

    /// How long it runs, suspends of the machine included.
    pub(crate) fn age(self) -> Option<Duration> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let up = Duration::try_from_secs_f64(uptime.split(' ').next()?.parse().ok()?).ok()?;
        let start = Duration::from_millis(self.start_time.saturating_mul(1000 / TICKS));
        Some(up.saturating_sub(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::os::fd::AsFd;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::super::Launch;

    #[test]
    fn this_process_is_told_of() {
        let own = Identity::of(std::process::id().try_into().unwrap()).unwrap();
        assert!(own.memory_kb().unwrap() > 500);
        assert!(own.age().unwrap() < Duration::from_secs(3600));
        let other = Identity { start_time: own.start_time + 1, ..own };
        assert_eq!(other.memory_kb(), None);
        // A record may say anything.
        assert_eq!(Identity { start_time: u64::MAX, ..own }.age(), Some(Duration::ZERO));
    }

    #[test]
    fn those_that_it_has_started_count() {
        // Both hold on to a variable of 30 MB.
        let hold = "x=$(head -c 30000000 /dev/zero | tr '\\0' x); echo; sleep 1000; :";
        let launch = Launch::new("bash").args(["-c", &format!("({hold}) & {hold}")]);
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let started = launch.start(Some(theirs.as_fd()), theirs.as_fd(), None).unwrap();
        let mut said = BufReader::new(File::from(ours)).lines();
        assert!(said.next().is_some() && said.next().is_some(), "both are ready");
        let who = started.identity();
        let (alone, all) = (status_kb(who.pid, "VmRSS:").unwrap(), who.memory_kb().unwrap());
        started.kill();
        assert!(alone > 29_000 && all > alone + 29_000, "{alone} of {all}");
    }
}
