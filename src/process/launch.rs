//! What to start, and how it is started: an own session, no terminal, a cleaned environment.

use std::ffi::{CString, OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::orders::{self, Orders, ResourceLimits};
use super::spawn::{Words, spawn};
use super::{Child, Error, is_plain};

/// What the service manager, or the command that starts us, gives us for ourselves; a child that
/// used it would speak in our name.
const OURS: [&str; 7] = [
    "MURALD_DETACHED",
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
    limits: ResourceLimits,
    makes_our_files: bool,
    /// Where it runs, if not at the root.
    directory: Option<PathBuf>,
}

impl Launch {
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            limits: ResourceLimits::default(),
            makes_our_files: false,
            directory: None,
        }
    }

    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The last of a name counts.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.env.retain(|(given, _)| *given != name);
        self.env.push((name, value.into()));
        self
    }

    /// For messages and logs.
    pub fn shown(&self) -> String {
        show_command(&self.program, &self.args)
    }

    /// What it may use at most. How long it may run is said where it is waited for.
    pub fn limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Where it is to run. Where that is not there, it runs at the root.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// The files that it makes are ours, and as private as those that we make ourselves.
    pub fn makes_our_files(mut self) -> Self {
        self.makes_our_files = true;
        self
    }

    /// Starts it; the program is there when this returns. Its input is empty, and without `stdout` its
    /// output goes nowhere. With a `record` it outlives us, and has appended its line of
    /// `/proc/self/stat` to that file before it became the program: if we are killed at this instant,
    /// the record is there all the same. Without one it is killed when the thread that starts it ends.
    pub(super) fn start(
        &self,
        stdout: Option<BorrowedFd<'_>>,
        stderr: BorrowedFd<'_>,
        record: Option<&Path>,
    ) -> Result<Child, Error> {
        let started = self.orders(record).and_then(|orders| {
            let words = Words::new(&self.program, &self.args, self.environment())?;
            let null = File::options().read(true).write(true).open("/dev/null")?;
            let streams = [null.as_fd(), stdout.unwrap_or(null.as_fd()), stderr];
            spawn(&orders, &words, streams)
        });
        let started = started.map(|(pid, pidfd)| Child::own(pid, pidfd));
        started.map_err(|source| Error::Start { program: self.program.clone(), source })
    }

    fn orders(&self, record: Option<&Path>) -> io::Result<Orders> {
        let word = |path: &Path| CString::new(path.as_os_str().as_bytes());
        Ok(Orders {
            bound_to: record.is_none().then(rustix::process::getpid),
            record: record.map(word).transpose()?,
            directory: self.directory.as_deref().map(word).transpose()?,
            limits: self.limits,
            umask: if self.makes_our_files { None } else { orders::inherited_umask() },
        })
    }

    /// Ours and what it is given, without what is for us alone.
    fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let is_given = |name: &OsStr| self.env.iter().any(|(given, _)| given == name);
        let ours = std::env::vars_os().filter(move |(name, _)| !is_given(name));
        let all = ours.chain(self.env.iter().cloned());
        all.filter(|(name, _)| !OURS.iter().any(|own| name == own))
    }
}

/// The executable of this process: under its name, where that is still this one, so that people find
/// it in their lists of processes.
pub(crate) fn own_program() -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let own = PathBuf::from("/proc/self/exe");
    let file = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    std::env::current_exe().ok().filter(|named| file(named) == file(&own)).unwrap_or(own)
}

/// A command line for people: words with anything unusual are quoted.
pub(crate) fn show_command(program: &Path, args: &[OsString]) -> String {
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
    fn environment_is_ours_but_for_what_is_given_last_and_what_is_for_us_alone() {
        let launch = Launch::new("feh").env("A", "1").env("HOME", "/h").env("A", "2");
        let given: Vec<_> = launch.env(OURS[0], "x").environment().collect();
        let values = |name: &str| -> Vec<&str> {
            let of = given.iter().filter(|(of, _)| of == name);
            of.filter_map(|(_, value)| value.to_str()).collect()
        };
        assert_eq!((values("A"), values("HOME")), (vec!["2"], vec!["/h"]));
        assert_eq!((values(OURS[0]).len(), values("PATH").len()), (0, 1));
    }

    #[test]
    fn unusual_words_are_quoted() {
        let args = ["-i".into(), "a b\n#.png".into(), "".into()];
        assert_eq!(
            show_command(Path::new("/usr/bin/swaybg"), &args),
            r##"swaybg -i "a b\n#.png" """##
        );
    }
}
