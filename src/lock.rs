//! Ensures that only one daemon runs at a time: locks held while the process runs, and the
//! listening socket.
//!
//! The locks are the kernel's (`flock`), so they are released whenever the process ends. Lock files
//! are never removed, as two daemons could then lock two files of the same name. A lock file
//! contains the holder's process ID and socket, for users who cannot reach that daemon.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, fchmod, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

use crate::paths::make_directories;
use crate::sys::{connect, is_listened_on, is_queue_full};

/// Number of connections that may wait to be accepted; the kernel's limit may be lower.
const BACKLOG: i32 = 1024;
/// How long to wait for a process that is shutting down or was killed.
const ENDING: Duration = Duration::from_secs(2);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);
/// Maximum size of a lock file in bytes: a process ID and the path of a socket.
const HOLDER_MAX: u64 = 4096;

/// The lock; released when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock beside a file (the socket or the database); creates the directory if it is
    /// missing. `socket` is where the new holder can be reached.
    pub(crate) fn take(beside: &Path, socket: Option<&Path>) -> Result<Self, Error> {
        let path = path(beside);
        let failed = |operation| {
            let path = path.clone();
            move |source| Error::Io {
                operation,
                path,
                source,
            }
        };
        if let Some(directory) = path.parent() {
            make_directories(directory).map_err(failed("make"))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(failed("open"))?;
        if !lock(&file).map_err(failed("lock"))? {
            return Err(Error::Running {
                path,
                holder: Holder::find(beside),
            });
        }
        let us = Holder {
            pid: std::process::id(),
            socket: socket.map(Path::to_owned),
        };
        // The file is only informative: a full disk must not stop the daemon.
        us.note(&file).ok();
        Ok(Self { _file: file })
    }

    /// Locks a directory itself, without a file. The kernel locks the inode, so the path does not
    /// matter.
    pub(crate) fn take_directory(path: &Path) -> Result<Self, Error> {
        let failed = |operation| {
            move |source| Error::Io {
                operation,
                path: path.to_owned(),
                source,
            }
        };
        let directory = File::open(path).map_err(failed("open"))?;
        if lock(&directory).map_err(failed("lock"))? {
            Ok(Self { _file: directory })
        } else {
            Err(Error::InUse {
                path: path.to_owned(),
            })
        }
    }
}

/// Locks a file; returns `false` if another process keeps the lock.
fn lock(file: &File) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if began.elapsed() >= ENDING => return Ok(false),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
}

fn path(beside: &Path) -> PathBuf {
    beside.with_extension("lock")
}

/// The process that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    /// The socket on which it listens; `None` while it only repairs the library.
    pub(crate) socket: Option<PathBuf>,
}

impl Holder {
    /// Returns the current holder of the lock beside a file. Does not try to lock it, as that might
    /// make a starting daemon fail.
    pub(crate) fn find(beside: &Path) -> Option<Self> {
        let path = path(beside);
        let noted = Self::noted(&path)?;
        // The process may have ended, and its ID may have been reused.
        let has_open = |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|at| at == path);
        let mut open = fs::read_dir(format!("/proc/{}/fd", noted.pid))
            .ok()?
            .flatten();
        open.any(has_open).then_some(noted)
    }

    /// Returns the process that wrote the lock file last.
    fn noted(lock: &Path) -> Option<Self> {
        let mut text = Vec::new();
        File::open(lock)
            .ok()?
            .take(HOLDER_MAX)
            .read_to_end(&mut text)
            .ok()?;
        let mut lines = text.splitn(2, |&byte| byte == b'\n');
        let pid = str::from_utf8(lines.next()?).ok()?.parse().ok()?;
        let socket = lines.next()?.strip_suffix(b"\n");
        let socket = socket.map(|bytes| PathBuf::from(OsStr::from_bytes(bytes)));
        Some(Self { pid, socket })
    }

    /// Whether a process listens on its socket.
    pub(crate) fn answers(&self) -> bool {
        self.socket
            .as_ref()
            .is_some_and(|socket| is_listened_on(socket))
    }

    /// Whether it listens but does not accept connections, so that no request reaches it.
    pub(crate) fn is_stuck(&self) -> bool {
        let socket = self.socket.as_ref();
        socket.is_some_and(|socket| connect(socket).is_err_and(|error| is_queue_full(&error)))
    }

    fn note(&self, mut file: &File) -> io::Result<()> {
        let mut text = format!("{}\n", self.pid).into_bytes();
        if let Some(socket) = &self.socket {
            text.extend([socket.as_os_str().as_bytes(), b"\n"].concat());
        }
        file.set_len(0)?;
        file.write_all(&text)
    }
}

/// The listening socket; dropping it removes the file, unless another socket has replaced it.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Listens on `path` and replaces a stale socket. Fails if a process listens there, or if the
    /// file is not a socket. The caller holds the [`Lock`].
    ///
    /// The socket has mode 0600 from its creation, whatever the umask is, and replaces a stale one
    /// atomically: it is bound under another name and renamed.
    pub(crate) fn bind(path: &Path) -> Result<(UnixListener, Self), Error> {
        let failed = |operation| {
            move |source| Error::Io {
                operation,
                path: path.to_owned(),
                source,
            }
        };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("check")(error)),
            Ok(_) if is_listened_on(path) => {
                return Err(Error::Running {
                    path: path.to_owned(),
                    holder: None,
                });
            }
            Ok(_) if is_socket(path) => {}
            Ok(_) => {
                return Err(Error::NoSocket {
                    path: path.to_owned(),
                });
            }
        }
        // The name is short, as the path of a socket has at most 107 bytes.
        let new = path.with_file_name(format!(".{}", std::process::id()));
        // A killed process with the same ID may have left one.
        if is_socket(&new) {
            fs::remove_file(&new).ok();
        }
        let listener = listen(&new).map_err(failed("listen on"))?;
        let placed = fs::symlink_metadata(&new).map(|made| made.ino());
        let placed = placed.and_then(|inode| fs::rename(&new, path).map(|()| inode));
        let inode = placed.map_err(|error| {
            fs::remove_file(&new).ok();
            failed("create")(error)
        })?;
        Ok((
            listener,
            Self {
                path: path.to_owned(),
                inode,
            },
        ))
    }

    /// Whether the path still leads to this socket.
    pub(crate) fn is_in_place(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another daemon may have replaced it.
        if self.is_in_place() {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// The kernel creates the file with the mode that the socket has when it is bound.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    fchmod(&socket, 0o600.into())?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Another daemon holds the lock or listens on the socket.
    #[error("already running{}: {} is in use", named(holder), path.display())]
    Running {
        path: PathBuf,
        holder: Option<Holder>,
    },
    /// Another daemon has locked this directory.
    #[error("another daemon uses the library in {}", path.display())]
    InUse { path: PathBuf },
    /// The socket's path leads to another kind of file.
    #[error("{} exists and is not a socket: move it away", path.display())]
    NoSocket { path: PathBuf },
    #[error("cannot {operation} {}", path.display())]
    Io {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

fn named(holder: &Option<Holder>) -> String {
    let holder = holder.as_ref();
    holder.map_or_else(String::new, |one| format!(" (process {})", one.pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_has_a_single_holder() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("run/murald.sock");
        let first = Lock::take(&socket, Some(&socket)).unwrap();
        let us = Holder {
            pid: std::process::id(),
            socket: Some(socket.clone()),
        };
        assert_eq!(Holder::find(&socket), Some(us.clone()));
        let refused = Lock::take(&socket, None).unwrap_err();
        assert!(matches!(refused, Error::Running { holder: Some(who), .. } if who == us));
        drop(first);
        assert_eq!(Holder::find(&socket), None);
        let _mends = Lock::take(&socket, None).unwrap();
        assert_eq!(Holder::find(&socket).unwrap().socket, None);
    }

    #[test]
    fn directory_is_locked_whatever_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let (images, link) = (
            directory.path().join("images"),
            directory.path().join("link"),
        );
        fs::create_dir(&images).unwrap();
        std::os::unix::fs::symlink(&images, &link).unwrap();
        let first = Lock::take_directory(&images).unwrap();
        assert!(matches!(Lock::take_directory(&link), Err(Error::InUse { path }) if path == link));
        drop(first);
        Lock::take_directory(&link).unwrap();
        assert_eq!(fs::read_dir(&images).unwrap().count(), 0);
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the module `process` is not below this one"
    )]
    fn lock_of_a_killed_process_is_awaited() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("murald.sock");
        let script = "exec 9>>\"$0\"; flock 9; echo $$ >\"$0\"; echo; exec sleep 0.1 >&-";
        let mut dying = std::process::Command::new("sh");
        dying
            .args(["-c", script])
            .arg(path(&socket))
            .stdout(std::process::Stdio::piped());
        let mut dying = dying.spawn().unwrap();
        // Once its output ends, the process holds the lock.
        std::io::read_to_string(dying.stdout.take().unwrap()).unwrap();
        assert_eq!(Holder::find(&socket).map(|who| who.pid), Some(dying.id()));
        Lock::take(&socket, None).unwrap();
        dying.wait().unwrap();
    }

    #[test]
    fn stale_socket_is_replaced_but_not_a_live_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("murald.sock");
        let (listener, socket) = Socket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(Socket::bind(&path), Err(Error::Running { .. })));
        assert!(socket.is_in_place());
        drop(listener);
        let (_listener, successor) = Socket::bind(&path).unwrap();
        assert!(!socket.is_in_place() && successor.is_in_place());
        drop(socket);
        assert!(path.exists(), "the successor's socket stays");
        drop(successor);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn socket_is_private_from_its_creation() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let _listener = listen(&path).unwrap();
        // The umask can only remove bits.
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o177, 0);
    }

    #[test]
    fn file_is_not_replaced_by_a_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("murald.sock");
        fs::write(&path, "letters").unwrap();
        assert!(matches!(Socket::bind(&path), Err(Error::NoSocket { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"letters");
    }
}
