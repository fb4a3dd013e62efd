//! Runs the user's commands, one at a time, and passes on what they write to stderr. Processes that
//! they leave in the background keep running; their stderr is read and discarded, so that a full or
//! closed pipe does not stop them.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::oneshot::{Drain, Keep, OnOutput};
use super::{Ended, Error, Identity, Launch};
use crate::sys::{Cancel, Waker, lock, poll_until};

/// Number of scripts whose background processes are tracked and whose stderr is read; beyond it,
/// the oldest is dropped.
const LEFT_MAX: usize = 16;
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

/// Runs scripts on the thread that owns it.
pub(crate) struct Scripts {
    cancel: Cancel,
    groups: Groups,
    /// The stderr pipes of background processes that scripts have left.
    left: Vec<Drain>,
}

impl Scripts {
    pub(crate) fn new(cancel: Cancel, groups: Groups) -> Self {
        Self {
            cancel,
            groups,
            left: Vec::new(),
        }
    }

    /// Waits until it is woken; returns `false` once cancelled.
    pub(crate) fn wait(&mut self, waker: &Waker) -> bool {
        let woken = self.wait_for(&[waker.as_fd()], None);
        waker.reset();
        woken
    }

    /// Runs a script until it exits, in its own process group and with stdout discarded; passes
    /// stderr to `on_output`. If it exceeds the limit or is cancelled, it is ended with its group.
    pub(crate) fn run(
        &mut self,
        launch: &Launch,
        limit: Duration,
        on_output: OnOutput<'_>,
    ) -> Result<Ended, Error> {
        let until = Instant::now() + limit;
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| Error::io("make a pipe for the errors of", &launch.program, error))?;
        let mut errors = Drain::new(ours, 0, Keep::Head);
        let child = launch.start(None, Some(theirs), None)?;
        self.groups.add(child.identity());
        loop {
            let waited: Vec<_> = [child.as_fd()].into_iter().chain(errors.fd()).collect();
            if !self.wait_for(&waited, Some(until)) {
                child.end(GRACE);
                return Err(if self.cancel.is_cancelled() {
                    Error::Cancelled
                } else {
                    Error::Late {
                        command: launch.shown(),
                        limit,
                    }
                });
            }
            // Checked before stderr is read, so that all output before the end is read.
            let ended = child.ended_alone();
            errors.read_some(on_output);
            if let Some(ended) = ended {
                self.leave(errors);
                return Ok(ended);
            }
        }
    }

    /// Keeps the stderr pipe of a script that has exited, if background processes may still write
    /// to it.
    fn leave(&mut self, errors: Drain) {
        self.left.push(errors);
        // Closed pipes do not count.
        self.left.retain(|left| left.fd().is_some());
        let surplus = self.left.len().saturating_sub(LEFT_MAX);
        self.left.drain(..surplus);
    }

    /// Waits for one of the descriptors; returns `false` if `until` has passed or the wait is
    /// cancelled.
    fn wait_for(&mut self, fds: &[BorrowedFd<'_>], until: Option<Instant>) -> bool {
        loop {
            self.left.retain(|left| left.fd().is_some());
            let left = self.left.iter().filter_map(Drain::fd);
            let all = fds.iter().copied().chain([self.cancel.as_fd()]).chain(left);
            let mut polled: Vec<PollFd<'_>> = all
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            // An error (ENOMEM) is treated like a timeout.
            if !poll_until(&mut polled, until).unwrap_or(false) {
                return false;
            }
            let is_ready = polled[..fds.len()]
                .iter()
                .any(|fd| !fd.revents().is_empty());
            drop(polled);
            self.left
                .iter_mut()
                .for_each(|left| left.read_some(&mut |_| {}));
            if self.cancel.is_cancelled() || is_ready {
                return !self.cancel.is_cancelled();
            }
        }
    }
}

/// The process groups of running scripts and of scripts that have exited, whose background
/// processes may still run. Clones share the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups(Arc<Mutex<VecDeque<Identity>>>);

impl Groups {
    /// Adds a group by its leader.
    fn add(&self, leader: Identity) {
        let mut leaders = lock(&self.0);
        leaders.truncate(LEFT_MAX - 1);
        leaders.push_front(leader);
    }

    /// Whether a process group belongs to a script.
    pub(crate) fn has(&self, group: i32) -> bool {
        let leaders = lock(&self.0);
        // A PID is not reused while a group has this ID, even if its leader has ended.
        let is_it = |leader: &Identity| {
            leader.pid == group && Identity::from_pid(group).is_none_or(|now| now == *leader)
        };
        leaders.iter().any(is_it)
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
        super::super::Identity::from_pid(pid).is_some_and(|identity| identity.is_running())
    }

    #[test]
    fn stderr_and_exit_code_are_reported() {
        let mut said = Vec::new();
        let mut on_output = |bytes: &[u8]| said.extend_from_slice(bytes);
        let ended = scripts()
            .run(&sh("echo out; echo err >&2; exit 3"), LONG, &mut on_output)
            .unwrap();
        assert_eq!((ended, &said[..]), (Ended::Code(3), &b"err\n"[..]));
    }

    #[test]
    fn large_stderr_is_read_to_its_end() {
        let mut length = 0;
        let flood = sh("head -c 3000000 /dev/zero >&2");
        let ended = scripts().run(&flood, LONG, &mut |bytes| length += bytes.len());
        assert_eq!((ended.unwrap(), length), (Ended::Code(0), 3_000_000));
    }

    #[test]
    fn late_script_is_killed_with_its_group() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "trap '' TERM; (trap '' TERM; exec sleep 1000) & echo $! >{}; sleep 1000; sleep 1000",
            file.display()
        );
        let late = scripts().run(&sh(&script), Duration::from_secs(2), &mut |_| {});
        assert!(matches!(late, Err(Error::Late { .. })), "{late:?}");
        let child = super::super::Identity::from_pid(pid(&file)).and_then(Child::hold);
        assert!(child.is_none_or(|child| child.wait(Some(Instant::now() + LONG), None)));
    }

    #[test]
    fn background_processes_of_a_script_keep_running() {
        let dir = tempfile::tempdir().unwrap();
        let (file, go, done) = (
            dir.path().join("pid"),
            dir.path().join("go"),
            dir.path().join("done"),
        );
        let background = format!(
            "until [ -e {go} ]; do sleep 0.02; done; head -c 1000000 /dev/zero >&2 && touch {done}",
            go = go.display(),
            done = done.display()
        );
        let script = format!("sh -c '{background}' & echo $! >{}", file.display());
        let mut scripts = scripts();
        assert_eq!(
            scripts.run(&sh(&script), LONG, &mut |_| {}).unwrap(),
            Ended::Code(0)
        );
        let left = pid(&file);
        assert!(is_running(left));
        // The process still belongs to the group, although its leader has ended.
        let group = crate::sys::process_group(left).unwrap();
        assert!(group != left && scripts.groups.has(group) && !scripts.groups.has(left));
        let ours = i32::try_from(std::process::id()).unwrap();
        let ours = crate::sys::process_group(ours);
        // A container may have started this test in a group from outside.
        assert!(ours.is_none_or(|group| !scripts.groups.has(group)));
        fs::write(&go, "").unwrap();
        // Its stderr is read while the next script runs.
        let next = format!("until [ -e {} ]; do sleep 0.02; done", done.display());
        assert_eq!(
            scripts.run(&sh(&next), LONG, &mut |_| {}).unwrap(),
            Ended::Code(0)
        );
    }

    #[test]
    fn script_without_background_processes_displaces_no_other() {
        let drain = || {
            let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            (Drain::new(ours, 0, Keep::Head), theirs)
        };
        let mut scripts = scripts();
        let (left, theirs): (Vec<_>, Vec<_>) = (0..LEFT_MAX).map(|_| drain()).unzip();
        scripts.left = left;
        let (mut closed, end) = drain();
        drop(end);
        while closed.fd().is_some() {
            closed.read_some(&mut |_| {});
        }
        scripts.leave(closed);
        assert!(
            theirs
                .iter()
                .all(|pipe| rustix::io::write(pipe, b"x").is_ok())
        );
        // One more with an open pipe displaces the oldest.
        scripts.leave(drain().0);
        assert_eq!(scripts.left.len(), LEFT_MAX);
    }

    #[test]
    fn cancelled_script_is_ended() {
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
        let mut on_output = |bytes: &[u8]| said.extend_from_slice(bytes);
        let script = sh("pwd >&2").directory(&home);
        scripts().run(&script, LONG, &mut on_output).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&said).trim_end(),
            home.to_str().unwrap()
        );
        // A missing directory does not prevent the script from running.
        scripts()
            .run(
                &sh("true").directory(Path::new("/nowhere")),
                LONG,
                &mut |_| {},
            )
            .unwrap();
    }
}
