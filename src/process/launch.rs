//! What to start, and how it is started: an own session, no terminal, a cleaned environment.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;

use super::{Error, is_plain};

/// What the service manager gives us for ourselves; a child that used it would speak in our name.
const OURS: [&str; 6] = [
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
];

/// A command line. Arguments are passed as they are, never through a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Over our own environment.
    pub env: Vec<(OsString, OsString)>,
}

impl Launch {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new() }
    }

    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// For messages and logs.
    pub fn shown(&self) -> String {
        show_command(&self.program, &self.args)
    }

    /// Starts it. Without `record` it is killed when the thread that starts it ends. With it, the child itself appends its line of `/proc/self/stat` to that file
    /// before it becomes the program: if we are killed at this instant, the record is there all the
    /// same.
    #[allow(clippy::disallowed_methods)]
    pub(super) fn start(
        &self,
        stdout: Stdio,
        stderr: Stdio,
        record: Option<OwnedFd>,
    ) -> Result<std::process::Child, Error> {
        let mut command = std::process::Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            // We may have been started on a mount that has to go later.
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr);
        for name in OURS {
            command.env_remove(name);
        }
        let prepare = move || -> std::io::Result<()> {
            rustix::process::setsid()?;
            if record.is_none() {
                // Nobody would read its answer any more. Cleared in what it starts itself.
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            }
            if let Some(record) = &record {
                let stat = rustix::fs::open(
                    c"/proc/self/stat",
                    rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
                    rustix::fs::Mode::empty(),
                )?;
                let mut line = [0; 1024];
                let len = rustix::io::read(&stat, &mut line)?;
                rustix::io::write(record.as_fd(), &line[..len])?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only calls that are async-signal-safe are allowed, as other
        // threads may have held locks. The closure makes system calls on its own stack and nothing
        // else: no allocation, no lock, and errors of rustix carry a number only.
        unsafe {
            command.pre_exec(prepare);
        }
        command.spawn().map_err(|source| Error::Start { program: self.program.clone(), source })
    }
}

/// A command line for people: words with anything unusual are quoted.
pub fn show_command(program: &Path, args: &[OsString]) -> String {
    let name = program.file_name().unwrap_or(program.as_os_str());
    let mut shown = String::new();
    for word in std::iter::once(name).chain(args.iter().map(OsString::as_os_str)) {
        if !shown.is_empty() {
            shown.push(' ');
        }
        show_word(&mut shown, word);
    }
    shown
}

fn show_word(shown: &mut String, word: &OsStr) {
    if is_plain(word) {
        shown.push_str(&word.to_string_lossy());
    } else {
        // Debug escapes newlines and invalid bytes; it never fails on a String.
        write!(shown, "{word:?}").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_words_are_quoted() {
        let args = ["-i".into(), "a b\n#.png".into(), "".into()];
        assert_eq!(
            show_command(Path::new("/usr/bin/swaybg"), &args),
            r##"swaybg -i "a b\n#.png" """##
        );
    }
}
