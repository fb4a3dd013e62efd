//! The file that hyprpaper reads. One that somebody else wrote is never overwritten.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::backends::Error;
use crate::paths;

/// The first line of every file of ours.
pub(super) const HEAD: &str = "# Written by murald, which overwrites it.";

/// Writes it, whole or not at all.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |doing: &str, error: &io::Error| {
        Error::Unavailable(format!("cannot {doing} {}: {error}", path.display()))
    };
    match first_line(path) {
        Ok(Some(line)) if line != HEAD => {
            return Err(Error::Unavailable(format!(
                "{} was not written by murald: move it away, or set backend.hyprpaper.config_path",
                path.display()
            )));
        }
        Ok(_) => {}
        Err(error) => return Err(failed("read", &error)),
    }
    // A link is the owner's arrangement: what it leads to is written.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    paths::replace(&target, text.as_bytes()).map_err(|error| failed("write", &error))
}

/// None for a file that is not there.
fn first_line(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut line = Vec::new();
    BufReader::new(file).take(4096).read_until(b'\n', &mut line)?;
    Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
}

const LOCK: &str = "hyprpaper.lock";

/// One of ours that was taken away.
pub(super) struct Lock {
    path: PathBuf,
    number: i32,
}

impl Lock {
    /// Takes it away where it is of one of these: another is to start, before that one is ended. They
    /// leave it behind in any case.
    pub(super) fn take_from(runtime: &Path, is_ours: impl FnMut(&i32) -> bool) -> Option<Self> {
        let path = runtime.join(LOCK);
        let text = fs::read_to_string(&path).ok()?;
        let number = text.trim().parse().ok().filter(is_ours)?;
        // What cannot be removed, the new one tells of.
        fs::remove_file(&path).ok()?;
        Some(Self { path, number })
    }

    /// That one goes on: the other has not come up, and what it has left behind gives way.
    pub(super) fn put_back(self) {
        let Self { path, number } = self;
        if let Err(error) = fs::write(&path, number.to_string()) {
            log::warn!("hyprpaper's lock {} cannot be put back: {error}", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hypr/x.conf");
        for text in ["a", "b"] {
            let text = format!("{HEAD}\n{text}\n");
            write(&path, &text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let theirs = dir.path().join("theirs.conf");
        fs::write(&theirs, "preload = /x\n").unwrap();
        let error = write(&theirs, HEAD).unwrap_err().to_string();
        assert!(error.contains("theirs.conf"), "{error}");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "preload = /x\n");
        fs::write(&theirs, "").unwrap();
        assert!(write(&theirs, HEAD).is_err(), "an empty one is not ours either");
    }

    #[test]
    fn lock_of_somebody_else_s_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK);
        assert!(Lock::take_from(dir.path(), |_| true).is_none());
        for (text, stays) in [("42", false), ("43", true), ("", true), ("x42", true)] {
            fs::write(&path, text).unwrap();
            let taken = Lock::take_from(dir.path(), |number| *number == 42);
            assert_eq!((path.exists(), taken.is_some()), (stays, !stays), "{text}");
            taken.into_iter().for_each(Lock::put_back);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
