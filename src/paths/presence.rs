//! Finds out whether a file exists on a disk that may not answer: a look at a file on a dead
//! network disk never returns.
//!
//! Each look runs on a thread `stat`, which is abandoned if it takes too long. While a look hangs
//! in a directory, no other is started there. Used only for the user's files and the configuration;
//! access to murald's own directories may block.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crossbeam_channel::bounded;

use crate::sys::lock;
use crate::thread::{self, Thread};

/// Time limit of a look; a disk that has to spin up takes seconds.
const WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of directories in which looks may hang; beyond it, all files count as not
/// answering.
const HUNG_MAX: usize = 32;
const STACK: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The file exists, or an error other than its absence prevented the look.
    There,
    Missing,
    /// The disk does not answer.
    NoAnswer,
}

static HUNG: Mutex<Vec<(PathBuf, Thread)>> = Mutex::new(Vec::new());

/// Finds out whether a path exists, following links. Returns within seconds.
pub(crate) fn presence(path: &Path) -> Presence {
    look(path.parent().unwrap_or(path), path)
}

/// Whether the disk of a path answers. Returns within seconds, usually at once.
pub(crate) fn answers(path: &Path) -> bool {
    presence(path) != Presence::NoAnswer
}

fn look(directory: &Path, path: &Path) -> Presence {
    if hangs(directory) {
        return Presence::NoAnswer;
    }
    let (tell, told) = bounded(1);
    let seen = path.to_owned();
    // The caller may not wait any longer.
    let look = move || drop(tell.send(fs::metadata(seen).map(drop)));
    let thread = match thread::expendable("stat", STACK, look) {
        Ok(thread) => thread,
        // Look on this thread: that threads are exhausted and the disk is dead is unlikely.
        Err(error) => {
            log::debug!("cannot start a thread to look at a file: {error}");
            return there(&fs::metadata(path).map(drop));
        }
    };
    match told.recv_timeout(WITHIN) {
        Ok(seen) => there(&seen),
        Err(_) => {
            leave(directory, thread);
            Presence::NoAnswer
        }
    }
}

fn there(seen: &io::Result<()>) -> Presence {
    match seen {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Presence::Missing,
        _ => Presence::There,
    }
}

/// Remembers a thread that hangs, one for each directory.
fn leave(directory: &Path, thread: Thread) {
    let mut hung = lock(&HUNG);
    if hung.iter().any(|(at, _)| at == directory) {
        return thread.leave();
    }
    log::warn!("the disk of {} does not answer", directory.display());
    hung.push((directory.to_owned(), thread));
}

/// Whether a look hangs in a directory or above it.
pub(crate) fn hangs(directory: &Path) -> bool {
    let mut hung = lock(&HUNG);
    hung.retain(|(_, thread)| !thread.has_ended());
    hung.len() >= HUNG_MAX || hung.iter().any(|(at, _)| directory.starts_with(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presence_tells_existing_and_missing_files_apart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        assert_eq!(presence(&file), Presence::Missing);
        fs::write(&file, "").unwrap();
        assert_eq!(presence(&file), Presence::There);
        // The error is not that the file is missing.
        assert_eq!(presence(&file.join("b")), Presence::There);
    }
}
