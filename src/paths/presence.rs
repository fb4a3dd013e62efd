//! Whether a file is there, on a disk that may not answer: a look at a dead network disk never
//! returns, and whoever looked would hang with it.
//!
//! Each look runs on a thread of its own, `stat`, which is left behind where it takes too long. While
//! one hangs in a directory, nobody looks there again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::bounded;

use crate::thread::{self, Thread};

/// A disk that has to spin up first takes seconds.
const WITHIN: Duration = Duration::from_secs(5);
/// Looks that hang at once: of more directories nobody knows anything.
const HUNG_MAX: usize = 32;
const STACK: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Also where something else than its absence keeps it from being looked at.
    There,
    Missing,
    /// Its disk does not say.
    NoAnswer,
}

static HUNG: Mutex<Vec<(PathBuf, Thread)>> = Mutex::new(Vec::new());

/// Looks whether there is something at a path, where a link leads. Returns within seconds.
pub(crate) fn presence(path: &Path) -> Presence {
    let directory = path.parent().unwrap_or(path).to_owned();
    if hangs(&directory) {
        return Presence::NoAnswer;
    }
    let (tell, told) = bounded(1);
    let path = path.to_owned();
    // Whoever asked may have gone.
    let look = move || drop(tell.send(fs::metadata(path).map(drop)));
    let thread = match thread::expendable("stat", STACK, look) {
        Ok(thread) => thread,
        Err(error) => {
            log::warn!("no thread to look at a file: {error}");
            return Presence::NoAnswer;
        }
    };
    match told.recv_timeout(WITHIN) {
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Presence::Missing,
        Ok(_) => Presence::There,
        Err(_) => {
            log::warn!("the disk of {} does not answer", directory.display());
            let mut hung = HUNG.lock().unwrap_or_else(PoisonError::into_inner);
            hung.push((directory, thread));
            Presence::NoAnswer
        }
    }
}

/// Whether a look hangs at a directory, or above it.
fn hangs(directory: &Path) -> bool {
    let mut hung = HUNG.lock().unwrap_or_else(PoisonError::into_inner);
    hung.retain(|(_, thread)| !thread.has_ended());
    hung.len() >= HUNG_MAX || hung.iter().any(|(at, _)| directory.starts_with(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_there_or_missing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        assert_eq!(presence(&file), Presence::Missing);
        fs::write(&file, "").unwrap();
        assert_eq!(presence(&file), Presence::There);
        // Something is in the way: it is not said that it is missing.
        assert_eq!(presence(&file.join("b")), Presence::There);
    }
}
