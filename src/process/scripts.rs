//! Commands of the user's, one at a time: their errors are told as they come, and what they leave
//! running in the background stays, its errors being read and dropped so that nothing of it ends of
//! them.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{Ended, Error, Groups, Launch};
use crate::sys::{Cancel, Waker, poll_until};

/// Background programs whose errors are still read. Of one more, the oldest is on its own.
const LEFT_MAX: usize = 16;
/// The bytes read from one at once: a flood must not keep us from the others.
const READ: usize = 16 << 10;
/// The bytes that a pipe holds.
const PIPE: usize = 64 << 10;
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

/// Runs them, on the thread that owns it.
pub(crate) struct Scripts {
    cancel: Cancel,
    groups: Groups,
    /// The errors of what ended ones have left running.
    left: Vec<File>,
}

impl Scripts {
    pub(crate) fn new(cancel: Cancel, groups: Groups) -> Self {
        Self { cancel, groups, left: Vec::new() }
    }

    /// Waits until somebody wakes it; `false` once cancelled.
    pub(crate) fn wait(&mut self, waker: &Waker) -> bool {
        let woken = self.wait_for(&[waker.as_fd()], None);
        waker.reset();
        woken
    }

    /// Runs one to its end, in a process group of its own and with its output going nowhere; `told`
    /// gets what it writes to stderr. One that is late or cancelled is ended with its group.
    pub(crate) fn run(
        &mut self,
        launch: &Launch,
        limit: Duration,
        told: &mut dyn FnMut(&[u8]),
    ) -> Result<Ended, Error> {
        let until = Instant::now() + limit;
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| Error::io("make a pipe for the errors of", &launch.program, error))?;
        // Only our end: the program's is blocking, as it expects.
        rustix::io::ioctl_fionbio(&ours, true)
            .map_err(|error| Error::io("read the errors of", &launch.program, error))?;
        let child = launch.start(None, theirs, None)?;
        self.groups.add(child.identity());
        let mut errors = Some(File::from(ours));
        loop {
            let mut waited = vec![child.as_fd()];
            waited.extend(errors.as_ref().map(AsFd::as_fd));
            if !self.wait_for(&waited, Some(until)) {
                child.end(GRACE);
                return Err(match self.cancel.is_cancelled() {
                    true => Error::Cancelled,
                    false => Error::Late { command: launch.shown(), limit },
                });
            }
            // Before its errors are read: what it wrote before its end is then among them.
            let ended = child.ended_alone();
            let reads = if ended.is_some() { PIPE / READ } else { 1 };
            for _ in 0..reads {
                errors = errors.take().filter(|file| read_some(file, told) != Some(0));
            }
            if let Some(ended) = ended {
                self.left.extend(errors);
                let surplus = self.left.len().saturating_sub(LEFT_MAX);
                self.left.drain(..surplus);
                return Ok(ended);
            }
        }
    }

    /// Waits for one of the descriptors: `false` when the time is up, or it is cancelled.
    fn wait_for(&mut self, fds: &[BorrowedFd<'_>], until: Option<Instant>) -> bool {
        loop {
            let mut polled: Vec<PollFd<'_>> =
                fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
            polled.extend(self.left.iter().map(|file| PollFd::new(file, PollFlags::IN)));
            polled.push(PollFd::new(&self.cancel, PollFlags::IN));
            // Only a full kernel fails (ENOMEM): as if the time were up.
            if !poll_until(&mut polled, until).unwrap_or(false) {
                return false;
            }
            let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(polled);
            let mut left = ready[fds.len()..].iter();
            self.left.retain(|file| {
                let speaks = left.next().is_some_and(|ready| *ready);
                !speaks || read_some(file, &mut |_| {}) != Some(0)
            });
            if ready.last().is_some_and(|cancelled| *cancelled) {
                return false;
            }
            if ready[..fds.len()].contains(&true) {
                return true;
            }
        }
    }
}

/// Reads what is there now, up to a limit; none where there is nothing yet, 0 where nobody writes any
/// more.
fn read_some(mut file: &File, told: &mut dyn FnMut(&[u8])) -> Option<usize> {
    let mut buffer = [0; READ];
    match file.read(&mut buffer) {
        Ok(length) => {
            told(&buffer[..length]);
            Some(length)
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            None
        }
        Err(_) => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    use crate::process::Child;

    const LONG: Duration = Duration::from_secs(60);

    fn sh(script: &str) -> Launch {
        Launch::new("/bin/sh").args(["-c", script])
    }

    fn scripts() -> Scripts {
        Scripts::new(Cancel::new().unwrap(), Groups::default())
    }

    fn pid(file: &Path) -> i32 {
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }

    fn is_running(pid: i32) -> bool {
        super::super::Identity::of(pid).is_some_and(|identity| identity.is_running())
    }

    #[test]
    fn its_errors_are_told_and_its_end_is() {
        let mut said = Vec::new();
        let mut told = |bytes: &[u8]| said.extend_from_slice(bytes);
        let ended = scripts().run(&sh("echo out; echo err >&2; exit 3"), LONG, &mut told).unwrap();
        assert_eq!((ended, &said[..]), (Ended::Code(3), &b"err\n"[..]));
    }

    #[test]
    fn a_flood_is_told_to_its_end() {
        let mut length = 0;
        let flood = sh("head -c 3000000 /dev/zero >&2");
        let ended = scripts().run(&flood, LONG, &mut |bytes| length += bytes.len());
        assert_eq!((ended.unwrap(), length), (Ended::Code(0), 3_000_000));
    }

    #[test]
    fn nothing_is_left_of_one_that_is_late() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "trap '' TERM; (trap '' TERM; exec sleep 1000) & echo $! >{}; sleep 1000; sleep 1000",
            file.display()
        );
        let late = scripts().run(&sh(&script), Duration::from_secs(2), &mut |_| {});
        assert!(matches!(late, Err(Error::Late { .. })), "{late:?}");
        let child = super::super::Identity::of(pid(&file)).and_then(Child::hold);
        assert!(child.is_none_or(|child| child.wait(Some(Instant::now() + LONG), None)));
    }

    #[test]
    fn background_processes_of_a_script_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (file, go, done) =
            (dir.path().join("pid"), dir.path().join("go"), dir.path().join("done"));
        let background = format!(
            "until [ -e {go} ]; do sleep 0.02; done; head -c 1000000 /dev/zero >&2 && touch {done}",
            go = go.display(),
            done = done.display()
        );
        let script = format!("sh -c '{background}' & echo $! >{}", file.display());
        let mut scripts = scripts();
        assert_eq!(scripts.run(&sh(&script), LONG, &mut |_| {}).unwrap(), Ended::Code(0));
        let left = pid(&file);
        assert!(is_running(left));
        // Its leader has ended, and it is still of its group.
        let pid_of = |pid| rustix::process::Pid::from_raw(pid);
        let group = rustix::process::getpgid(pid_of(left)).unwrap().as_raw_nonzero().get();
        assert!(group != left && scripts.groups.has(group) && !scripts.groups.has(left));
        let ours = rustix::process::getpgrp().as_raw_nonzero().get();
        assert!(!scripts.groups.has(ours));
        fs::write(&go, "").unwrap();
        // Its errors are read while the next one runs.
        let next = format!("until [ -e {} ]; do sleep 0.02; done", done.display());
        assert_eq!(scripts.run(&sh(&next), LONG, &mut |_| {}).unwrap(), Ended::Code(0));
    }

    #[test]
    fn one_that_is_cancelled_is_ended() {
        let mut scripts = scripts();
        scripts.cancel.cancel();
        let cancelled = scripts.run(&sh("sleep 1000"), LONG, &mut |_| {});
        assert!(matches!(cancelled, Err(Error::Cancelled)));
        assert!(!scripts.wait(&Waker::new().unwrap()));
    }

    #[test]
    fn script_runs_in_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(dir.path()).unwrap();
        let mut said = Vec::new();
        let mut told = |bytes: &[u8]| said.extend_from_slice(bytes);
        let script = sh("pwd >&2").directory(&home);
        scripts().run(&script, LONG, &mut told).unwrap();
        assert_eq!(String::from_utf8_lossy(&said).trim_end(), home.to_str().unwrap());
        // A home that is gone is no reason not to run.
        scripts().run(&sh("true").directory(Path::new("/nowhere")), LONG, &mut |_| {}).unwrap();
    }
}
