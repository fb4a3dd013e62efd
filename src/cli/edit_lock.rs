//! A lock between commands that read a list, change it and write it back whole.
//!
//! Two such commands at once would undo each other's change. The lock is a `flock` on a file beside the
//! socket, held from the first request to the last answer, never while the command prints or asks a
//! person. Scripts that use the API can take it, too.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::Error;
use super::connection::Connection;

/// The time limit for the lock, far longer than any edit: a command that is stopped with Ctrl-Z holds
/// the lock.
const WITHIN: Duration = Duration::from_secs(20);
/// The time between two tries: a kernel lock has no wait with a time limit.
const PACE: Duration = Duration::from_millis(5);

/// Runs `edit` while no other command edits. Must not be called from within `edit`.
pub(super) fn hold<T>(
    connection: &Connection,
    edit: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let path = beside(connection.socket());
    match open(&path) {
        // The lock ends with the file, also if the edit fails.
        Ok(file) => take(&file, &path, WITHIN).and_then(|()| edit()),
        Err(error) => match error.kind() {
            // The directory may be mounted read-only while the socket still works. No directory means
            // no daemon: the request reports that.
            io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotFound => edit(),
            _ => Err(failed(&path, error)),
        },
    }
}

/// The lock file, the same for every name of the socket.
fn beside(socket: &Path) -> PathBuf {
    let real = fs::canonicalize(socket);
    real.as_deref()
        .unwrap_or(socket)
        .with_extension("edit.lock")
}

/// The file is never removed: two commands could then lock two files of the same name.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn take(file: &File, path: &Path, within: Duration) -> Result<(), Error> {
    let deadline = Instant::now() + within;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(PACE),
            Err(Errno::WOULDBLOCK) => {
                let held = format!("{} is locked by another murald command", path.display());
                return Err(Error::refused(format!("{held}; nothing was changed"))
                    .hint("`ps -C murald` lists the murald processes; stop the one that has hung, then try again"));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(path, error.into())),
        }
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    let failed = format!("{} cannot be locked; nothing was changed", path.display());
    Error::refused(failed).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_command_waits_for_the_lock_with_a_time_limit() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("murald.sock");
        let connection = Connection::new(&socket);
        let path = beside(&socket);
        let told = hold(&connection, || {
            let other = open(&path).unwrap();
            Ok(take(&other, &path, PACE).unwrap_err().to_string())
        });
        let told = told.unwrap();
        assert!(
            told.contains(" is locked by another murald command"),
            "{told}"
        );
        assert!(told.contains("command; nothing was changed\n"), "{told}");
        // The lock is free again, also after an edit that failed.
        hold(&connection, || Err::<(), _>(Error::refused("no"))).unwrap_err();
        hold(&connection, || Ok(())).unwrap();
    }
}
