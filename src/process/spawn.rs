//! A new process that carries out its orders and becomes a program, as those of `posix_spawn` do, which
//! knows no orders like ours.
//!
//! It runs in this process's memory, on a stack of its own, while the kernel holds the thread that
//! starts it (`vfork`). So it costs the same however large the daemon is, and whoever starts it knows
//! that the program is there, or why not. Until then it calls the kernel, and of the C library what
//! signals' handlers may call: the other threads go on, and one of them may hold any lock.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::orders::Orders;

/// What the orders and the C library need, many times over.
const STACK: usize = 256 << 10;
const LAST_SIGNAL: c_int = 64;
/// As a shell ends that has not found a program.
const NOT_STARTED: c_int = 127;

/// The words of a program and its environment, as the kernel takes them.
pub(super) struct Words {
    args: Vec<CString>,
    environment: Vec<CString>,
}

impl Words {
    pub(super) fn new(
        program: &Path,
        args: &[OsString],
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let args = [program.as_os_str()].into_iter().chain(args.iter().map(OsString::as_os_str));
        let word = |word: &OsStr| CString::new(word.as_bytes());
        let variable = |(name, value): (OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        Ok(Self {
            args: args.map(word).collect::<Result<_, _>>()?,
            environment: environment.map(variable).collect::<Result<_, _>>()?,
        })
    }
}

/// Starts it with these streams (input, output, errors): it is the program when this returns. One
/// that is only a name is looked for on our own `PATH`.
pub(super) fn spawn(
    orders: &Orders,
    words: &Words,
    streams: [BorrowedFd<'_>; 3],
) -> io::Result<(Pid, OwnedFd)> {
    let (args, environment) = (pointers(&words.args), pointers(&words.environment));
    // The C library copies the words there, for a script that names no interpreter.
    let stack = Stack::new(STACK + size_of_val(args.as_slice()))?;
    let mut task = Task { orders, args, environment, streams, failure: 0 };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let (given, mut pidfd) = (&raw mut task, -1);
    // SAFETY: what it is given lives until it has ended or become the program, as this thread is
    // held until then; the stack is its own. It shares this thread's memory, which holds nothing
    // that its system calls touch but `errno`. No signal's handler runs there.
    let pid = without_signals(|| unsafe {
        libc::clone(carry_out, stack.top(), flags, given.cast(), &raw mut pidfd)
    });
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    // SAFETY: the kernel has just opened it for us.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    if task.failure != 0 {
        // It ends at once.
        waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED).ok();
        return Err(io::Error::from_raw_os_error(task.failure));
    }
    Ok((pid, pidfd))
}

fn pointers(words: &[CString]) -> Vec<*const c_char> {
    words.iter().map(|word| word.as_ptr()).chain([null()]).collect()
}

/// What the new process is given.
struct Task<'a> {
    orders: &'a Orders,
    args: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    streams: [BorrowedFd<'a>; 3],
    /// Why it is no program; 0 if it is.
    failure: c_int,
}

/// In the new process.
extern "C" fn carry_out(task: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes one, and is held while this runs.
    let task = unsafe { &mut *task.cast::<Task<'_>>() };
    let error = match task.prepare() {
        Ok(()) => {
            // SAFETY: both lists end with a null, and their words live as long as the task.
            unsafe {
                libc::execvpe(task.args[0], task.args.as_ptr(), task.environment.as_ptr());
            }
            io::Error::last_os_error()
        }
        Err(error) => error,
    };
    task.failure = error.raw_os_error().unwrap_or(libc::EINVAL);
    NOT_STARTED
}

impl Task<'_> {
    fn prepare(&self) -> io::Result<()> {
        let [input, output, errors] = self.streams;
        dup2_stdin(input)?;
        dup2_stdout(output)?;
        dup2_stderr(errors)?;
        self.orders.carry_out()?;
        take_signals();
        Ok(())
    }
}

/// In the new process: no handler of ours is called any more, and all signals come. What was
/// ignored stays so, but for SIGPIPE, which only Rust programs expect so.
fn take_signals() {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: all of it is numbers, which the kernel reads or writes; the new process has a table of
        // its own. The C library refuses those that it uses itself.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            let is_known = libc::sigaction(signal, null(), &raw mut action) == 0;
            let is_handled = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
            if is_known && (is_handled || signal == libc::SIGPIPE) {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
    // SAFETY: as above.
    unsafe {
        let mut none: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, null_mut());
    }
}

/// While no signal can reach this thread, nor what it starts.
fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: the masks are numbers, which the kernel reads or writes; this thread's is as before
    // afterwards.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let done = run();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        done
    }
}

/// Memory that grows downwards.
struct Stack {
    bottom: *mut c_void,
    size: usize,
}

impl Stack {
    fn new(size: usize) -> io::Result<Self> {
        let size = size.next_multiple_of(4096);
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place that nothing else has.
        let bottom = unsafe {
            mmap_anonymous(null_mut(), size, writable, MapFlags::PRIVATE | MapFlags::NORESERVE)
        }?;
        Ok(Self { bottom, size })
    }

    fn top(&self) -> *mut c_void {
        self.bottom.wrapping_byte_add(self.size)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: what `new` has mapped, once; whoever ran there has ended, or is a program by now.
        unsafe { munmap(self.bottom, self.size) }.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};

    fn said(program: &Path, args: &[&str], environment: &[(&str, &str)]) -> String {
        let null = File::open("/dev/null").unwrap();
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into()));
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let words = Words::new(program, &args, environment).unwrap();
        let streams = [null.as_fd(), theirs.as_fd(), theirs.as_fd()];
        let (_, pidfd) = spawn(&Orders::default(), &words, streams).unwrap();
        drop(theirs);
        let mut said = String::new();
        File::from(ours).read_to_string(&mut said).unwrap();
        waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED).unwrap();
        said
    }

    fn shell(script: &str, environment: &[(&str, &str)]) -> String {
        said(Path::new("/bin/sh"), &["-c", script], environment)
    }

    #[test]
    fn it_has_the_environment_that_it_is_given_and_no_other() {
        let said = shell("export -p", &[("ONE", "a b"), ("TWO", "")]);
        assert!(said.contains("ONE='a b'\n") && said.contains("TWO=''\n"), "{said}");
        assert!(!said.contains("HOME="), "{said}");
    }

    #[test]
    fn no_signal_is_blocked_or_handled_and_only_what_was_is_ignored() {
        let mask = |status: &str, name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let pipe = 1 << (libc::SIGPIPE - 1);
        assert_ne!(mask(&own, "SigIgn:") & pipe, 0, "as in every program of Rust's");
        let said = shell("cat /proc/self/status", &[]);
        assert_eq!(mask(&said, "SigIgn:"), mask(&own, "SigIgn:") & !pipe);
        assert_eq!((mask(&said, "SigBlk:"), mask(&said, "SigCgt:")), (0, 0));
        let now = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_eq!(mask(&now, "SigBlk:"), mask(&own, "SigBlk:"));
    }

    /// As glibc has it.
    #[cfg(target_env = "gnu")]
    #[test]
    fn a_script_that_names_no_interpreter_is_one_of_the_shell() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        // By another process: one that a test beside us starts could hold it open for writing.
        shell(
            "echo 'echo $0 $*' >$SCRIPT; chmod +x $SCRIPT",
            &[("SCRIPT", script.to_str().unwrap()), ("PATH", "/usr/bin:/bin")],
        );
        let words = ["word"; 2000];
        let expected = format!("{} {}\n", script.display(), words.join(" "));
        assert_eq!(said(&script, &words, &[]), expected);
    }
}
