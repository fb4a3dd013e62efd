//! The file with its number by which hyprpaper before 0.8 sees that another runs, and does not start.

use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "hyprpaper.lock";

/// One of ours that was taken away.
pub(super) struct Lock {
    path: PathBuf,
    number: i32,
}

impl Lock {
    /// Takes it away where it is of one of these: another is to start, before that one is ended. They
    /// leave it behind in any case.
    pub(super) fn take_from(runtime: &Path, is_ours: impl FnMut(&i32) -> bool) -> Option<Self> {
        let path = runtime.join(NAME);
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
    fn lock_of_somebody_else_s_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
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
