//! Commands, and how they start: an own session, no terminal, a cleaned environment.

use std::ffi::{CString, OsStr, OsString};
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::orders::{self, Orders, ResourceLimits};
use super::{Child, Error, is_plain, reap_killed};

/// The variables that the service manager, or the command that starts us, sets for us alone; a
/// child that used them would speak in our name.
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
    /// The working directory; none: the root.
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

    /// Limits its resources. The call that waits for it limits its time.
    pub fn limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the working directory. It runs at the root if that does not exist.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// The files that it makes are ours, and as private as those that we make ourselves.
    pub fn makes_our_files(mut self) -> Self {
        self.makes_our_files = true;
        self
    }

    /// Starts it; the program is there when this returns. Its input is empty, and its output and errors
    /// go nowhere unless they are given a place. With a `record` it outlives us, and has appended its
    /// line of `/proc/self/stat` to that file before it became the program: if we are killed at this
    /// instant, the record is there all the same. Without one it is killed when the thread that starts
    /// it ends.
    pub(super) fn start(
        &self,
        stdout: Option<OwnedFd>,
        stderr: Option<OwnedFd>,
        record: Option<&Path>,
    ) -> Result<Child, Error> {
        reap_killed();
        let start = || -> io::Result<Child> {
            let orders = self.orders(record)?;
            let mut command = self.command();
            let place = |to: Option<OwnedFd>| to.map_or_else(Stdio::null, Stdio::from);
            command.stdin(Stdio::null()).stdout(place(stdout)).stderr(place(stderr));
            // SAFETY: the orders allocate nothing and lock nothing. They make system calls, and leave
            // signals as they would be in a new program.
            unsafe { command.pre_exec(move || orders.carry_out()) };
            let mut started = command.spawn()?;
            Child::own(&started).inspect_err(|_| {
                // One that cannot be watched must not stay.
                started.kill().and_then(|()| started.wait()).ok();
            })
        };
        start().map_err(|source| Error::Start { program: self.program.clone(), source })
    }

    /// Starts a helper of ours, which has this socket as its output. It is killed when the thread that
    /// starts it ends.
    pub(crate) fn start_helper(&self, socket: OwnedFd) -> Result<Child, Error> {
        self.start(Some(socket), None, None)
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

    /// Its environment is ours and what it is given, without what is for us alone.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts children")]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        for own in OURS {
            command.env_remove(own);
        }
        command
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
    use std::fs::File;
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};

    /// Returns all that the program writes to stdout and stderr.
    fn said(launch: Launch) -> String {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let errors = theirs.try_clone().unwrap();
        let child = launch.start(Some(theirs), Some(errors), None).unwrap();
        let mut said = String::new();
        File::from(ours).read_to_string(&mut said).unwrap();
        child.wait(None, None);
        child.ended();
        said
    }

    fn shell(script: &str) -> Launch {
        Launch::new("/bin/sh").args(["-c", script])
    }

    #[test]
    fn environment_is_ours_but_for_what_is_given_last_and_what_is_for_us_alone() {
        let launch = shell("export -p").env("A", "1").env("A", "a b").env("B", "").env("PWD", "/");
        let said = said(launch.env(OURS[0], "x"));
        assert!(said.contains("A='a b'\n") && said.contains("B=''\n"), "{said}");
        assert!(said.contains(" PATH=") && !said.contains(OURS[0]), "{said}");
    }

    #[test]
    fn no_signal_is_blocked_handled_or_ignored() {
        let mask = |status: &str, name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        // SAFETY: this signal is ignored by default; nothing else here uses it.
        unsafe { libc::signal(libc::SIGWINCH, libc::SIG_IGN) };
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let ignored = 1 << (libc::SIGWINCH - 1) | 1 << (libc::SIGPIPE - 1);
        assert_eq!(mask(&own, "SigIgn:") & ignored, ignored);
        let said = said(Launch::new("cat").args(["/proc/self/status"]));
        let masks = ["SigIgn:", "SigBlk:", "SigCgt:"].map(|name| mask(&said, name));
        // 32 and 33 are the C library's.
        assert_eq!(masks.map(|mask| mask & !(0b11 << 31)), [0, 0, 0]);
    }

    /// As glibc has it.
    #[cfg(target_env = "gnu")]
    #[test]
    fn a_script_that_names_no_interpreter_is_one_of_the_shell() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        // By another process: one that a test beside us starts could hold it open for writing.
        said(shell("echo 'echo $0 $*' >$SCRIPT; chmod +x $SCRIPT").env("SCRIPT", &script));
        let words = ["word"; 2000];
        let expected = format!("{} {}\n", script.display(), words.join(" "));
        assert_eq!(said(Launch::new(&script).args(words)), expected);
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
