//! For the targets of `tests/fuzz`: parsers, by plain types. A part of its module in debug builds only.

use super::{Identity, backend_process};

/// The process of a line of `/proc/PID/stat`.
pub fn stat(line: &[u8]) -> Option<Identity> {
    Identity::from_stat(line)
}

/// A record of a process, written anew.
pub fn record(bytes: &[u8]) -> Option<Vec<u8>> {
    let (record, identity) = backend_process::parse(bytes)?;
    identity.age();
    let mut text = serde_json::to_vec(&record).ok()?;
    text.extend_from_slice(b"\n");
    // Its name may be anything, and the fields between are nobody's business.
    let (pid, start) = (identity.pid, identity.start_time);
    text.extend_from_slice(format!("{pid} (x) S{} {start} 0\n", " 0".repeat(18)).as_bytes());
    Some(text)
}

/// What a program said, without what moves a terminal.
pub fn plain(said: &str) -> String {
    super::plain(said)
}
