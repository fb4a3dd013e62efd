//! Whether a file is there, on a disk that may not answer: a look at a dead network disk never
//! returns, and whoever looked would hang with it.
//!
//! Each look runs on a thread of its own, `stat`, which is abandoned if it takes too long. While one
//! hangs in a directory, nobody looks there again. Only for files of the user's, and for the
//! configuration: directories of ours may hang what touches them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crossbeam_channel::bounded;

use crate::sys::lock;
use crate::thread::{self, Thread};

/// A disk that has to spin up first takes seconds.
const WITHIN: Duration = Duration::from_secs(5);
/// Directories in which looks hang at once: of more nobody knows anything.
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
    look(path.parent().unwrap_or(path), path)
}

/// Whether the disk answers on which a path lies. Returns within seconds, mostly at once.
pub(crate) fn answers(path: &Path) -> bool {
    presence(path) != Presence::NoAnswer
}

fn look(directory: &Path, path: &Path) -> Presence {
    if hangs(directory) {
        return Presence::NoAnswer;
    }
    let (tell, told) = bounded(1);
    let seen = path.to_owned();
    // The caller may have gone.
    let look = move || drop(tell.send(fs::metadata(seen).map(drop)));
    let thread = match thread::expendable("stat", STACK, look) {
        Ok(thread) => thread,
        // A lack of threads and a dead disk at once would be a coincidence.
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

/// Remembers one of many looks that hang at a directory at once: they are no more directories.
fn leave(directory: &Path, thread: Thread) {
    let mut hung = lock(&HUNG);
    if hung.iter().any(|(at, _)| at == directory) {
        return thread.leave();
    }
    log::warn!("the disk of {} does not answer", directory.display());
    hung.push((directory.to_owned(), thread));
}

/// Whether a look hangs at a directory, or above it.
fn hangs(directory: &Path) -> bool {
    let mut hung = lock(&HUNG);
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
