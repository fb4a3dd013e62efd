//! The directory of a package, held open by its descriptor, and the reasons for refusing a package.
//!
//! Files are opened beneath the descriptor, so that a link that replaces a part of the path cannot lead
//! out of the package.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::library::Error;

const DIRECTORY: OFlags = OFlags::NOFOLLOW
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// With `NONBLOCK`, as opening a pipe or a device must not block.
const FILE: OFlags = OFlags::NONBLOCK
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// How often an open is tried: `openat2` fails with `EAGAIN` if something is renamed while it resolves
/// `..` in a link.
const TRIES: usize = 64;

#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let descriptor = rustix::fs::open(&path, DIRECTORY, Mode::empty())?;
        Ok(Self { path, descriptor })
    }

    /// The path of the package, with all links resolved.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file. No part of its path may be a link.
    pub(super) fn file(&self, path: &Path) -> io::Result<File> {
        regular(self.step(path, FILE)?)
    }

    /// Opens a regular file, also through links if each of their steps stays in the package.
    pub(super) fn linked_file(&self, path: &Path) -> io::Result<File> {
        regular(self.follow(path, FILE)?)
    }

    /// Whether a path, followed to its end, is something in the package.
    pub(super) fn leads_to(&self, path: &Path) -> bool {
        let kind = |found: OwnedFd| Ok(FileType::from_raw_mode(rustix::fs::fstat(found)?.st_mode));
        let found = self.follow(path, OFlags::PATH | OFlags::CLOEXEC);
        found
            .and_then(kind)
            .is_ok_and(|kind| kind != FileType::Symlink)
    }

    /// Opens a directory of the package; an empty path means the package itself.
    pub(super) fn directory(&self, path: &Path) -> io::Result<Dir> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Ok(Dir::new(self.step(path, DIRECTORY)?)?)
    }

    fn follow(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(&self.descriptor, path, flags, Mode::empty(), resolve);
        let tries = (1..TRIES)
            .map(|_| open())
            .find(|opened| !matches!(opened, Err(Errno::AGAIN)));
        match tries.unwrap_or_else(open) {
            // Linux before 5.6 and some sandboxes have no `openat2`; links are not followed then.
            Err(Errno::NOSYS | Errno::PERM) => self.step(path, flags),
            opened => Ok(opened?),
        }
    }

    fn step(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let (mut opened, mut parts) = (None::<OwnedFd>, path.iter().peekable());
        while let Some(part) = parts.next() {
            let beneath = opened.as_ref().unwrap_or(&self.descriptor);
            let flags = if parts.peek().is_some() {
                DIRECTORY
            } else {
                flags | OFlags::NOFOLLOW
            };
            opened = Some(rustix::fs::openat(beneath, part, flags, Mode::empty())?);
        }
        opened.ok_or(io::ErrorKind::InvalidInput.into())
    }
}

fn regular(opened: OwnedFd) -> io::Result<File> {
    let file = File::from(opened);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

/// Why a directory is not accepted as a package: a clause such as "it is not a directory".
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) what: String,
    of_no_kind: bool,
}

impl Refusal {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            of_no_kind: false,
        }
    }

    /// Refuses a scene or an application, which murald cannot show.
    pub(super) fn of_no_kind(what: String) -> Self {
        Self {
            what,
            of_no_kind: true,
        }
    }

    /// Refuses a directory that cannot be opened.
    pub(super) fn closed(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotADirectory => Self::new("it is not a directory"),
            _ => Self::new(format!("cannot read it: {error}")),
        }
    }

    pub(super) fn at(path: &Path, error: &std::io::Error) -> Self {
        Self::new(format!(
            "its {:?} cannot be read: {error}",
            path.display().to_string()
        ))
    }

    pub(super) fn too_large() -> Self {
        Self::new("it has more than 512 MiB")
    }

    pub(super) fn of(self, path: &Path) -> Error {
        Error::Package {
            path: path.to_owned(),
            what: self.what,
            of_no_kind: self.of_no_kind,
        }
    }
}
