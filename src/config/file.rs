//! Reads and replaces the configuration file, atomically and with backups.
//!
//! Runs in the thread that calls. Never writes into the file itself: a new file replaces it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Error;
use crate::paths::{
    Presence, Replacement, flush_directory, make_directories, open_regular, presence,
};

/// Larger than any configuration: a larger file is not one.
const MAX: u64 = 1 << 20;
/// Links followed, as the kernel does.
const MAX_LINKS: usize = 40;

/// Whether a text was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Yes,
    /// The file has changed since the text was made from it, and was left alone.
    Overtaken,
}

/// Fails if the file's disk does not answer; the functions below would wait for it.
pub(super) fn answers(path: &Path) -> Result<(), Error> {
    match presence(path) {
        Presence::NoAnswer => Err(Error::NoAnswer {
            path: path.to_owned(),
        }),
        Presence::There | Presence::Missing | Presence::Failed => Ok(()),
    }
}

/// The file's text; `None` if there is no file.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    match open_regular(path) {
        Err(error) if is_missing(&error) => return Ok(None),
        file => file?.take(MAX + 1).read_to_end(&mut bytes)?,
    };
    if bytes.len() as u64 > MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is larger than 1 MiB",
        ));
    }
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let message = format!("line {line} is not valid UTF-8");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// Replaces the file that `path` leads to through links, if its text is still the one that was
/// `seen`. A copy of it gets its name before. The mode is kept; a new file and its directories are
/// private, because the file may hold a key of a remote service.
pub(super) fn write(
    path: &Path,
    text: &str,
    seen: Option<&str>,
    backup: Option<Replacement>,
) -> io::Result<Written> {
    let (target, mode) = writable(path)?;
    let new = Replacement::create(&target)?;
    new.fill(text.as_bytes(), mode)?;
    // The flush takes long: an edit that was saved in between wins. The file is read by its name,
    // because links may have changed.
    if read(path)?.as_deref() != seen {
        return Ok(Written::Overtaken);
    }
    backup.map_or(Ok(()), Replacement::land)?;
    let written = land(new, seen)?;
    // The rename is done, even if the directory could not be flushed.
    flush_directory(directory_of(&target)).ok();
    Ok(written)
}

/// Exchanges the files: an edit that was saved since the last look comes out, and goes back. A file
/// that was created since the last look stays.
fn land(new: Replacement, seen: Option<&str>) -> io::Result<Written> {
    if seen.is_none() {
        match new.link() {
            Ok(()) => return Ok(Written::Yes),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(Written::Overtaken);
            }
            // The file system has no hard links.
            Err(_) => {}
        }
    }
    if new.exchange().is_err() {
        // The file was deleted, or its file system cannot do that.
        return new.land().map(|()| Written::Yes);
    }
    if read(new.path()).is_ok_and(|found| found.as_deref() == seen) {
        return Ok(Written::Yes);
    }
    new.land().map(|()| Written::Overtaken)
}

/// The file that [`write`] replaces for a path, and the mode that it will have. Fails if the write
/// would fail.
pub(super) fn writable(path: &Path) -> io::Result<(PathBuf, u32)> {
    let target = follow(path)?;
    let directory = directory_of(&target);
    make_directories(directory)?;
    let mode = match fs::metadata(&target) {
        Ok(found) if !found.is_file() => return Err(read_only("it is not a regular file")),
        Ok(found) => found.permissions().mode() & 0o7777,
        Err(_) => 0o600,
    };
    // Root can write any file, but a mode without write bits is respected.
    if mode & 0o222 == 0 {
        return Err(read_only("it is marked read-only"));
    }
    if fs::metadata(directory)?.permissions().mode() & 0o222 == 0 {
        return Err(read_only("its directory is marked read-only"));
    }
    if target.exists() {
        rustix::fs::access(&target, rustix::fs::Access::WRITE_OK)?;
    }
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK)?;
    Ok((target, mode))
}

fn directory_of(target: &Path) -> &Path {
    target.parent().unwrap_or(Path::new("/"))
}

/// A copy of a file that is about to be replaced; it replaces the last one when it lands.
pub(super) fn backup(path: &Path, text: &str) -> io::Result<(Replacement, PathBuf)> {
    let mut name = path.as_os_str().to_owned();
    name.push(".bak");
    let copy = PathBuf::from(name);
    let backup = Replacement::create(&copy)?;
    backup.fill(text.as_bytes(), 0o600)?;
    Ok((backup, copy))
}

/// The target of the last link, whether it exists or not.
pub(super) fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&path) else {
            return Ok(path);
        };
        path = path.parent().unwrap_or(Path::new("/")).join(link);
    }
    Err(io::Error::other("too many links"))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn read_only(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_mode_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.toml");
        let link = dir.path().join("link.toml");
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).unwrap();
        symlink("real.toml", dir.path().join("middle")).unwrap();
        symlink("middle", &link).unwrap();
        let written = write(&link, "new", Some("old"), None).unwrap();
        assert_eq!(written, Written::Yes);
        assert_eq!(read(&real).unwrap().as_deref(), Some("new"));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o644
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn file_that_has_changed_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, "theirs").unwrap();
        for seen in [None, Some("seen")] {
            assert_eq!(write(&path, "new", seen, None).unwrap(), Written::Overtaken);
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(
            write(&path, "new", Some("theirs"), None).unwrap(),
            Written::Yes
        );
    }

    #[test]
    fn edit_that_is_saved_after_the_last_look_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        let check = |found: &[u8], seen, expected: (Written, &[u8])| {
            fs::write(&path, found).unwrap();
            let new = Replacement::create(&path).unwrap();
            new.fill(b"new", 0o600).unwrap();
            let written = land(new, seen).unwrap();
            assert_eq!((written, &*fs::read(&path).unwrap()), expected);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        };
        check(b"seen", Some("seen"), (Written::Yes, b"new"));
        for theirs in [&b"theirs"[..], b"", b"\xff"] {
            check(theirs, Some("seen"), (Written::Overtaken, theirs));
            check(theirs, None, (Written::Overtaken, theirs));
        }
        fs::remove_file(&path).unwrap();
        let new = Replacement::create(&path).unwrap();
        assert_eq!(land(new, Some("seen")).unwrap(), Written::Yes);
    }

    #[test]
    fn file_that_is_created_in_the_same_instant_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        for _ in 0..1000 {
            let new = Replacement::create(&path).unwrap();
            let (written, created) = std::thread::scope(|scope| {
                let editor = scope.spawn(|| fs::File::create_new(&path));
                let written = land(new, None).unwrap();
                (written, editor.join().unwrap())
            });
            let won = if created.is_ok() {
                Written::Overtaken
            } else {
                Written::Yes
            };
            assert_eq!(written, won);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn one_backup_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        for text in ["a", "b"] {
            let (new, copy) = backup(&path, text).unwrap();
            assert_eq!(copy, dir.path().join("c.toml.bak"));
            new.land().unwrap();
            assert_eq!(fs::read_to_string(&copy).unwrap(), text);
            let mode = fs::metadata(&copy).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        // Without the file that it is a copy of, it keeps the last one.
        drop(backup(&path, "c").unwrap());
        let kept = fs::read_to_string(dir.path().join("c.toml.bak")).unwrap();
        assert_eq!(kept, "b");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn new_config_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.toml");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, "x", None, None).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let dangling = dir.path().join("dangling");
        symlink("a/later.toml", &dangling).unwrap();
        write(&dangling, "y", None, None).unwrap();
        assert_eq!(
            read(&dir.path().join("a/later.toml")).unwrap().as_deref(),
            Some("y")
        );
    }

    #[test]
    fn read_only_config_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(
            write(&path, "new", Some("old"), None)
                .unwrap_err()
                .to_string(),
            "it is marked read-only"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
        assert!(
            write(&path, "new", Some("old"), None)
                .unwrap_err()
                .to_string()
                .contains("directory")
        );
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let within = dir.path().join("d");
        fs::create_dir(&within).unwrap();
        for refused in [
            write(&within, "new", None, None).map(drop),
            writable(&within).map(drop),
        ] {
            assert_eq!(refused.unwrap_err().to_string(), "it is not a regular file");
        }
    }

    #[test]
    fn file_that_is_not_text_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).is_err());
        assert!(read(Path::new("/dev/zero")).is_err());
        assert!(write(Path::new("/dev/null"), "x", None, None).is_err());
        let path = dir.path().join("c.toml");
        fs::write(&path, b"a = 1\n\xff").unwrap();
        assert_eq!(
            read(&path).unwrap_err().to_string(),
            "line 2 is not valid UTF-8"
        );
        fs::write(&path, vec![b' '; MAX as usize + 1]).unwrap();
        assert!(read(&path).is_err());
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(write(&dir.path().join("loop"), "x", None, None).is_err());
    }
}
