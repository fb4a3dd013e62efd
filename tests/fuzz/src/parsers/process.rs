//! Parsers with plain types, for the targets of `tests/fuzz`. Part of its module with `cfg(parsers)`.

use super::{Identity, backend_process};

/// The process in a line of `/proc/PID/stat`.
pub fn stat(line: &[u8]) -> Option<Identity> {
    Identity::from_stat(line)
}

/// Parses a record of a process, and writes it again.
pub fn record(bytes: &[u8]) -> Option<Vec<u8>> {
    let (record, identity) = backend_process::parse(bytes)?;
    identity.age();
    let mut text = serde_json::to_vec(&record).ok()?;
    text.extend_from_slice(b"\n");
    // Any name and any other fields will do, as the parser skips them.
    let (pid, start) = (identity.pid, identity.start_time);
    text.extend_from_slice(format!("{pid} (x) S{} {start} 0\n", " 0".repeat(18)).as_bytes());
    Some(text)
}

/// A program's output without escape sequences.
pub fn plain(said: &str) -> String {
    super::plain(said)
}
