//! One daemon at a time: locks held for life, and the socket that is ours alone.
//!
//! A lock is the kernel's (`flock`), so it goes with the process however that ends; its file is never
//! removed, as two daemons could then hold two files of the same name.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fchmod, flock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};

use crate::paths::make_directories;

/// Clients that wait to be taken in; the kernel's own limit may be lower.
const BACKLOG: i32 = 1024;

/// The lock; released when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock beside a file (the socket, or the database), in a directory that is made where
    /// it is missing.
    pub(crate) fn take(beside: &Path) -> Result<Self, Error> {
        let path = beside.with_extension("lock");
        let failed = |operation| {
            let path = path.clone();
            move |source| Error::Io { operation, path, source }
        };
        if let Some(directory) = path.parent() {
            make_directories(directory).map_err(failed("make"))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(failed("open"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Running { path }),
            Err(error) => Err(failed("lock")(error.into())),
        }
    }
}

/// The listening socket; its file is removed when this is dropped, if it is still ours.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Listens on `path`, in place of a stale socket; a live one, and a file that is no socket, is
    /// refused. The caller holds the [`Lock`].
    ///
    /// The socket has mode 0600 from the instant it exists, whatever the umask is, and is put in place
    /// of a stale one in one step: it is bound in a directory of its own and moved.
    pub(crate) fn bind(path: &Path) -> Result<(UnixListener, Self), Error> {
        let failed =
            |operation| move |source| Error::Io { operation, path: path.to_owned(), source };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("look at")(error)),
            Ok(_) if UnixStream::connect(path).is_ok() => {
                return Err(Error::Running { path: path.to_owned() });
            }
            Ok(metadata) => {
                use std::os::unix::fs::FileTypeExt;
                if !metadata.file_type().is_socket() {
                    return Err(Error::NoSocket { path: path.to_owned() });
                }
            }
        }
        let cradle = Cradle::new(path).map_err(failed("make a directory beside"))?;
        let born = cradle.0.join("s");
        let listener = listen(&born).map_err(failed("listen on"))?;
        let inode = fs::symlink_metadata(&born).map_err(failed("look at"))?.ino();
        fs::rename(&born, path).map_err(failed("put in place"))?;
        Ok((listener, Self { path: path.to_owned(), inode }))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A successor may have put its own there.
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode) {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// The kernel gives the file the mode that the socket has when it is bound.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    fchmod(&socket, 0o600.into())?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// A private directory beside the socket, gone when it is dropped. Its name is short: the path of a
/// socket has 107 bytes at most.
struct Cradle(PathBuf);

impl Cradle {
    fn new(socket: &Path) -> io::Result<Self> {
        let parent = socket.parent().unwrap_or(Path::new("/"));
        let path = parent.join(format!(".{}", std::process::id()));
        fs::remove_dir_all(&path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Cradle {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[derive(Debug)]
pub(crate) enum Error {
    /// Another daemon holds the lock, or answers on the socket.
    Running {
        path: PathBuf,
    },
    /// Something else lies where the socket should be.
    NoSocket {
        path: PathBuf,
    },
    Io {
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { path } => {
                write!(f, "a daemon is running already: it holds {}", path.display())
            }
            Self::NoSocket { path } => {
                write!(f, "{} is no socket and is left alone: move it away", path.display())
            }
            Self::Io { operation, path, .. } => write!(f, "cannot {operation} {}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Running { .. } | Self::NoSocket { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_holds_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("run/murald.sock");
        let first = Lock::take(&socket).unwrap();
        assert!(matches!(Lock::take(&socket), Err(Error::Running { .. })));
        drop(first);
        Lock::take(&socket).unwrap();
    }

    #[test]
    fn stale_sockets_are_replaced_and_live_ones_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("murald.sock");
        let (listener, socket) = Socket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(Socket::bind(&path), Err(Error::Running { .. })));
        drop(listener);
        let (_listener, successor) = Socket::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists(), "the successor's socket stays");
        drop(successor);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_socket_is_its_owner_s_alone_from_the_first_instant() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let _listener = listen(&path).unwrap();
        // A umask takes bits away, and never adds any.
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o177, 0);
    }

    #[test]
    fn a_file_is_never_taken_for_a_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("murald.sock");
        fs::write(&path, "letters").unwrap();
        assert!(matches!(Socket::bind(&path), Err(Error::NoSocket { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"letters");
    }
}
