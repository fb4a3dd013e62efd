//! Reads and replaces the configuration file, atomically and with backups.
//!
//! Runs in the thread that calls. Never writes into the file itself: a new file replaces it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::Error;
use crate::paths::{Presence, make_directories, open_regular, presence};

/// Larger than any configuration: a larger file is not one.
const MAX: u64 = 1 << 20;
/// Copies of the file that are kept: `.bak`, `.bak.1`...
const BACKUPS: u32 = 5;
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
        Presence::There | Presence::Missing => Ok(()),
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
/// `seen`. The mode is kept; a new file and its directories are private, because the file may hold
/// a key of a remote service.
pub(super) fn write(path: &Path, text: &str, seen: Option<&str>) -> io::Result<Written> {
    let (target, mode) = writable(path)?;
    let temporary = temporary(&target);
    let written = fill(&temporary, text, mode).and_then(|()| {
        at_pause(Pause::Filled);
        // The flush takes long: an edit that was saved in between wins. The file is read by its name,
        // because links may have changed.
        if read(path)?.as_deref() != seen {
            return Ok(Written::Overtaken);
        }
        at_pause(Pause::Seen);
        take_place(&temporary, &target, seen)
    });
    // Remove the new text if it was not used, or the old file after the exchange.
    fs::remove_file(&temporary).ok();
    if matches!(written, Ok(Written::Yes)) {
        // The rename is done, even if the directory could not be flushed.
        File::open(directory_of(&target))
            .and_then(|directory| directory.sync_all())
            .ok();
    }
    written
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

/// A copy of a file that is about to be replaced. It is named `.bak` after the file was replaced, and
/// removed otherwise.
pub(super) struct Backup {
    path: PathBuf,
    /// `None` after the copy was named.
    copy: Option<PathBuf>,
}

impl Backup {
    /// Writes a copy next to the file that `path` names.
    pub(super) fn write(path: &Path, text: &str) -> io::Result<Self> {
        let copy = backup_name(path, BACKUPS);
        let backup = Self {
            path: path.to_owned(),
            copy: Some(copy.clone()),
        };
        fill(&copy, text, 0o600).map(|()| backup)
    }

    /// Names the copy `.bak`. Older copies move to `.bak.1` and on; the oldest of more than five is
    /// removed.
    pub(super) fn keep(mut self) -> PathBuf {
        let copy = self.copy.take().expect("it is kept once");
        let name = |number| backup_name(&self.path, number);
        // Only up to the first free name: files beyond a gap keep their names.
        let free = (0..BACKUPS)
            .find(|number| !name(*number).exists())
            .unwrap_or(BACKUPS - 1);
        let moved = (0..free)
            .rev()
            .try_for_each(|number| fs::rename(name(number), name(number + 1)));
        match moved.and_then(|()| fs::rename(&copy, name(0))) {
            Ok(()) => name(0),
            // The copy is kept even if it cannot be renamed.
            Err(_) => copy,
        }
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        self.copy
            .iter()
            .for_each(|copy| drop(fs::remove_file(copy)));
    }
}

fn backup_name(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".bak");
    match number {
        0 => {}
        // A temporary name, which is not one of the five.
        BACKUPS => name.push(".new"),
        _ => name.push(format!(".{number}")),
    }
    name.into()
}

fn fill(temporary: &Path, text: &str, mode: u32) -> io::Result<()> {
    // A killed daemon may have left the temporary file.
    fs::remove_file(temporary).ok();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(temporary)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    // Flushed before the rename, or a crash could leave an empty file under the name.
    file.sync_all()
}

/// Renames a file over another, unless the other changed since it was read: exchanges the two, and
/// renames the old file back if it is not the one that was `seen`.
fn take_place(temporary: &Path, target: &Path, seen: Option<&str>) -> io::Result<Written> {
    let how = if seen.is_some() {
        RenameFlags::EXCHANGE
    } else {
        RenameFlags::NOREPLACE
    };
    match rustix::fs::renameat_with(CWD, temporary, CWD, target, how) {
        Ok(()) => {}
        Err(Errno::EXIST | Errno::NOENT) => return Ok(Written::Overtaken),
        // Some file systems support neither: the comparison a moment ago must suffice.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            return fs::rename(temporary, target).map(|()| Written::Yes);
        }
        Err(error) => return Err(error.into()),
    }
    match seen.is_none() || matches!(read(temporary), Ok(out) if out.as_deref() == seen) {
        true => Ok(Written::Yes),
        false => fs::rename(temporary, target).map(|()| Written::Overtaken),
    }
}

/// The moments at which a test may insert an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// The new text is on the disk, and the file has not been read again.
    Filled,
    /// The file was unchanged, and is not yet replaced.
    Seen,
}

#[cfg(not(test))]
fn at_pause(_: Pause) {}

#[cfg(test)]
pub(super) use pauses::{at_pause, on_pause};

#[cfg(test)]
mod pauses {
    use super::Pause;
    use std::cell::RefCell;

    type Act = Box<dyn FnMut(Pause)>;

    thread_local! {
        static ON_PAUSE: RefCell<Option<Act>> = const { RefCell::new(None) };
    }

    /// Runs the action at each pause, until it is dropped.
    pub(in crate::config) struct OnPause(());

    impl Drop for OnPause {
        fn drop(&mut self) {
            ON_PAUSE.set(None);
        }
    }

    /// Runs something at each pause of this thread's writes.
    pub(in crate::config) fn on_pause(act: impl FnMut(Pause) + 'static) -> OnPause {
        ON_PAUSE.set(Some(Box::new(act)));
        OnPause(())
    }

    pub(in crate::config) fn at_pause(pause: Pause) {
        ON_PAUSE.with_borrow_mut(|on_pause| on_pause.iter_mut().for_each(|act| act(pause)));
    }
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

fn temporary(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".murald-new");
    target.with_file_name(name)
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
        let written = write(&link, "new", Some("old")).unwrap();
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
    fn five_backups_are_kept_and_the_oldest_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        let texts = || {
            let name = |number| backup_name(&path, number);
            (0..BACKUPS)
                .map_while(|number| fs::read_to_string(name(number)).ok())
                .collect::<String>()
        };
        for (text, kept) in [
            ("a", "a"),
            ("b", "ba"),
            ("c", "cba"),
            ("d", "dcba"),
            ("e", "edcba"),
            ("f", "fedcb"),
        ] {
            let backup = Backup::write(&path, text).unwrap();
            assert!(
                !texts().contains(text),
                "it has its name once the file is replaced"
            );
            let backup = backup.keep();
            assert_eq!(
                (&backup, texts().as_str()),
                (&dir.path().join("c.toml.bak"), kept)
            );
            assert_eq!(
                fs::metadata(&backup).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        drop(Backup::write(&path, "g").unwrap());
        fs::remove_file(dir.path().join("c.toml.bak.2")).unwrap();
        Backup::write(&path, "h").unwrap().keep();
        assert_eq!(texts(), "hfecb", "what lies beyond a gap stays");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
        let nowhere = dir.path().join("none/c.toml");
        assert_eq!(
            Backup::write(&nowhere, "d").err().unwrap().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn new_config_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.toml");
        assert_eq!(read(&path).unwrap(), None);
        write(&path, "x", None).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let dangling = dir.path().join("dangling");
        symlink("a/later.toml", &dangling).unwrap();
        write(&dangling, "y", None).unwrap();
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
            write(&path, "new", Some("old")).unwrap_err().to_string(),
            "it is marked read-only"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
        assert!(
            write(&path, "new", Some("old"))
                .unwrap_err()
                .to_string()
                .contains("directory")
        );
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let within = dir.path().join("d");
        fs::create_dir(&within).unwrap();
        for refused in [
            write(&within, "new", None).map(drop),
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
        assert!(write(Path::new("/dev/null"), "x", None).is_err());
        let path = dir.path().join("c.toml");
        fs::write(&path, b"a = 1\n\xff").unwrap();
        assert_eq!(
            read(&path).unwrap_err().to_string(),
            "line 2 is not valid UTF-8"
        );
        fs::write(&path, vec![b' '; MAX as usize + 1]).unwrap();
        assert!(read(&path).is_err());
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(write(&dir.path().join("loop"), "x", None).is_err());
    }
}
