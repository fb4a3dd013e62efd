//! Finds, hashes and copies the files of a package: a directory with an HTML wallpaper or a video. All
//! entries are checked before the first is copied; links are refused.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::protocol::{Error, Packed};
use super::reading::{Daemon, feed, open};

/// The maximum size of a package and of its manifest, in bytes.
const SIZE_MAX: u64 = 512 << 20;
const MANIFEST_MAX: u64 = 1 << 20;
/// The maximum number of files of a package; with its directories twice as many.
const FILES_MAX: usize = 10_000;

/// The name and text of the first of these files that the package has.
pub(super) fn manifest(root: &Path, names: &[String]) -> Result<Option<(String, String)>, Error> {
    let directory = fs::metadata(root).map_err(unreadable(Path::new("")))?;
    if !directory.is_dir() {
        return Err(Error::Package("it is not a directory".to_owned()));
    }
    for name in names {
        let file = match open(&root.join(name)) {
            Err(Error::Read(io)) if io.error().kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let mut text = String::new();
        file.take(MANIFEST_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|error| Error::Package(format!("{name} cannot be read: {error}")))?;
        if text.len() as u64 > MANIFEST_MAX {
            let problem = format!("{name} has more than {MANIFEST_MAX} bytes");
            return Err(Error::Package(problem));
        }
        return Ok(Some((name.clone(), text)));
    }
    Ok(None)
}

/// The path of a file in the package, whatever the case of its letters; `None` if it is missing or a
/// link.
pub(super) fn find(root: &Path, wanted: &Path) -> Option<OsString> {
    let is_there = |path: &Path| root.join(path).symlink_metadata();
    let mut found = PathBuf::new();
    for part in wanted {
        let exact = found.join(part);
        if is_there(&exact).is_ok() {
            found = exact;
            continue;
        }
        let lower = part.to_string_lossy().to_lowercase();
        let names = fs::read_dir(root.join(&found)).ok()?.flatten();
        let mut names = names.map(|entry| entry.file_name());
        found.push(names.find(|name| name.to_string_lossy().to_lowercase() == lower)?);
    }
    is_there(&found)
        .is_ok_and(|it| it.is_file())
        .then(|| found.into())
}

/// Reads the whole package. Also copies it to `to`, if given, which must not exist yet.
pub(super) fn copy(root: &Path, to: Option<&Path>, daemon: &Daemon) -> Result<Packed, Error> {
    let make = |path: &Path| DirBuilder::new().create(path).map_err(Error::write(path));
    let entries = survey(root)?;
    to.map(make).transpose()?;
    let mut digest = Sha256::new();
    let mut size = 0;
    for (path, is_file) in entries {
        let to = to.map(|to| to.join(&path));
        let name = path.as_os_str().as_bytes();
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
        if !is_file {
            digest.update([0]);
            to.as_deref().map(make).transpose()?;
            continue;
        }
        digest.update([2]);
        let mut copy = match &to {
            Some(to) => Some(File::create_new(to).map_err(Error::write(to))?),
            None => None,
        };
        let mut put = |bytes: &[u8]| {
            digest.update(bytes);
            copy.as_mut().map_or(Ok(()), |copy| copy.write_all(bytes))
        };
        let bytes = feed(
            &mut open(&root.join(&path))?,
            SIZE_MAX - size,
            &mut put,
            daemon,
        )
        .map_err(Error::copy(to.as_deref().unwrap_or(root)))?;
        digest.update(bytes.to_le_bytes());
        size += bytes;
    }
    if let Some(to) = to {
        // Far cheaper than flushing file by file.
        let flushed = File::open(to).and_then(|to| Ok(rustix::fs::syncfs(to)?));
        flushed.map_err(Error::write(to))?;
    }
    Ok(Packed {
        checksum: digest.finalize().into(),
        size,
    })
}

/// Lists the entries of a package, with paths relative to it, sorted so that a directory comes before
/// its entries; says whether each is a file. Refuses links, special files, and too many files or bytes.
fn survey(root: &Path) -> Result<Vec<(PathBuf, bool)>, Error> {
    let refuse = |problem: String| Err(Error::Package(problem));
    let mut entries = Vec::new();
    let mut files = 0;
    let mut size = 0;
    let mut pending = vec![PathBuf::new()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(root.join(&directory)).map_err(unreadable(&directory))? {
            let entry = entry.map_err(unreadable(&directory))?;
            let path = directory.join(entry.file_name());
            let metadata = entry.metadata().map_err(unreadable(&path))?;
            let kind = metadata.file_type();
            let shown = path.display();
            if kind.is_symlink() {
                return refuse(format!("its {shown} is a link"));
            }
            if !kind.is_dir() && !kind.is_file() {
                return refuse(format!("its {shown} is neither a file nor a directory"));
            }
            if kind.is_dir() {
                pending.push(path.clone());
            } else {
                files += 1;
                size += metadata.len();
            }
            entries.push((path, kind.is_file()));
            if files > FILES_MAX || entries.len() > 2 * FILES_MAX {
                return refuse(format!("it has more than {FILES_MAX} files"));
            }
        }
    }
    if size > SIZE_MAX {
        return refuse(format!("it has more than {} MiB", SIZE_MAX >> 20));
    }
    entries.sort_unstable();
    Ok(entries)
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |error| {
        Error::Package(match path.as_str() {
            "" => format!("cannot read it: {error}"),
            path => format!("its {path:?} cannot be read: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    fn package() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("pkg");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("index.html"), "<html>").unwrap();
        fs::write(root.join("a/b/X.js"), "x").unwrap();
        (directory, root)
    }

    fn packed(root: &Path, to: Option<&Path>) -> Result<Packed, Error> {
        let (stream, _) = UnixStream::pair().unwrap();
        copy(root, to, &Daemon::new(&stream).unwrap())
    }

    #[test]
    fn copy_has_the_same_entries_and_checksum() {
        let (directory, root) = package();
        let target = directory.path().join("copy");
        let content = packed(&root, Some(&target)).unwrap();
        assert_eq!(content, packed(&root, None).unwrap());
        assert_eq!(content.size, 7);
        assert_eq!(survey(&target).unwrap(), survey(&root).unwrap());
        assert_eq!(packed(&target, None).unwrap(), content);
        fs::write(root.join("a/b/X.js"), "y").unwrap();
        assert_ne!(packed(&root, None).unwrap().checksum, content.checksum);
    }

    #[test]
    fn file_is_found_whatever_the_case_of_its_letters() {
        let (_directory, root) = package();
        symlink("X.js", root.join("a/b/link.js")).unwrap();
        let check = |wanted: &str, expected: Option<&str>| {
            let found = find(&root, Path::new(wanted));
            assert_eq!(found, expected.map(Into::into), "{wanted}");
        };
        check("a/b/X.js", Some("a/b/X.js"));
        check("A/B/x.JS", Some("a/b/X.js"));
        check("Index.html", Some("index.html"));
        for missing in ["a", "a/b/y.js", "a/b/link.js", "x/X.js"] {
            check(missing, None);
        }
    }

    #[test]
    fn links_special_files_and_large_packages_are_refused() {
        let check = |spoil: &dyn Fn(&Path), expected: &str| {
            let (_directory, root) = package();
            spoil(&root);
            let why = packed(&root, None).unwrap_err().to_string();
            assert!(why.contains(expected), "{why}");
        };
        for to in ["/etc/passwd", "b/X.js", "nowhere"] {
            check(
                &|root| symlink(to, root.join("a/out")).unwrap(),
                "its a/out is a link",
            );
        }
        check(
            &|root| drop(UnixListener::bind(root.join("s")).unwrap()),
            "its s is neither",
        );
        let sparse = |root: &Path| {
            let big = File::create(root.join("big")).unwrap();
            big.set_len(SIZE_MAX).unwrap();
        };
        check(&sparse, "more than 512 MiB");
        let many = |root: &Path| {
            (0..FILES_MAX).for_each(|at| fs::write(root.join(at.to_string()), "").unwrap());
        };
        check(&many, "more than 10000 files");
    }
}
