//! The watched directories as configured, the times that apply, and the names that are skipped. Pure.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{Config, own_directories, watched_directory};
use crate::paths::Dirs;

/// After the last event of a directory: what is written is mostly written on.
pub(super) const SETTLE: Duration = Duration::from_millis(400);
/// After the first one, whatever follows: within two seconds of its last write a file is taken.
pub(super) const SETTLE_MAX: Duration = Duration::from_millis(1200);
/// How long an image waits for its file to turn up again.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// Files that are given to the imports at once: others who import come between.
pub(super) const AT_ONCE: usize = 64;

/// Endings of files that somebody is still writing.
const UNFINISHED: [&[u8]; 5] = [b"~", b".part", b".crdownload", b".tmp", b".swp"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchSettings {
    pub(crate) directories: Vec<Wanted>,
    pub(crate) in_place: bool,
    pub(crate) folders: bool,
    /// Nothing in these is looked at.
    pub(crate) own: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) written: String,
    /// The directory that it names, or the reason why there is none.
    pub(crate) directory: Result<PathBuf, String>,
}

impl WatchSettings {
    pub(crate) fn of(config: &Config, dirs: &Dirs) -> Self {
        let mut directories: Vec<Wanted> = Vec::new();
        for written in &config.library.watch {
            let directory = watched_directory(written, dirs, &config.daemon);
            let wanted = Wanted { written: written.clone(), directory };
            let is_same = |one: &Wanted| one.directory == wanted.directory;
            if wanted.directory.is_err() || !directories.iter().any(is_same) {
                directories.push(wanted);
            }
        }
        Self {
            directories,
            in_place: config.library.in_place,
            folders: config.library.watch_folders,
            own: own_directories(dirs, &config.daemon),
        }
    }
}

/// Hidden, or on its way.
pub(super) fn is_passed_over(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".") || UNFINISHED.iter().any(|end| name.ends_with(end))
}

/// Whether a path below a directory is one that is looked at.
pub(super) fn is_looked_at(directory: &Path, path: &Path) -> bool {
    path.strip_prefix(directory).is_ok_and(|inside| !inside.iter().any(is_passed_over))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_unfinished_files_are_passed_over() {
        let check = |path: &str, expected| {
            assert_eq!(is_looked_at(Path::new("/w"), Path::new(path)), expected, "{path}");
        };
        check("/w/a.png", true);
        check("/w/sub/a.png", true);
        check("/w", true);
        check("/w/.a.png", false);
        check("/w/.git/a.png", false);
        check("/w/a.png.part", false);
        check("/w/a.png~", false);
        check("/w/x.tmp/a.png", false);
        check("/elsewhere/a.png", false);
    }
}
