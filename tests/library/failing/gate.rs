//! A gate for the file system calls of a daemon: each call waits until the test lets it pass or fail
//! with an error.
//!
//! It uses seccomp's user notifications: they cover the calls of all threads and libraries, in order. A
//! thread of the test answers them.

use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// The argument that names the file of a call.
#[derive(Clone, Copy)]
enum Of {
    Path(usize),
    Descriptor(usize),
}

use Of::{Descriptor, Path as Name};

/// All calls that read, change, flush, lock or map files and directories.
const CALLS: &[(&str, libc::c_long, Of)] = &[
    ("openat", libc::SYS_openat, Name(1)),
    ("mkdirat", libc::SYS_mkdirat, Name(1)),
    ("unlinkat", libc::SYS_unlinkat, Name(1)),
    ("renameat", libc::SYS_renameat, Name(1)),
    ("renameat2", libc::SYS_renameat2, Name(1)),
    ("linkat", libc::SYS_linkat, Name(1)),
    ("fchmodat", libc::SYS_fchmodat, Name(1)),
    ("statx", libc::SYS_statx, Name(1)),
    #[cfg(target_pointer_width = "64")]
    ("newfstatat", libc::SYS_newfstatat, Name(1)),
    #[cfg(target_arch = "x86")]
    ("newfstatat", libc::SYS_fstatat64, Name(1)),
    #[cfg(target_arch = "x86")]
    ("ftruncate", libc::SYS_ftruncate64, Descriptor(0)),
    #[cfg(target_arch = "x86")]
    ("fcntl", libc::SYS_fcntl64, Descriptor(0)),
    #[cfg(target_arch = "x86")]
    ("mmap", libc::SYS_mmap2, Descriptor(4)),
    ("getdents64", libc::SYS_getdents64, Descriptor(0)),
    ("read", libc::SYS_read, Descriptor(0)),
    ("pread64", libc::SYS_pread64, Descriptor(0)),
    ("write", libc::SYS_write, Descriptor(0)),
    ("writev", libc::SYS_writev, Descriptor(0)),
    ("pwrite64", libc::SYS_pwrite64, Descriptor(0)),
    ("ftruncate", libc::SYS_ftruncate, Descriptor(0)),
    ("fallocate", libc::SYS_fallocate, Descriptor(0)),
    ("copy_file_range", libc::SYS_copy_file_range, Descriptor(2)),
    ("sendfile", libc::SYS_sendfile, Descriptor(1)),
    ("fchmod", libc::SYS_fchmod, Descriptor(0)),
    ("fsync", libc::SYS_fsync, Descriptor(0)),
    ("fdatasync", libc::SYS_fdatasync, Descriptor(0)),
    ("fcntl", libc::SYS_fcntl, Descriptor(0)),
    ("flock", libc::SYS_flock, Descriptor(0)),
    // Anonymous mappings have no path, and pass: Rust aborts without memory.
    ("mmap", libc::SYS_mmap, Descriptor(4)),
    #[cfg(target_arch = "x86_64")]
    ("open", libc::SYS_open, Name(0)),
    #[cfg(target_arch = "x86_64")]
    ("mkdir", libc::SYS_mkdir, Name(0)),
    #[cfg(target_arch = "x86_64")]
    ("rmdir", libc::SYS_rmdir, Name(0)),
    #[cfg(target_arch = "x86_64")]
    ("unlink", libc::SYS_unlink, Name(0)),
    #[cfg(target_arch = "x86_64")]
    ("rename", libc::SYS_rename, Name(0)),
    #[cfg(target_arch = "x86_64")]
    ("link", libc::SYS_link, Name(0)),
    #[cfg(target_arch = "x86_64")]
    ("chmod", libc::SYS_chmod, Name(0)),
    #[cfg(target_arch = "x86_64")]
    ("stat", libc::SYS_stat, Name(0)),
    #[cfg(target_arch = "x86_64")]
    ("access", libc::SYS_access, Name(0)),
];

/// A call that waits at the gate.
pub struct Call {
    thread: u32,
    pub name: &'static str,
    of: Of,
    arguments: [u64; 6],
}

impl Call {
    /// The path of its file; `None` if that has no name in the file system.
    pub fn path(&self) -> Option<PathBuf> {
        match self.of {
            Descriptor(at) => {
                let link = format!("/proc/{}/fd/{}", self.thread, self.arguments[at]);
                fs::read_link(link).ok().filter(|path| path.is_absolute())
            }
            Name(at) => {
                let memory = File::open(format!("/proc/{}/mem", self.thread)).ok()?;
                let (mut bytes, mut end) = (vec![0; 4096], 0);
                // The name may be near the end of the last mapped page, so read up to page boundaries
                // only.
                while !bytes[..end].contains(&0) {
                    let address = self.arguments[at] + end as u64;
                    let chunk = (4096 - address % 4096) as usize;
                    let room = bytes.len().min(end + chunk);
                    match memory.read_at(&mut bytes[end..room], address) {
                        Ok(count) if count > 0 => end += count,
                        _ => return None,
                    }
                }
                bytes.truncate(bytes.iter().position(|&byte| byte == 0)?);
                let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
                // Relative to an open directory, or an empty path for the descriptor itself.
                if at == 1 && !path.is_absolute() {
                    let link = format!("/proc/{}/fd/{}", self.thread, self.arguments[0]);
                    let home = fs::read_link(link).ok()?;
                    Some(if path.as_os_str().is_empty() {
                        home
                    } else {
                        home.join(path)
                    })
                } else {
                    Some(path)
                }
            }
        }
    }

    /// Whether the call may create a file.
    pub fn creates(&self) -> bool {
        let flags = match self.name {
            "openat" => self.arguments[2],
            "open" => self.arguments[1],
            _ => return false,
        };
        flags & libc::O_CREAT as u64 != 0
    }

    /// Whether the call flushes a file to the disk.
    pub fn flushes(&self) -> bool {
        matches!(self.name, "fsync" | "fdatasync")
    }

    /// Whether the call locks a file or a part of one.
    pub fn locks(&self) -> bool {
        let commands = [
            libc::F_SETLK,
            libc::F_SETLKW,
            libc::F_OFD_SETLK,
            libc::F_OFD_SETLKW,
        ];
        match self.name {
            "flock" => self.arguments[1] & libc::LOCK_UN as u64 == 0,
            "fcntl" if commands.contains(&(self.arguments[1] as i32)) => {
                // `struct flock` begins with the type of the lock.
                let kind = self.memory(self.arguments[2], 2);
                kind.is_some_and(|kind| kind != (libc::F_UNLCK as i16).to_ne_bytes())
            }
            _ => false,
        }
    }

    /// `count` bytes of the process's memory.
    fn memory(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        let memory = File::open(format!("/proc/{}/mem", self.thread)).ok()?;
        memory
            .read_exact_at(&mut bytes, address)
            .ok()
            .map(|()| bytes)
    }

    /// Whether the call may change the disk.
    pub fn changes(&self) -> bool {
        let reads = [
            "read",
            "pread64",
            "statx",
            "newfstatat",
            "stat",
            "access",
            "getdents64",
        ];
        let opens = ["open", "openat", "fcntl", "flock", "mmap"];
        self.creates() || !reads.contains(&self.name) && !opens.contains(&self.name)
    }
}

/// Decides whether a call fails, and with which error.
type Keeper = Box<dyn FnMut(&Call) -> Option<i32> + Send>;

/// The gate of one daemon.
pub struct Gate {
    keeper: Arc<Mutex<Keeper>>,
}

impl Default for Gate {
    /// An open gate without a process.
    fn default() -> Self {
        Self {
            keeper: Arc::new(Mutex::new(Box::new(|_| None))),
        }
    }
}

impl Gate {
    /// Puts a gate before the process that the command will start, and opens the gate.
    pub fn put_before(command: &mut Command) -> Self {
        let gate = Self::default();
        let kind = SocketType::SEQPACKET;
        let pair =
            rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        let (ours, theirs) = pair;
        let filter = filter();
        // SAFETY: between fork and exec it makes system calls only; what they need is there already.
        unsafe {
            command.pre_exec(move || {
                let listener = close_gate(&filter)?;
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let listeners = [listener.as_fd()];
                control.push(SendAncillaryMessage::ScmRights(&listeners));
                let bytes = [IoSlice::new(b"x")];
                rustix::net::sendmsg(&theirs, &bytes, &mut control, SendFlags::empty())?;
                Ok(())
            });
        }
        let keeper = Arc::clone(&gate.keeper);
        std::thread::spawn(move || {
            // `None` if the program was never started.
            if let Some(listener) = receive(&ours) {
                answer(&listener, &keeper);
            }
        });
        gate
    }

    /// Replaces the keeper.
    pub fn keep(&self, keeper: impl FnMut(&Call) -> Option<i32> + Send + 'static) {
        *lock(&self.keeper) = Box::new(keeper);
    }

    pub fn open(&self) {
        self.keep(|_| None);
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A filter that holds the calls of the table and lets all others pass.
fn filter() -> Vec<libc::sock_filter> {
    let step = |code: u32, jump: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump,
        jf: 0,
        k: value,
    };
    let count = CALLS.len();
    // The data begin with the number of the call.
    let mut program = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    program.extend(CALLS.iter().enumerate().map(|(at, (_, number, _))| {
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            (count - at) as u8,
            *number as u32,
        )
    }));
    program.push(step(
        libc::BPF_RET | libc::BPF_K,
        0,
        libc::SECCOMP_RET_ALLOW,
    ));
    program.push(step(
        libc::BPF_RET | libc::BPF_K,
        0,
        libc::SECCOMP_RET_USER_NOTIF,
    ));
    program
}

/// Installs the filter for this process: its calls wait for the owner of the returned descriptor.
fn close_gate(filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the program outlives the call, which copies it.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let descriptor = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        );
        match descriptor {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor as i32)),
        }
    }
}

fn receive(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

/// Answers calls until the last process behind the gate has ended.
fn answer(listener: &OwnedFd, keeper: &Mutex<Keeper>) {
    loop {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled.unwrap(),
        };
        if !ready[0].revents().contains(PollFlags::IN) {
            return;
        }
        // SAFETY: all of it is numbers; the kernel wants it zeroed.
        let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        let descriptor = listener.as_raw_fd();
        // SAFETY: the kernel writes into `asked`, which has its size.
        if unsafe { libc::ioctl(descriptor, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) } != 0 {
            // The thread was killed in the meantime.
            continue;
        }
        let found = CALLS
            .iter()
            .find(|(_, number, _)| *number == libc::c_long::from(asked.data.nr));
        let call = found.map(|&(name, _, of)| Call {
            thread: asked.pid,
            name,
            of,
            arguments: asked.data.args,
        });
        let error = call.and_then(|call| lock(keeper)(&call));
        let mut answer = libc::seccomp_notif_resp {
            id: asked.id,
            val: 0,
            error: -error.unwrap_or(0),
            flags: match error {
                Some(_) => 0,
                None => libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
            },
        };
        // Fails if the thread was killed in the meantime.
        // SAFETY: the kernel reads `answer`, which has its size.
        unsafe { libc::ioctl(descriptor, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }
}
