//! Identifies a process by its PID and start time, as a PID alone may be reused.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The PID and start time of a process. The start time is in clock ticks since boot (field 22 of
/// `/proc/PID/stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    pub start_time: u64,
}

impl Identity {
    /// Returns the process with this PID; `None` for a zombie.
    pub fn from_pid(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Stat::parse(&stat)
            .filter(|stat| stat.state != b'Z')
            .map(|stat| stat.identity)
    }

    /// Parses a line of `/proc/PID/stat`.
    pub(super) fn from_stat(line: &[u8]) -> Option<Self> {
        Stat::parse(line).map(|stat| stat.identity)
    }

    pub fn is_running(self) -> bool {
        Self::from_pid(self.pid) == Some(self)
    }

    /// Returns the processor time used so far, in clock ticks; it does not grow while the process
    /// is stopped. `None` if the process is not running.
    pub(crate) fn processor_time(self) -> Option<u64> {
        let stat = Stat::parse(&fs::read(format!("/proc/{}/stat", self.pid)).ok()?)?;
        (stat.identity == self).then_some(stat.processor_time)
    }
}

struct Stat {
    identity: Identity,
    state: u8,
    /// In clock ticks, user and system time.
    processor_time: u64,
}

impl Stat {
    fn parse(line: &[u8]) -> Option<Self> {
        // The name is in brackets, and may contain spaces and brackets.
        let open = line.iter().position(|&b| b == b'(')?;
        let close = line.iter().rposition(|&b| b == b')')?;
        let pid = std::str::from_utf8(&line[..open])
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let mut rest = std::str::from_utf8(line.get(close + 1..)?)
            .ok()?
            .split_ascii_whitespace();
        let state = *rest.next()?.as_bytes().first()?;
        // After the state, which is field 3: fields 14 and 15 are user and system time, 22 is the
        // start time.
        let (own, kernel): (u64, u64) = (rest.nth(10)?.parse().ok()?, rest.next()?.parse().ok()?);
        let start_time = rest.nth(6)?.parse().ok()?;
        let processor_time = own.saturating_add(kernel);
        Some(Self {
            identity: Identity { pid, start_time },
            state,
            processor_time,
        })
    }
}

/// Clock ticks per second in files of `/proc`; the same on all Linux systems.
const TICKS: u64 = 100;
const DESCENDANTS_MAX: usize = 1000;

/// Returns a size from `/proc/PID/status`, in KiB.
fn status_kb(pid: i32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Returns the children of all threads of a process; empty if the kernel does not list them.
fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let listed = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = |list: String| -> Vec<i32> {
        list.split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    };
    listed.flat_map(numbers).collect()
}

impl Identity {
    /// Returns the resident memory in KiB, plus the private memory of all descendants: web engines
    /// keep pages in processes of their own. `None` if the process is not running.
    pub(crate) fn memory_kb(self) -> Option<u64> {
        let mut kb = status_kb(self.pid, "VmRSS:")?;
        let mut left = children(self.pid);
        // Limited, as a process might start others endlessly.
        for _ in 0..DESCENDANTS_MAX {
            let Some(pid) = left.pop() else { break };
            kb += status_kb(pid, "RssAnon:").unwrap_or(0);
            left.extend(children(pid));
        }
        // Check that the PID was not reused while reading.
        self.is_running().then_some(kb)
    }

    /// Returns the time since the process was started, including suspend.
    pub(crate) fn age(self) -> Option<Duration> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let up = Duration::try_from_secs_f64(uptime.split(' ').next()?.parse().ok()?).ok()?;
        let start = Duration::from_millis(self.start_time.saturating_mul(1000 / TICKS));
        Some(up.saturating_sub(start))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader};

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::super::Launch;
    use super::*;

    #[test]
    fn process_name_may_contain_brackets_and_spaces() {
        let line = b"42 (a) R (b) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 22 33\n";
        let expected = Identity {
            pid: 42,
            start_time: 9876,
        };
        assert_eq!(Identity::from_stat(line), Some(expected));
        // A record may contain any number.
        let max = u64::MAX;
        let huge = format!("42 (a) S 1 42 42 0 -1 0 1 2 3 4 {max} {max} 7 8 20 0 1 0 {max} 22 33");
        let huge = Stat::parse(huge.as_bytes()).unwrap();
        assert_eq!((huge.processor_time, huge.identity.start_time), (max, max));
    }

    #[test]
    fn truncated_stat_lines_are_rejected() {
        for line in [&b""[..], b"42", b"42 (a", b"42 (a) S 1 2", b"x (a) S"] {
            assert_eq!(Identity::from_stat(line), None);
        }
    }

    #[test]
    fn own_process_is_running() {
        let own = Identity::from_pid(std::process::id().try_into().unwrap()).unwrap();
        assert!(own.is_running());
        assert!(
            !Identity {
                start_time: own.start_time + 1,
                ..own
            }
            .is_running()
        );
    }

    #[test]
    fn memory_age_and_processor_time_are_of_the_same_process() {
        let own = Identity::from_pid(std::process::id().try_into().unwrap()).unwrap();
        assert!(own.memory_kb().unwrap() > 500);
        assert!(own.age().unwrap() < Duration::from_secs(3600));
        let other = Identity {
            start_time: own.start_time + 1,
            ..own
        };
        assert_eq!((other.memory_kb(), other.processor_time()), (None, None));
        let before = own.processor_time().unwrap();
        while own.processor_time().unwrap() == before {}
        // A record may contain any number.
        assert_eq!(
            Identity {
                start_time: u64::MAX,
                ..own
            }
            .age(),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn memory_includes_child_processes() {
        // Both shells keep a variable of 30 MB.
        let hold = "x=$(head -c 30000000 /dev/zero | tr '\\0' x); echo; sleep 1000; :";
        let launch = Launch::new("bash").args(["-c", &format!("({hold}) & {hold}")]);
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let errors = theirs.try_clone().unwrap();
        let started = launch.start(Some(theirs), Some(errors), None).unwrap();
        let mut said = BufReader::new(File::from(ours)).lines();
        assert!(
            said.next().is_some() && said.next().is_some(),
            "both are ready"
        );
        let who = started.identity();
        let (alone, all) = (
            status_kb(who.pid, "VmRSS:").unwrap(),
            who.memory_kb().unwrap(),
        );
        started.kill();
        assert!(alone > 29_000 && all > alone + 29_000, "{alone} of {all}");
    }
}
