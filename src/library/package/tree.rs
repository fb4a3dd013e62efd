//! Lists, hashes and copies the files of a package. All are checked before the first is copied. Runs on
//! the calling thread.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::root::{Refusal, Root};
use crate::digest::Checksum;
use crate::library::Error;

/// The maximum size of a package, in bytes.
const SIZE_MAX: u64 = 512 << 20;
/// The maximum number of files and links of a package; with its directories twice as many.
const FILES_MAX: usize = 10_000;
const BUFFER: usize = 64 << 10;

/// The entries of a package, with paths relative to it, sorted so that a directory comes before its
/// entries.
#[derive(Debug)]
pub(super) struct Tree {
    root: Root,
    entries: Vec<(PathBuf, What)>,
}

#[derive(Debug, PartialEq)]
enum What {
    Directory,
    File,
    /// The target of a link: relative, and in the package.
    Link(PathBuf),
}

/// The checksum and the size of a package's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) checksum: Checksum,
    /// Bytes of all files.
    pub(super) size: u64,
}

impl Tree {
    /// Lists the entries of a package. Refuses special files, links that lead out of the package, and
    /// too many files or bytes. Counts each entry in `signs`, as a sign of life.
    pub(super) fn survey(root: Root, signs: &AtomicU64) -> Result<Self, Refusal> {
        let mut tree = Self {
            root,
            entries: Vec::new(),
        };
        let (mut files, mut size) = (0, 0);
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            let refusal = |error: &io::Error| Refusal::at(&directory, error);
            let mut listed = tree
                .root
                .directory(&directory)
                .map_err(|error| refusal(&error))?;
            while let Some(entry) = listed.next() {
                signs.fetch_add(1, Ordering::AcqRel);
                let entry = entry.map_err(|error| refusal(&error.into()))?;
                let name = entry.file_name();
                if [&b"."[..], b".."].contains(&name.to_bytes()) {
                    continue;
                }
                let path = directory.join(OsStr::from_bytes(name.to_bytes()));
                let (what, bytes) = tree.look(&listed, name, &path)?;
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
        tree.entries
            .sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(tree)
    }

    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// Reads the whole package. Also copies it to `target`, if given, which must not exist yet.
    pub(super) fn read(
        &self,
        target: Option<&Path>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Content, Error> {
        if let Some(target) = target {
            make(target)?;
        }
        let (mut digest, mut size) = (Sha256::new(), 0);
        for (path, what) in &self.entries {
            if is_stopped() {
                return Err(Error::Stopped);
            }
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
                    let bytes = self.copy(
                        (path, to.as_deref()),
                        &mut digest,
                        SIZE_MAX - size,
                        is_stopped,
                    )?;
                    digest.update(bytes.to_le_bytes());
                    size += bytes;
                }
            }
        }
        Ok(Content {
            checksum: digest.finalize().into(),
            size,
        })
    }

    /// Reads a file into the digest, and copies it if `to` is given. Fails if the file has more than
    /// `room` bytes, as it may grow while it is read.
    fn copy(
        &self,
        (path, to): (&Path, Option<&Path>),
        digest: &mut Sha256,
        room: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<u64, Error> {
        let from = self.root.path().join(path);
        let source = self.root.file(path).map_err(Error::file("read", &from))?;
        let mut source = source.take(room + 1);
        let mut copy = to
            .map(|to| OpenOptions::new().write(true).create_new(true).open(to))
            .transpose()
            .map_err(Error::file("write", to.unwrap_or(&from)))?;
        let (mut buffer, mut bytes) = (vec![0; BUFFER], 0);
        loop {
            if is_stopped() {
                return Err(Error::Stopped);
            }
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
            return Err(Refusal::too_large().of(self.root.path()));
        }
        Ok(bytes)
    }

    /// The kind of an entry of a directory, and the bytes of a file.
    fn look(&self, listed: &Dir, name: &CStr, path: &Path) -> Result<(What, u64), Refusal> {
        let refusal = |error: Errno| Refusal::at(path, &error.into());
        let directory = listed.fd().map_err(refusal)?;
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(refusal)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Ok((What::Directory, 0)),
            FileType::RegularFile => Ok((What::File, u64::try_from(found.st_size).unwrap_or(0))),
            FileType::Symlink => {
                let leads = rustix::fs::readlinkat(directory, name, Vec::new()).map_err(refusal)?;
                let leads = PathBuf::from(OsString::from_vec(leads.into_bytes()));
                if !stays(path, &leads) || !self.root.leads_to(path) {
                    let (from, to) = (path.display(), leads.display());
                    let problem = format!("its link {from} leads to {to}, outside the package");
                    return Err(Refusal::new(problem));
                }
                Ok((What::Link(leads), 0))
            }
            _ => {
                let path = path.display();
                Err(Refusal::new(format!(
                    "its {path} is neither a file nor a directory"
                )))
            }
        }
    }
}

/// Whether each step of a link at `path` stays in the package, so that it also stays in the copy.
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
    DirBuilder::new()
        .create(directory)
        .map_err(Error::file("make", directory))
}

/// Flushes the whole file system of a directory, which is far cheaper than flushing file by file.
pub(super) fn flush(directory: &Path) -> Result<(), Error> {
    let synced = File::open(directory).and_then(|open| Ok(rustix::fs::syncfs(open)?));
    synced.map_err(Error::file("flush", directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::net::UnixListener;

    use rustix::fs::Mode;

    const NEVER: fn() -> bool = || false;

    fn survey(root: &Path) -> Result<Tree, Refusal> {
        Tree::survey(Root::open(root).unwrap(), &AtomicU64::new(0))
    }

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
    fn copy_has_the_same_entries_and_checksum() {
        let (directory, root) = package();
        let tree = survey(&root).unwrap();
        let has_file = |path| tree.root().linked_file(Path::new(path)).is_ok();
        assert!(has_file("link.js") && has_file("a/b/x.js") && !has_file("a") && !has_file("y"));
        let target = directory.path().join("copy");
        let content = tree.read(Some(&target), &NEVER).unwrap();
        assert_eq!(content, tree.read(None, &NEVER).unwrap());
        assert_eq!(content.size, 7);
        let copy = survey(&target).unwrap();
        assert_eq!(copy.entries, tree.entries);
        assert_eq!(copy.read(None, &NEVER).unwrap(), content);
        fs::write(root.join("a/b/x.js"), "y").unwrap();
        assert_ne!(tree.read(None, &NEVER).unwrap().checksum, content.checksum);
    }

    #[test]
    fn file_swapped_after_the_survey_is_not_copied() {
        let check = |swap: &dyn Fn(&Path, &Path)| {
            let (directory, root) = package();
            let outside = directory.path().join("outside");
            fs::create_dir_all(outside.join("b")).unwrap();
            fs::write(outside.join("b/x.js"), "secret").unwrap();
            let tree = survey(&root).unwrap();
            swap(&root, &outside);
            let target = directory.path().join("copy");
            assert!(tree.read(Some(&target), &NEVER).is_err());
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
    fn package_swapped_for_a_link_is_not_followed_out() {
        let (directory, root) = package();
        let outside = directory.path().join("outside");
        fs::create_dir_all(outside.join("b")).unwrap();
        fs::write(outside.join("b/secret.js"), "secret").unwrap();
        let held = Root::open(&root).unwrap();
        // The whole package is swapped: the descriptor is still the package's.
        fs::rename(&root, directory.path().join("away")).unwrap();
        symlink(&outside, &root).unwrap();
        let signs = AtomicU64::new(0);
        let tree = Tree::survey(held, &signs).unwrap();
        assert!(signs.into_inner() > tree.entries.len() as u64);
        let paths: Vec<&Path> = tree.entries.iter().map(|entry| &*entry.0).collect();
        assert_eq!(
            paths,
            ["a", "a/b", "a/b/up", "a/b/x.js", "index.html", "link.js"].map(Path::new)
        );
        // A part is swapped: no directory, file or link that leads out of the package is opened.
        let away = directory.path().join("away");
        fs::remove_dir_all(away.join("a")).unwrap();
        symlink(&outside, away.join("a")).unwrap();
        let root = tree.root();
        assert!(root.directory(Path::new("a/b")).is_err());
        assert!(root.linked_file(Path::new("a/b/secret.js")).is_err());
        assert!(!root.leads_to(Path::new("a")) && root.leads_to(Path::new("index.html")));
        fs::remove_file(away.join("index.html")).unwrap();
        symlink("../outside/b/secret.js", away.join("index.html")).unwrap();
        assert!(root.linked_file(Path::new("index.html")).is_err());
        assert!(root.file(Path::new("link.js")).is_err());
    }

    #[test]
    fn links_out_of_a_package_and_special_files_are_refused() {
        let check = |spoil: &dyn Fn(&Path), expected: &str| {
            let (_directory, root) = package();
            spoil(&root);
            let why = survey(&root).map(drop).unwrap_err().what;
            assert!(why.contains(expected), "{why}");
        };
        let leads = |to: &'static str| move |root: &Path| symlink(to, root.join("a/out")).unwrap();
        for to in [
            "/etc/passwd",
            "../../pkg/index.html",
            "../../..",
            "nowhere",
            "../a/b/../../../x",
        ] {
            check(&leads(to), &format!("its link a/out leads to {to}"));
        }
        // The path itself stays in the package, but the link in its middle leads out.
        check(
            &|root: &Path| {
                fs::write(root.parent().unwrap().join("secret"), "").unwrap();
                symlink("b/up/../secret", root.join("a/out")).unwrap();
            },
            "a/out",
        );
        check(
            &|root| drop(UnixListener::bind(root.join("s")).unwrap()),
            "its s is neither",
        );
        let sparse = |root: &Path| {
            File::create(root.join("big"))
                .unwrap()
                .set_len(SIZE_MAX)
                .unwrap();
        };
        check(&sparse, "more than 512 MiB");
        let many = |root: &Path| {
            (0..FILES_MAX).for_each(|at| fs::write(root.join(at.to_string()), "").unwrap());
        };
        check(&many, "more than 10000 files");
    }
}
