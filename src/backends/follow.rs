//! Reading what a backend writes to its log while it comes up, without polling.
//!
//! Runs on the worker's thread. The log is a file, not a pipe: the backend outlives us. A log that is
//! followed is held, so that it is not emptied before it was read; what was read of a long one is freed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use memchr::{memchr, memmem, memrchr};
use rustix::fs::inotify::WatchFlags;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};

use super::socket::{NotUp, wait};
use crate::process::BackendProcess;
use crate::sys::{Cancel, Inotify};

/// Gives the whole lines of a log to `read`, from a place in it and as they come, until it breaks.
/// Pieces of the log in which none of `marks` occurs are skipped: a backend may flood it.
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
        io::Error::new(error.kind(), format!("cannot read its log {}: {error}", log.display()))
    };
    let notify = Inotify::new().map_err(failed)?;
    // Before the first read: what is written after it wakes us.
    notify.watch(&log, WatchFlags::MODIFY).map_err(failed)?;
    let mut lines = Lines::open(&log, from, marks).map_err(failed)?;
    loop {
        if let ControlFlow::Break(seen) = lines.read_new(&mut read).map_err(failed)? {
            return Ok(seen);
        }
        // Lines from before its end wake this first, and are read.
        wait(&[notify.as_fd()], Some(process.child()), until, cancel)?;
        // One that never stops writing never lets the wait come to its end.
        if until <= Instant::now() {
            return Err(NotUp::Late);
        }
        notify.drain();
    }
}

/// A longer line is no message of a backend; it is read in pieces.
const LINE_MAX: usize = 64 << 10;
/// The number of bytes that are kept after they were read, for another reader.
const KEPT: u64 = 1 << 20;
/// A log of this length is emptied once all of it was read: a file that reaches the limit of its
/// size ends the backend that writes to it, and what was freed counts.
const EMPTIED: u64 = 64 << 20;

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
        let mut file = OpenOptions::new().read(true).write(true).open(log)?;
        // The lock keeps the log from being emptied, up to a limit.
        flock(&file, FlockOperation::LockShared)?;
        let position = file.seek(SeekFrom::Start(from))?;
        Ok(Self { file, marks, position, pending: Vec::new() })
    }

    /// Reads what is there now, a piece at a time: a log grows as fast as it is read, if its backend
    /// has run wild, so no more than it was long at first.
    fn read_new<T>(
        &mut self,
        read: &mut impl FnMut(&str) -> ControlFlow<T>,
    ) -> io::Result<ControlFlow<T>> {
        let length = self.file.metadata()?.len();
        if length < self.position {
            // It has become too long and was emptied.
            self.position = self.file.seek(SeekFrom::Start(0))?;
            self.pending.clear();
        }
        while self.position < length {
            let wanted = (LINE_MAX - self.pending.len()) as u64;
            let file = Read::by_ref(&mut self.file);
            let count =
                file.take(wanted.min(length - self.position)).read_to_end(&mut self.pending)?;
            if count == 0 {
                break;
            }
            self.position += count as u64;
            let free = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if self.position > KEPT {
                // If the file system cannot free it, the space is used until the log is emptied.
                fallocate(&self.file, free, 0, self.position - KEPT).ok();
            }
            if let ControlFlow::Break(seen) = self.take_lines(read) {
                return Ok(ControlFlow::Break(seen));
            }
        }
        if self.position > EMPTIED && self.file.metadata()?.len() == self.position {
            self.file.set_len(0)?;
            self.position = self.file.seek(SeekFrom::Start(0))?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn take_lines<T>(&mut self, read: &mut impl FnMut(&str) -> ControlFlow<T>) -> ControlFlow<T> {
        let mut start = 0;
        if !self.marks.iter().any(|mark| memmem::find(&self.pending, mark.as_bytes()).is_some()) {
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
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    use crate::process::{Launch, ProcessRecords, Reaper};
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
    fn log_without_an_end_of_line_takes_no_more_memory_than_a_line_may() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("x.log");
        let mut text = vec![b'x'; 5 << 20];
        text.extend_from_slice(b"\nlast\n");
        fs::write(&log, text).unwrap();
        let mut lines = Lines::open(&log, 0, &[""]).unwrap();
        assert_eq!(read(&mut lines).pop().as_deref(), Some("last"));
        assert!(lines.pending.capacity() <= 2 * LINE_MAX, "{}", lines.pending.capacity());
    }

    #[test]
    fn log_that_is_gone_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let records = ProcessRecords::open(dir.path()).unwrap();
        let process = records.start(&Launch::new("/bin/true"), "test", None).unwrap();
        fs::remove_file(process.log_path()).unwrap();
        let (until, cancel) = (Instant::now() + Duration::from_secs(60), Cancel::new().unwrap());
        let followed = follow(&process, 0, &[], until, &cancel, |_| ControlFlow::Break(()));
        let expected = format!("cannot read its log {}: ", process.log_path().display());
        assert!(followed.unwrap_err().to_string().starts_with(&expected));
        process.end(Duration::from_secs(5));
    }

    #[test]
    fn a_flood_does_not_wash_away_what_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (spawner, _deaths) = Spawner::new();
        let _reaper = Reaper::start(&spawner, dir.path()).unwrap();
        let records = ProcessRecords::open(dir.path()).unwrap();
        // Longer than the logs are left alone, at the pace of the writer.
        let flood =
            "for i in $(seq 40); do yes \"$(printf %4000s)\" | head -n 500; echo drawn; done";
        let launch = Launch::new("/bin/sh").args(["-c", flood]);
        let process = records.start(&launch, "test", None).unwrap();
        let (until, cancel) = (Instant::now() + Duration::from_secs(120), Cancel::new().unwrap());
        let mut seen = 0;
        let read = |line: &str| {
            seen += usize::from(line == "drawn");
            if seen == 40 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        follow(&process, 0, &["drawn"], until, &cancel, read).unwrap();
        assert_eq!(seen, 40);
        assert!(fs::metadata(process.log_path()).unwrap().blocks() * 512 < 4 << 20);
    }
}
