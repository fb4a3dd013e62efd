//! A decoding process as the daemon sees it: starts it, sends it jobs, and kills it when dropped.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use serde::de::DeserializeOwned;

use super::protocol::{Error, REPLY_MAX, Reply};
use crate::process::{Child, Ended, Launch, own_program};
use crate::sys::{Cancel, lock, poll_until};

/// Time without a reply or progress after which the job is assumed to wait for a dead disk.
const SILENT_FOR: Duration = Duration::from_secs(30);
/// Time within which a process exits after it has closed its socket.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Maximum number of processes that cannot be killed; then no other is started.
const UNKILLABLE_MAX: usize = 8;
/// Decoding processes that cannot be killed, as they wait for a disk.
static UNKILLABLE: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Signals that others use to end a process.
const ASKED_TO_END: [Signal; 5] = [
    Signal::KILL,
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
];

/// How decoding processes are started.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The executable; `None` means this process's own.
    pub program: Option<PathBuf>,
    /// The directories below which they may write.
    pub writable: Vec<PathBuf>,
    /// Maximum number of processes for imports; clients have two more.
    pub imports: usize,
    /// The time after which a silent process is killed, if a test has set it.
    pub silent_for: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Worker {
    stream: UnixStream,
    /// `None` in unit tests.
    process: Option<Child>,
    silent_for: Duration,
}

impl Worker {
    /// The process belongs to the calling thread: when that ends, the kernel kills it.
    pub(super) fn start(settings: &Settings) -> io::Result<Self> {
        let mut unkillable = lock(&UNKILLABLE);
        unkillable.retain(Child::is_running);
        if unkillable.len() >= UNKILLABLE_MAX {
            return Err(io::Error::other(
                "too many decoding processes wait for disks that do not answer",
            ));
        }
        drop(unkillable);
        let (stream, theirs) = UnixStream::pair()?;
        Ok(Self {
            process: start(settings, theirs)?,
            stream,
            silent_for: settings.silent_for.unwrap_or(SILENT_FOR),
        })
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.as_ref().is_none_or(Child::is_running)
    }

    /// Sends a job and waits for its reply.
    pub(super) fn ask<T: DeserializeOwned>(
        &mut self,
        job: &[u8],
        cancels: &[&Cancel],
    ) -> Result<Reply<T>, Error> {
        if self.stream.write_all(job).is_err() {
            return Err(self.why_it_ended());
        }
        let mut said = Vec::new();
        let mut until = Instant::now() + self.silent_for;
        loop {
            let waited = cancels.iter().map(AsFd::as_fd).chain([self.stream.as_fd()]);
            let mut waited: Vec<_> = waited
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            let is_ready = poll_until(&mut waited, Some(until)).map_err(no_process)?;
            if cancels.iter().any(|cancel| cancel.is_cancelled()) {
                return Err(Error::Stopped);
            }
            if !is_ready {
                return Err(Error::Silent);
            }
            let mut buffer = [0; 4 << 10];
            let count = self.stream.read(&mut buffer).unwrap_or(0);
            if count == 0 {
                return Err(self.why_it_ended());
            }
            said.extend_from_slice(&buffer[..count]);
            while let Some(end) = said.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = said.drain(..=end).collect();
                match serde_json::from_slice(&line) {
                    Ok(Reply::Progress) => until = Instant::now() + self.silent_for,
                    Ok(reply) => return Ok(reply),
                    Err(error) => {
                        return Err(Error::Broke(format!("its reply is invalid: {error}")));
                    }
                }
            }
            if said.len() > REPLY_MAX {
                return Err(Error::Broke("its reply is too long".to_owned()));
            }
        }
    }

    /// Returns the reason why the process has closed its socket.
    fn why_it_ended(&self) -> Error {
        let Some(process) = &self.process else {
            return Error::Broke("a panic".to_owned());
        };
        process.wait(Some(Instant::now() + ENDS_WITHIN), None);
        match process.ended() {
            // A failed allocation aborts the process.
            Some(Ended::Signal(signal)) if signal == Signal::ABORT.as_raw() => Error::Memory,
            Some(Ended::Signal(signal)) if signal == Signal::XCPU.as_raw() => Error::Time,
            // Another process sent the signal; the file is not the cause.
            Some(Ended::Signal(signal)) if ASKED_TO_END.map(Signal::as_raw).contains(&signal) => {
                Error::Killed
            }
            // The process failed to start; a panic exits with another code.
            Some(Ended::Code(code)) if code == 1 => Error::NoProcess(Ended::Code(code).to_string()),
            Some(ended) => Error::Broke(ended.to_string()),
            None => Error::Silent,
        }
    }
}

fn no_process(error: io::Error) -> Error {
    Error::NoProcess(error.to_string())
}

impl Drop for Worker {
    fn drop(&mut self) {
        let Some(process) = self.process.take() else {
            // In unit tests, a thread, which ends after its job.
            self.stream.shutdown(Shutdown::Write).ok();
            io::copy(&mut self.stream, &mut io::sink()).ok();
            return;
        };
        if !process.kill() {
            log::error!(
                "process {} cannot be killed, as it waits for a disk",
                process.identity().pid
            );
            lock(&UNKILLABLE).push(process);
        }
    }
}

/// Starts the process; in unit tests, which have no executable, starts a thread.
fn start(settings: &Settings, theirs: UnixStream) -> io::Result<Option<Child>> {
    if cfg!(test) {
        let daemon = super::reading::Daemon::new(&theirs)?;
        std::thread::spawn(move || super::child::serve(theirs, &daemon));
        return Ok(None);
    }
    let program = settings.program.clone().unwrap_or_else(own_program);
    let launch = Launch::new(program)
        .args([super::child::VERB])
        .args(&settings.writable);
    let started = launch.makes_our_files().start_helper(theirs.into());
    Ok(Some(started.map_err(io::Error::other)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Starts a shell script with the socket as its standard output and input.
    fn worker(script: &str, silent_for: Duration) -> Worker {
        let (stream, theirs) = UnixStream::pair().unwrap();
        let launch = Launch::new("/bin/sh").args(["-c", script]);
        let process = Some(launch.start_helper(theirs.into()).unwrap());
        Worker {
            stream,
            process,
            silent_for,
        }
    }

    fn asked(script: &str) -> Result<u32, Error> {
        asked_within(script, LONG)
    }

    fn asked_within(script: &str, silent_for: Duration) -> Result<u32, Error> {
        match worker(script, silent_for).ask(b"job\n", &[])? {
            Reply::Done(done) => Ok(done),
            Reply::Failed(error) => Err(error),
            Reply::Progress => unreachable!("it waits on"),
        }
    }

    #[test]
    fn each_kind_of_exit_has_its_error() {
        // The job takes longer than a process may be silent, and is never silent for as long.
        let slow = r#"for i in 1 2 3 4 5 6; do echo '"Progress"'; sleep 0.4; done
            echo '{"Done":7}'; sleep 9"#;
        assert_eq!(asked_within(slow, Duration::from_secs(2)), Ok(7));
        assert_eq!(
            asked(r#"echo '{"Failed":"NotFile"}'; sleep 9"#),
            Err(Error::NotFile)
        );
        assert_eq!(
            asked_within("sleep 999", Duration::from_millis(300)),
            Err(Error::Silent)
        );
        assert_eq!(asked("kill -ABRT $$"), Err(Error::Memory));
        assert_eq!(asked("kill -XCPU $$"), Err(Error::Time));
        for signal in ["KILL", "TERM", "HUP"] {
            assert_eq!(
                asked(&format!("kill -{signal} $$")),
                Err(Error::Killed),
                "{signal}"
            );
        }
        assert!(matches!(asked("exit 1"), Err(Error::NoProcess(_))));
        assert_eq!(asked("exit 3"), Err(Error::Broke("exit code 3".to_owned())));
        for odd in ["echo '{}'; sleep 9", "head -c 70000 /dev/zero; sleep 9"] {
            assert!(matches!(asked(odd), Err(Error::Broke(_))), "{odd}");
        }
    }

    #[test]
    fn cancelled_job_ends_its_process() {
        let cancel = Cancel::new().unwrap();
        let mut worker = worker("sleep 999", LONG);
        let process = worker.process.clone().unwrap();
        cancel.cancel();
        assert!(matches!(
            worker.ask::<()>(b"job\n", &[&cancel]),
            Err(Error::Stopped)
        ));
        drop(worker);
        assert!(!process.is_running());
    }
}
