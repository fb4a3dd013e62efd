//! What a process uses, and since when it runs, as the kernel tells.

use std::fs;
use std::time::Duration;

use super::Identity;

/// Linux counts times for everybody in hundredths of a second.
const TICKS: u64 = 100;

impl Identity {
    /// What it has of the machine's memory, in KiB; none where it does not run.
    pub(crate) fn memory_kb(self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kb = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
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
}
