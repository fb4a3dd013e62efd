//! Describes commands and starts them in their own session, without a terminal, and without
//! murald's own variables.

use std::env::ArgsOs;
use std::ffi::{CString, OsStr, OsString};
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use super::orders::{self, Orders, ResourceLimits};
use super::{Child, Error, is_plain, reap_killed, sandbox};
use crate::memory;

/// Variables that the service manager or the starting command sets for the daemon only; a child
/// that used them would act in its name.
const OURS: [&str; 7] = [
    "MURALD_DETACHED",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
];

/// A command line. Arguments are passed unchanged, without a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Variables that are added to the daemon's environment or replace it.
    pub env: Vec<(OsString, OsString)>,
    pub(super) limits: ResourceLimits,
    makes_our_files: bool,
    /// The working directory; `None` means `/`.
    directory: Option<PathBuf>,
    /// The directories to which it can write; `None` means all.
    writable: Option<Vec<PathBuf>>,
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
            writable: None,
        }
    }

    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable; a later value replaces an earlier one.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.env.retain(|(given, _)| *given != name);
        self.env.push((name, value.into()));
        self
    }

    /// The command line for messages and logs.
    pub fn shown(&self) -> String {
        show_command(&self.program, &self.args)
    }

    /// Limits the process's resources. Its run time is limited by the call that waits for it.
    pub fn limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the working directory; `/` is used if it does not exist.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Makes the files that the process creates as private as murald's own.
    pub fn makes_our_files(mut self) -> Self {
        self.makes_our_files = true;
        self
    }

    /// Restricts the process with Landlock: it can write below these directories only, and use no TCP.
    pub(crate) fn confined(mut self, writable: impl IntoIterator<Item = PathBuf>) -> Self {
        self.writable = Some(writable.into_iter().collect());
        self
    }

    /// Starts the process; the program has been executed when this returns. Its stdin is empty;
    /// stdout and stderr are discarded unless given.
    ///
    /// A process with a `record` outlives the daemon. Before it executes the program, it appends its
    /// line of `/proc/self/stat` to that file, so the record is complete even if the daemon is killed
    /// at that moment. A process without a record is killed when the starting thread ends.
    pub(super) fn start(
        &self,
        stdout: Option<OwnedFd>,
        stderr: Option<OwnedFd>,
        record: Option<&Path>,
    ) -> Result<Child, Error> {
        reap_killed();
        let start = || -> io::Result<Child> {
            let mut orders = self.orders(record)?;
            let mut command = self.command();
            let place = |to: Option<OwnedFd>| to.map_or_else(Stdio::null, Stdio::from);
            command
                .stdin(Stdio::null())
                .stdout(place(stdout))
                .stderr(place(stderr));
            // SAFETY: the orders allocate and lock nothing. They make system calls, and set signals
            // as they would be in a new program.
            unsafe { command.pre_exec(move || orders.carry_out()) };
            let mut started = command.spawn()?;
            Child::own(&started).inspect_err(|_| {
                // A process that cannot be watched must not keep running.
                started.kill().and_then(|()| started.wait()).ok();
            })
        };
        start().map_err(|source| Error::Start {
            program: self.program.clone(),
            source,
        })
    }

    /// Starts a helper process of murald with this socket as stdout. It is killed when the starting
    /// thread ends.
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
            sandbox: self
                .writable
                .as_deref()
                .map(sandbox::for_program)
                .transpose()?,
            umask: if self.makes_our_files {
                None
            } else {
                orders::inherited_umask()
            },
        })
    }

    /// Builds the command, with the daemon's environment except for the variables in `OURS`.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that starts children"
    )]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        for own in OURS {
            command.env_remove(own);
        }
        command
    }
}

/// Runs a helper process of murald, if this process was started with this first argument. `run` gets
/// the others.
pub(crate) fn helper_main<E: Display>(
    verb: &str,
    run: impl FnOnce(ArgsOs) -> Result<(), E>,
) -> Option<ExitCode> {
    let mut words = std::env::args_os();
    if words.nth(1).is_none_or(|word| word != verb) {
        return None;
    }
    memory::restrain();
    Some(match run(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is a log, or the terminal of a user who has started it by hand.
            writeln!(io::stderr(), "murald {verb}: {error}").ok();
            ExitCode::FAILURE
        }
    })
}

/// Returns the path of this executable, by name if the file was not replaced, so that users
/// recognise it in process lists.
pub(crate) fn own_program() -> PathBuf {
    use std::os::unix::fs::MetadataExt;
    let own = PathBuf::from("/proc/self/exe");
    let file = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    std::env::current_exe()
        .ok()
        .filter(|named| file(named) == file(&own))
        .unwrap_or(own)
}

/// Formats a command line for users: words with unusual characters are quoted.
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
        // Debug escapes newlines and invalid bytes; writing to a String cannot fail.
        write!(shown, "{word:?}").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};

    /// Returns everything that the program writes to stdout and stderr.
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
    fn environment_is_inherited_except_for_private_variables() {
        let launch = shell("export -p")
            .env("A", "1")
            .env("A", "a b")
            .env("B", "")
            .env("PWD", "/");
        let said = said(launch.env(OURS[0], "x"));
        assert!(
            said.contains("A='a b'\n") && said.contains("B=''\n"),
            "{said}"
        );
        assert!(said.contains(" PATH=") && !said.contains(OURS[0]), "{said}");
    }

    #[test]
    fn confined_program_writes_only_to_its_directories() {
        let home = tempfile::tempdir().unwrap();
        let (own, other) = (home.path().join("own"), home.path().join("other"));
        std::fs::create_dir(&own).unwrap();
        std::fs::write(&other, "theirs").unwrap();
        let launch = shell(
            "echo a >own/a; echo b >other; echo c >c; ln other own/d; echo e >/dev/null && echo ok",
        )
        .directory(home.path())
        .confined([own.clone()]);
        let said = said(launch);
        assert!(said.ends_with("ok\n"), "{said}");
        assert_eq!(std::fs::read(own.join("a")).unwrap(), b"a\n");
        assert_eq!(std::fs::read(&other).unwrap(), b"theirs");
        assert!(!home.path().join("c").exists() && !own.join("d").exists());
    }

    #[test]
    fn child_has_default_signal_handling() {
        let mask = |status: &str, name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        // SAFETY: this signal is ignored by default; nothing else here uses it.
        unsafe { libc::signal(libc::SIGWINCH, libc::SIG_IGN) };
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let ignored = 1 << (libc::SIGWINCH - 1) | 1 << (libc::SIGPIPE - 1);
        assert_eq!(mask(&own, "SigIgn:") & ignored, ignored);
        let said = said(Launch::new("cat").args(["/proc/self/status"]));
        let masks = ["SigIgn:", "SigBlk:", "SigCgt:"].map(|name| mask(&said, name));
        // Signals 32 and 33 are used by the C library.
        assert_eq!(masks.map(|mask| mask & !(0b11 << 31)), [0, 0, 0]);
    }

    /// Only glibc runs such scripts with the shell.
    #[cfg(target_env = "gnu")]
    #[test]
    fn script_without_an_interpreter_is_run_by_the_shell() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        // Written by another process, as a process that a parallel test starts could inherit the
        // open file.
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
