//! Reads what a backend writes to its log while it starts, every 20 ms.
//!
//! Runs on the worker's thread. The log is a file, not a pipe, because the backend outlives the daemon.
//! A log is locked while it is followed, so that it is not emptied before it was read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use memchr::{memchr, memmem, memrchr};
use rustix::fs::{FlockOperation, flock};

use super::socket::{NotUp, PAUSE, wait};
use crate::process::BackendProcess;
use crate::sys::Cancel;

/// Calls `read` with each complete line of a log, from an offset on and as lines are written, until
/// `read` breaks. Pieces of the log that contain none of `marks` are skipped, since a backend may write
/// a lot.
pub(super) fn follow<T>(
    process: &BackendProcess,
    from: u64,
    marks: &[&str],
    until: Instant,
    cancel: &Cancel,
    mut read: impl FnMut(&str) -> ControlFlow<T>,
) -> Result<T, NotUp> {
    let log = process.log_path();
    let failed = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot read its log {}: {error}", log.display()),
        )
    };
    let mut lines = Lines::open(&log, from, marks).map_err(failed)?;
    loop {
        // Asked before the log is read, so that the last lines of a process are not missed.
        let next = until.min(Instant::now() + PAUSE);
        let waited = wait(&[], Some(process.child()), next, cancel);
        if let ControlFlow::Break(seen) = lines.read_new(&mut read).map_err(failed)? {
            return Ok(seen);
        }
        waited?;
        if until <= Instant::now() {
            return Err(NotUp::Late);
        }
    }
}

/// A longer line is no message of a backend; it is read in pieces.
const LINE_MAX: usize = 64 << 10;

struct Lines<'a> {
    file: File,
    marks: &'a [&'a str],
    /// The position in the file up to which it was read.
    position: u64,
    /// The start of a line whose end is not written yet.
    pending: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn open(log: &Path, from: u64, marks: &'a [&'a str]) -> io::Result<Self> {
        let mut file = File::open(log)?;
        // The lock keeps the log from being emptied, up to a limit.
        flock(&file, FlockOperation::LockShared)?;
        let position = file.seek(SeekFrom::Start(from))?;
        Ok(Self {
            file,
            marks,
            position,
            pending: Vec::new(),
        })
    }

    /// Reads the log in pieces, up to its length at the start of the call: a log may grow as fast as it
    /// is read.
    fn read_new<T>(
        &mut self,
        read: &mut impl FnMut(&str) -> ControlFlow<T>,
    ) -> io::Result<ControlFlow<T>> {
        let length = self.file.metadata()?.len();
        if length < self.position {
            // The log became too long and was emptied.
            self.position = self.file.seek(SeekFrom::Start(0))?;
            self.pending.clear();
        }
        while self.position < length {
            let wanted = (LINE_MAX - self.pending.len()) as u64;
            let file = Read::by_ref(&mut self.file);
            let count = file
                .take(wanted.min(length - self.position))
                .read_to_end(&mut self.pending)?;
            if count == 0 {
                break;
            }
            self.position += count as u64;
            if let ControlFlow::Break(seen) = self.take_lines(read) {
                return Ok(ControlFlow::Break(seen));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn take_lines<T>(&mut self, read: &mut impl FnMut(&str) -> ControlFlow<T>) -> ControlFlow<T> {
        let mut start = 0;
        if !self
            .marks
            .iter()
            .any(|mark| memmem::find(&self.pending, mark.as_bytes()).is_some())
        {
            start = memrchr(b'\n', &self.pending).map_or(0, |last| last + 1);
        }
        while let Some(length) = memchr(b'\n', &self.pending[start..]) {
            let line = String::from_utf8_lossy(&self.pending[start..start + length]);
            read(&line)?;
            start += length + 1;
        }
        self.pending.drain(..start);
        if self.pending.len() >= LINE_MAX {
            self.pending.clear();
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    use crate::kernel::Kernel;
    use crate::process::{Launch, LogLimit, ProcessRecords};
    use crate::thread::Spawner;

    fn read(lines: &mut Lines<'_>) -> Vec<String> {
        let mut all = Vec::new();
        let more = lines.read_new(&mut |line: &str| {
            all.push(line.to_owned());
            ControlFlow::<()>::Continue(())
        });
        assert!(more.unwrap().is_continue());
        all
    }

    #[test]
    fn log_is_read_line_by_line_as_it_grows_and_again_when_it_was_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("x.log");
        fs::write(&log, "one\ntw").unwrap();
        let mut lines = Lines::open(&log, 0, &[""]).unwrap();
        assert_eq!(read(&mut lines), ["one"]);
        fs::write(&log, "one\ntwo\n").unwrap();
        assert_eq!(read(&mut lines), ["two"]);
        fs::write(&log, "new\n").unwrap();
        assert_eq!(read(&mut lines), ["new"]);
    }

    #[test]
    fn log_without_line_ends_takes_limited_memory() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("x.log");
        let mut text = vec![b'x'; 5 << 20];
        text.extend_from_slice(b"\nlast\n");
        fs::write(&log, text).unwrap();
        let mut lines = Lines::open(&log, 0, &[""]).unwrap();
        assert_eq!(read(&mut lines).pop().as_deref(), Some("last"));
        assert!(
            lines.pending.capacity() <= 2 * LINE_MAX,
            "{}",
            lines.pending.capacity()
        );
    }

    #[test]
    fn error_names_the_missing_log() {
        let dir = tempfile::tempdir().unwrap();
        let records = ProcessRecords::open(dir.path()).unwrap();
        let process = records
            .start("test", None, |_| Launch::new("/bin/true"))
            .unwrap();
        fs::remove_file(process.log_path()).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let cancel = Cancel::new().unwrap();
        let followed = follow(&process, 0, &[], until, &cancel, |_| ControlFlow::Break(()));
        let expected = format!("cannot read its log {}: ", process.log_path().display());
        assert!(followed.unwrap_err().to_string().starts_with(&expected));
        process.end(Duration::from_secs(5));
    }

    #[test]
    fn line_is_found_in_a_flood_of_output() {
        let dir = tempfile::tempdir().unwrap();
        let (spawner, _deaths) = Spawner::new();
        let kernel = Kernel::start(&spawner).unwrap();
        let _limit = LogLimit::start(&kernel, &spawner, dir.path()).unwrap();
        let records = ProcessRecords::open(dir.path()).unwrap();
        let flood =
            "for i in $(seq 20); do yes \"$(printf %4000s)\" | head -n 500; echo drawn; done";
        let launch = Launch::new("/bin/sh").args(["-c", flood]);
        let process = records.start("test", None, |_| launch).unwrap();
        let until = Instant::now() + Duration::from_secs(120);
        let cancel = Cancel::new().unwrap();
        let mut seen = 0;
        let read = |line: &str| {
            seen += usize::from(line == "drawn");
            if seen == 20 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        follow(&process, 0, &["drawn"], until, &cancel, read).unwrap();
        assert_eq!(seen, 20);
        process.end(Duration::from_secs(5));
    }
}
