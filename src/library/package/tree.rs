//! The files of a web package: looked through before anything is copied, copied whole, and told
//! apart by one checksum. Runs on the thread that asks.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};

use super::Refusal;
use crate::library::Error;
use crate::store::images::Checksum;

/// Bytes of a package.
const SIZE_MAX: u64 = 512 << 20;
/// Files and links of a package; of directories as many again.
const FILES_MAX: usize = 10_000;
const BUFFER: usize = 64 << 10;
const FILE: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const DIRECTORY: OFlags = OFlags::NOFOLLOW.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What is in a package, each path relative to it, sorted: a directory before what is in it.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    /// The same directory, whatever takes its place meanwhile.
    descriptor: OwnedFd,
    entries: Vec<(PathBuf, What)>,
}

#[derive(Debug, PartialEq)]
enum What {
    Directory,
    File,
    /// Where it leads: relative, and to something in the package.
    Link(PathBuf),
}

/// A package's content in a nutshell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) checksum: Checksum,
    /// Bytes of all files.
    pub(super) size: u64,
}

impl Tree {
    /// Looks through a package; nothing that leaves it, is no file, or is too much gets further.
    pub(super) fn survey(root: &Path) -> Result<Self, Refusal> {
        let real = fs::canonicalize(root).map_err(|error| Refusal::io("read it", &error))?;
        if !real.is_dir() {
            return Err(Refusal::new("it is not a directory"));
        }
        let descriptor = rustix::fs::open(&real, DIRECTORY, Mode::empty());
        let descriptor = descriptor.map_err(|error| Refusal::io("read it", &error.into()))?;
        let mut tree = Self { root: real, descriptor, entries: Vec::new() };
        let (mut files, mut size) = (0, 0);
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            let listed = fs::read_dir(tree.root.join(&directory));
            for entry in listed.map_err(|error| Refusal::at(&directory, &error))? {
                let entry = entry.map_err(|error| Refusal::at(&directory, &error))?;
                let path = directory.join(entry.file_name());
                let (what, bytes) = tree.look(&path)?;
                match what {
                    What::Directory => pending.push(path.clone()),
                    _ => files += 1,
                }
                size += bytes;
                tree.entries.push((path, what));
                if files > FILES_MAX || tree.entries.len() > 2 * FILES_MAX {
                    return Err(Refusal::new(format!("it has more than {FILES_MAX} files")));
                }
            }
        }
        if size > SIZE_MAX {
            return Err(Refusal::too_large());
        }
        tree.entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(tree)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Also through links.
    pub(super) fn has_file(&self, path: &Path) -> bool {
        let path = self.root.join(path);
        path.is_file() && self.stays(&path)
    }

    /// Reads all of it; with a `target`, which must not exist yet, copies it there.
    pub(super) fn read(&self, target: Option<&Path>) -> Result<Content, Error> {
        if let Some(target) = target {
            make(target)?;
        }
        let (mut digest, mut size) = (Sha256::new(), 0);
        for (path, what) in &self.entries {
            let to = target.map(|target| target.join(path));
            let name = path.as_os_str().as_bytes();
            digest.update((name.len() as u64).to_le_bytes());
            digest.update(name);
            match what {
                What::Directory => {
                    digest.update([0]);
                    to.as_deref().map(make).transpose()?;
                }
                What::Link(leads) => {
                    digest.update([1]);
                    digest.update((leads.as_os_str().len() as u64).to_le_bytes());
                    digest.update(leads.as_os_str().as_bytes());
                    if let Some(to) = to {
                        symlink(leads, &to).map_err(Error::file("make", &to))?;
                    }
                }
                What::File => {
                    digest.update([2]);
                    let bytes = self.copy(path, to.as_deref(), &mut digest, SIZE_MAX - size)?;
                    digest.update(bytes.to_le_bytes());
                    size += bytes;
                }
            }
        }
        Ok(Content { checksum: digest.finalize().into(), size })
    }

    /// A file's bytes into the digest, and into a copy where one is wanted. A file that grows
    /// while it is read is still no more than `room`.
    fn copy(
        &self,
        path: &Path,
        to: Option<&Path>,
        digest: &mut Sha256,
        room: u64,
    ) -> Result<u64, Error> {
        let from = self.root.join(path);
        let source = self.open(path).map_err(Error::file("read", &from))?;
        let mut source = source.take(room + 1);
        let mut copy = to
            .map(|to| OpenOptions::new().write(true).create_new(true).open(to))
            .transpose()
            .map_err(Error::file("write", to.unwrap_or(&from)))?;
        let (mut buffer, mut bytes) = (vec![0; BUFFER], 0);
        loop {
            let count = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::file("read", &from)(error)),
            };
            digest.update(&buffer[..count]);
            if let Some(copy) = &mut copy {
                copy.write_all(&buffer[..count])
                    .map_err(Error::file("write", to.unwrap_or(&from)))?;
            }
            bytes += count as u64;
        }
        if bytes > room {
            return Err(Refusal::too_large().of(&self.root));
        }
        Ok(bytes)
    }

    /// Opens a file of the package from directory to directory, none of them a link: what has been
    /// swapped since it was looked at leads nowhere else.
    fn open(&self, path: &Path) -> io::Result<File> {
        let (mut directory, mut parts) = (None::<OwnedFd>, path.iter().peekable());
        while let Some(part) = parts.next() {
            let beneath = directory.as_ref().unwrap_or(&self.descriptor);
            let flags = if parts.peek().is_some() { DIRECTORY } else { FILE };
            directory = Some(rustix::fs::openat(beneath, part, flags, Mode::empty())?);
        }
        let file = File::from(directory.ok_or(io::ErrorKind::InvalidInput)?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        }
    }

    fn look(&self, path: &Path) -> Result<(What, u64), Refusal> {
        let whole = self.root.join(path);
        let meta = fs::symlink_metadata(&whole).map_err(|error| Refusal::at(path, &error))?;
        if meta.is_dir() {
            Ok((What::Directory, 0))
        } else if meta.is_file() {
            Ok((What::File, meta.len()))
        } else if meta.is_symlink() {
            let leads = fs::read_link(&whole).map_err(|error| Refusal::at(path, &error))?;
            if !stays(path, &leads) || !self.stays(&whole) {
                let (from, to) = (path.display(), leads.display());
                let problem = format!("its link {from} leads to {to}, which is not in it");
                return Err(Refusal::new(problem));
            }
            Ok((What::Link(leads), 0))
        } else {
            Err(Refusal::new(format!("its {} is neither a file nor a directory", path.display())))
        }
    }

    /// Whether a path, followed to its end, is in the package.
    fn stays(&self, path: &Path) -> bool {
        fs::canonicalize(path).is_ok_and(|real| real.starts_with(&self.root))
    }
}

/// Whether a link at `path` stays in the package at each of its steps: also in the copy, which
/// lies elsewhere.
fn stays(path: &Path, leads: &Path) -> bool {
    let mut depth = path.components().count() - 1;
    leads.components().all(|part| match part {
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::CurDir => true,
        Component::ParentDir => depth.checked_sub(1).map(|up| depth = up).is_some(),
        Component::RootDir | Component::Prefix(_) => false,
    })
}

fn make(directory: &Path) -> Result<(), Error> {
    DirBuilder::new().create(directory).map_err(Error::file("make", directory))
}

/// Onto the disk, with all that lies in a directory's file system: far cheaper than file by file.
pub(super) fn flush(directory: &Path) -> Result<(), Error> {
    let synced = File::open(directory).and_then(|open| Ok(rustix::fs::syncfs(open)?));
    synced.map_err(Error::file("flush", directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn package() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("pkg");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("index.html"), "<html>").unwrap();
        fs::write(root.join("a/b/x.js"), "x").unwrap();
        symlink("a/b/x.js", root.join("link.js")).unwrap();
        symlink("../..", root.join("a/b/up")).unwrap();
        (directory, root)
    }

    #[test]
    fn a_copy_is_the_same_package() {
        let (directory, root) = package();
        let tree = Tree::survey(&root).unwrap();
        assert!(tree.has_file(Path::new("link.js")) && tree.has_file(Path::new("a/b/x.js")));
        assert!(!tree.has_file(Path::new("a")) && !tree.has_file(Path::new("y")));
        let target = directory.path().join("copy");
        let content = tree.read(Some(&target)).unwrap();
        assert_eq!(content, tree.read(None).unwrap());
        assert_eq!(content.size, 7);
        let copy = Tree::survey(&target).unwrap();
        assert_eq!(copy.entries, tree.entries);
        assert_eq!(copy.read(None).unwrap(), content);
        fs::write(root.join("a/b/x.js"), "y").unwrap();
        assert_ne!(tree.read(None).unwrap().checksum, content.checksum);
    }

    #[test]
    fn what_is_swapped_after_the_look_brings_nothing_in() {
        let check = |swap: &dyn Fn(&Path, &Path)| {
            let (directory, root) = package();
            let outside = directory.path().join("outside");
            fs::create_dir_all(outside.join("b")).unwrap();
            fs::write(outside.join("b/x.js"), "secret").unwrap();
            let tree = Tree::survey(&root).unwrap();
            swap(&root, &outside);
            let target = directory.path().join("copy");
            assert!(tree.read(Some(&target)).is_err());
            assert!(!target.join("a/b/x.js").exists());
        };
        check(&|root, outside| {
            fs::rename(root.join("a"), root.join("away")).unwrap();
            symlink(outside, root.join("a")).unwrap();
        });
        check(&|root, outside| {
            fs::remove_file(root.join("a/b/x.js")).unwrap();
            symlink(outside.join("b/x.js"), root.join("a/b/x.js")).unwrap();
        });
        check(&|root, _| {
            fs::remove_file(root.join("a/b/x.js")).unwrap();
            let mode = Mode::from_raw_mode(0o600);
            let (kind, path) = (rustix::fs::FileType::Fifo, root.join("a/b/x.js"));
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
        });
    }

    #[test]
    fn what_leaves_a_package_or_is_no_file_is_refused() {
        let check = |spoil: &dyn Fn(&Path), expected: &str| {
            let (_directory, root) = package();
            spoil(&root);
            let why = Tree::survey(&root).map(drop).unwrap_err().what;
            assert!(why.contains(expected), "{why}");
        };
        let leads = |to: &'static str| move |root: &Path| symlink(to, root.join("a/out")).unwrap();
        for to in
            ["/etc/passwd", "../../pkg/index.html", "../../..", "nowhere", "../a/b/../../../x"]
        {
            check(&leads(to), &format!("its link a/out leads to {to}"));
        }
        // Harmless to the eye: the link in the middle leads out by one more step.
        check(
            &|root: &Path| {
                fs::write(root.parent().unwrap().join("secret"), "").unwrap();
                symlink("b/up/../secret", root.join("a/out")).unwrap();
            },
            "a/out",
        );
        check(&|root| drop(UnixListener::bind(root.join("s")).unwrap()), "its s is neither");
        let sparse = |root: &Path| {
            File::create(root.join("big")).unwrap().set_len(SIZE_MAX).unwrap();
        };
        check(&sparse, "more than 512 MiB");
        let many = |root: &Path| {
            (0..FILES_MAX).for_each(|at| fs::write(root.join(at.to_string()), "").unwrap());
        };
        check(&many, "more than 10000 files");
        let why = Tree::survey(Path::new("/nowhere/at/all")).unwrap_err().what;
        assert!(why.contains("No such file"), "{why}");
    }
}
