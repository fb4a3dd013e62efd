//! Which process is meant: a PID alone can come to mean another one.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process for good: its number and the kernel's start time of it (clock ticks since the machine
/// came up, field 22 of `/proc/PID/stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    pub start_time: u64,
}

impl Identity {
    /// The process that now has this PID; none for a zombie.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Stat::parse(&stat).filter(|stat| stat.state != b'Z').map(|stat| stat.identity)
    }

    /// From a line of `/proc/PID/stat`.
    pub(super) fn from_stat(line: &[u8]) -> Option<Self> {
        Stat::parse(line).map(|stat| stat.identity)
    }

    pub fn is_running(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

struct Stat {
    identity: Identity,
    state: u8,
}

impl Stat {
    fn parse(line: &[u8]) -> Option<Self> {
        // The name stands in brackets and may itself hold blanks and brackets.
        let open = line.iter().position(|&b| b == b'(')?;
        let close = line.iter().rposition(|&b| b == b')')?;
        let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
        let mut rest = std::str::from_utf8(line.get(close + 1..)?).ok()?.split_ascii_whitespace();
        let state = *rest.next()?.as_bytes().first()?;
        // Field 3 was the state: 22 is the nineteenth after it.
        let start_time = rest.nth(18)?.parse().ok()?;
        Some(Self { identity: Identity { pid, start_time }, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks() {
        let line = b"42 (a) R (b) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 22 33\n";
        let expected = Identity { pid: 42, start_time: 9876 };
        assert_eq!(Identity::from_stat(line), Some(expected));
    }

    #[test]
    fn cut_lines_are_nobody() {
        for line in [&b""[..], b"42", b"42 (a", b"42 (a) S 1 2", b"x (a) S"] {
            assert_eq!(Identity::from_stat(line), None);
        }
    }

    #[test]
    fn we_run() {
        let own = Identity::of(std::process::id().try_into().unwrap()).unwrap();
        assert!(own.is_running());
        assert!(!Identity { start_time: own.start_time + 1, ..own }.is_running());
    }
}
