//! Opens and reads the files of jobs, and replies to the daemon.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::limits;
use super::protocol::{Error, Reply};
use crate::paths::open_regular;
use crate::sys::lock;

/// Number of bytes read at a time.
const BUFFER: usize = 256 << 10;
/// How often a running job reports progress.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// Writes replies to the daemon.
#[derive(Clone)]
pub(super) struct Daemon(Arc<Mutex<UnixStream>>);

impl Daemon {
    pub(super) fn new(stream: &UnixStream) -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(stream.try_clone()?))))
    }

    /// Ignores errors, as a closed socket means that the daemon is gone.
    pub(super) fn reply<T: Serialize>(&self, reply: &Reply<T>) {
        let Ok(mut line) = serde_json::to_vec(reply) else {
            return;
        };
        line.push(b'\n');
        lock(&self.0).write_all(&line).ok();
    }

    /// Replies to a job.
    pub(super) fn answer<T: Serialize>(&self, result: Result<T, Error>) {
        self.reply(&match result {
            Ok(done) => Reply::Done(done),
            Err(error) => Reply::Failed(error),
        });
        // The next job may use as much time again.
        limits::renew_time();
    }
}

/// Opens a regular file.
pub(super) fn open(path: &Path) -> Result<File, Error> {
    open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput if path.is_dir() => Error::Directory,
        io::ErrorKind::IsADirectory => Error::Directory,
        io::ErrorKind::InvalidInput => Error::NotFile,
        _ => Error::Read(error.into()),
    })
}

/// Passes the content of a file to `put`, and returns its size. A file with more than `size` bytes is an
/// error: it might grow for ever.
pub(super) fn feed(
    file: &mut File,
    size: u64,
    put: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    daemon: &Daemon,
) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut reported = Instant::now();
    let mut done = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(done),
            Ok(count) if done + count as u64 > size => {
                return Err(io::Error::other("it grew while it was read"));
            }
            Ok(count) => {
                done += count as u64;
                put(&buffer[..count])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if reported.elapsed() >= PROGRESS_EVERY {
            daemon.reply(&Reply::<()>::Progress);
            // The limit is meant for decoding: reading a large file may take longer.
            limits::renew_time();
            reported = Instant::now();
        }
    }
}
