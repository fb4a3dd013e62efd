//! Runs programs that exit by themselves: waits for them with a time limit, and bounds their
//! output.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

use super::child::wait_readable;
use super::{Ended, Error, Launch, tail};
use crate::sys::Cancel;

/// Maximum number of stdout bytes kept, more than any backend's answer; the rest is discarded.
pub(crate) const STDOUT_MAX: usize = 256 << 10;
const STDERR_MAX: usize = 8 << 10;
/// Number of bytes read in one turn: more than a pipe holds, but limited, so that the time limit is
/// checked even if a program writes endlessly.
const TURN: usize = 1 << 20;

/// Called with a program's output as it arrives.
pub(super) type OnOutput<'a> = &'a mut dyn FnMut(&[u8]);

/// The result of a one-shot.
#[derive(Debug)]
pub(crate) struct Output {
    pub ended: Ended,
    /// The first 256 KiB of stdout.
    pub stdout: Vec<u8>,
    /// The last 8 KiB of stderr.
    pub stderr: String,
}

impl Output {
    pub(crate) fn is_success(&self) -> bool {
        self.ended == Ended::Code(0)
    }

    /// Returns why the program failed: the last line of stderr, or how it ended.
    pub(crate) fn complaint(&self) -> String {
        match self
            .stderr
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
        {
            Some(line) => line.trim().to_owned(),
            None => self.ended.to_string(),
        }
    }
}

/// Runs a program until it exits. Kills it and its group when the time limit is exceeded or the run
/// is cancelled.
pub(crate) fn run(launch: &Launch, limit: Duration, cancels: &[&Cancel]) -> Result<Output, Error> {
    attend(launch, limit, cancels, None)
}

/// Like [`run`], for a program that takes any time but reports progress on stdout, which is passed
/// to `on_output`. It is killed if it writes nothing for `silence`.
pub(crate) fn run_with_progress(
    launch: &Launch,
    silence: Duration,
    cancels: &[&Cancel],
    on_output: OnOutput<'_>,
) -> Result<Output, Error> {
    attend(launch, silence, cancels, Some(on_output))
}

fn attend(
    launch: &Launch,
    limit: Duration,
    cancels: &[&Cancel],
    mut on_output: Option<OnOutput<'_>>,
) -> Result<Output, Error> {
    let mut until = Instant::now() + limit;
    let pipe = |operation| {
        pipe_with(PipeFlags::CLOEXEC)
            .map_err(|source| Error::io(operation, &launch.program, source))
    };
    let (stdout, stdout_end) = pipe("make a pipe for the output of")?;
    let (stderr, stderr_end) = pipe("make a pipe for the errors of")?;
    let child = launch.start(Some(stdout_end), Some(stderr_end), None)?;
    let mut stdout = Drain::new(stdout, STDOUT_MAX, Keep::Head);
    let mut stderr = Drain::new(stderr, STDERR_MAX, Keep::Tail);
    loop {
        let mut waited = vec![child.as_fd()];
        waited.extend(stdout.fd().into_iter().chain(stderr.fd()));
        // Also checked here, for a program that writes without pause.
        let is_late = Instant::now() >= until || !wait_readable(&waited, Some(until), cancels);
        let is_cancelled = cancels.iter().any(|cancel| cancel.is_cancelled());
        if is_late || is_cancelled {
            child.kill();
            let command = launch.shown();
            return Err(if is_cancelled {
                Error::Cancelled
            } else if on_output.is_some() {
                Error::Silent { command, limit }
            } else {
                Error::Late { command, limit }
            });
        }
        // Checked before the pipes are read, so that all output before the end is read. Does not
        // wait for grandchildren that keep the pipes open.
        let ended = child.ended();
        stdout.read_some(&mut |bytes| {
            if let Some(on_output) = &mut on_output {
                on_output(bytes);
                until = Instant::now() + limit;
            }
        });
        stderr.read_some(&mut |_| {});
        if let Some(ended) = ended {
            let stderr = tail(&stderr.kept, STDERR_MAX);
            return Ok(Output {
                ended,
                stdout: stdout.kept,
                stderr,
            });
        }
    }
}

pub(super) enum Keep {
    Head,
    Tail,
}

/// The reading end of a pipe, and the output kept.
pub(super) struct Drain {
    open: Option<File>,
    kept: Vec<u8>,
    max: usize,
    keep: Keep,
}

impl Drain {
    pub(super) fn new(pipe: OwnedFd, max: usize, keep: Keep) -> Self {
        // Only this end is non-blocking; the program expects a blocking one.
        let open = rustix::io::ioctl_fionbio(&pipe, true)
            .is_ok()
            .then(|| File::from(pipe));
        Self {
            open,
            kept: Vec::new(),
            max,
            keep,
        }
    }

    /// `None` once all writers have closed the pipe.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is available now.
    pub(super) fn read_some(&mut self, on_output: OnOutput<'_>) {
        let mut buffer = [0; 16 << 10];
        let mut left = TURN;
        while let Some(pipe) = self.open.as_mut().filter(|_| left > 0) {
            match pipe.read(&mut buffer) {
                Ok(0) => self.open = None,
                Ok(len) => {
                    left = left.saturating_sub(len);
                    on_output(&buffer[..len]);
                    self.take(&buffer[..len]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.open = None,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        match self.keep {
            Keep::Head => {
                let room = self.max.saturating_sub(self.kept.len());
                self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Keep::Tail => {
                self.kept.extend_from_slice(bytes);
                let surplus = self.kept.len().saturating_sub(self.max);
                self.kept.drain(..surplus);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Child, ResourceLimits};

    fn sh(script: &str) -> Launch {
        Launch::new("/bin/sh").args(["-c", script])
    }

    fn check(script: &str, ended: Ended, stdout: &str, stderr: &str) {
        let output = run(&sh(script), Duration::from_secs(10), &[]).unwrap();
        assert_eq!(output.ended, ended, "{script}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), stdout, "{script}");
        assert_eq!(output.stderr, stderr, "{script}");
    }

    #[test]
    fn exit_codes_signals_and_output_are_reported() {
        check("echo out; echo err >&2", Ended::Code(0), "out\n", "err");
        check("exit 3", Ended::Code(3), "", "");
        check("kill -9 $$", Ended::Signal(9), "", "");
        check(
            "read x || echo 'no input'",
            Ended::Code(0),
            "no input\n",
            "",
        );
        check("pwd", Ended::Code(0), "/\n", "");
    }

    #[test]
    fn output_is_bounded() {
        let flood = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end >&2";
        let output = run(&sh(flood), Duration::from_secs(30), &[]).unwrap();
        assert_eq!(output.stdout.len(), STDOUT_MAX);
        assert!(output.stderr.ends_with("end") && output.stderr.len() <= STDERR_MAX);
    }

    #[test]
    fn grandchild_with_open_pipes_is_not_awaited_and_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; echo done", file.display());
        let output = run(&sh(&script), Duration::from_secs(600), &[]).unwrap();
        assert_eq!(output.stdout, b"done\n");
        let pid: i32 = std::fs::read_to_string(file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        if let Some(grandchild) = super::super::Identity::from_pid(pid).and_then(Child::hold) {
            assert!(grandchild.wait(Some(Instant::now() + Duration::from_secs(60)), None));
        }
    }

    #[test]
    fn late_program_is_killed() {
        let check = |script| {
            let late = run(&sh(script), Duration::from_millis(50), &[]);
            assert!(matches!(late, Err(Error::Late { .. })), "{script}");
        };
        check("trap '' TERM; sleep 1000");
        check("exec yes");
        check("exec yes >&2");
    }

    #[test]
    fn program_that_reports_progress_may_run_longer() {
        let silence = Duration::from_secs(2);
        let mut said = Vec::new();
        let slow = "for i in 1 2 3 4 5; do sleep 0.5; echo $i; done";
        let began = Instant::now();
        run_with_progress(&sh(slow), silence, &[], &mut |bytes| {
            said.extend_from_slice(bytes)
        })
        .unwrap();
        assert!(said == b"1\n2\n3\n4\n5\n" && began.elapsed() > silence);
        let silent = run_with_progress(&sh("echo 1; sleep 1000"), silence, &[], &mut |_| {});
        assert!(matches!(silent, Err(Error::Silent { .. })));
    }

    #[test]
    fn cancelled_program_is_killed() {
        let cancel = Cancel::new().unwrap();
        cancel.cancel();
        let cancelled = run(&sh("sleep 1000"), Duration::from_secs(600), &[&cancel]);
        assert!(matches!(cancelled, Err(Error::Cancelled)));
    }

    #[test]
    fn resource_limits_bound_memory_processor_time_and_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("flood");
        let check = |limits: ResourceLimits, script: &str| {
            let launch = sh(script).limits(limits);
            run(&launch, Duration::from_secs(60), &[]).unwrap()
        };
        let none = ResourceLimits::default();

        let cpu = Some(Duration::from_secs(1));
        let spun = check(ResourceLimits { cpu, ..none }, "while :; do :; done");
        assert_eq!(spun.complaint(), "it exceeded its limit of processor time");

        let output = ResourceLimits {
            output: Some(10_000),
            ..none
        };
        let flood = format!("head -c 20000 /dev/zero >'{}'; echo $?", file.display());
        let flooded = check(output, &flood);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 10_000);
        // The program gets an error and is not killed.
        assert_eq!(
            (flooded.ended, &flooded.stdout[..]),
            (Ended::Code(0), &b"1\n"[..])
        );
        assert!(
            flooded.complaint().contains("File too large"),
            "{}",
            flooded.stderr
        );

        let memory = ResourceLimits {
            memory: Some(64 << 20),
            ..none
        };
        let hog = "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c";
        assert_eq!(check(none, hog).stdout, b"150000000\n");
        assert_ne!(check(memory, hog).stdout, b"150000000\n");
    }

    #[test]
    fn missing_program_cannot_be_started() {
        let gone = run(&Launch::new("/nowhere/feh"), Duration::from_secs(1), &[]);
        assert!(matches!(gone, Err(Error::Start { .. })));
    }
}
