//! Reads the watched directories from the configuration. Also has the watch's delays, and the names
//! that it skips. Pure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::walk::is_skipped_name;
use crate::config::{Config, own_directories, watched_directory};
use crate::paths::Dirs;

/// How long an image without a file waits for the file to appear again, also under another name.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// The number of files sent to the importer at once, so that other imports are served in between.
pub(super) const FILES_AT_ONCE: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchSettings {
    pub(crate) directories: Vec<Wanted>,
    pub(crate) folders: bool,
    /// murald's own directories, whose files are not imported.
    pub(crate) own: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) written: String,
    /// The resolved directory, or why it cannot be watched.
    pub(crate) directory: Result<PathBuf, String>,
}

impl WatchSettings {
    pub(crate) fn of(config: &Config, dirs: &Dirs) -> Self {
        let mut directories: Vec<Wanted> = Vec::new();
        for written in &config.library.watch {
            let directory = watched_directory(written, dirs, &config.daemon);
            let wanted = Wanted {
                written: written.clone(),
                directory,
            };
            let is_same = |one: &Wanted| one.directory == wanted.directory;
            if wanted.directory.is_err() || !directories.iter().any(is_same) {
                directories.push(wanted);
            }
        }
        Self {
            directories,
            folders: config.library.watch_folders,
            own: own_directories(dirs, &config.daemon),
        }
    }
}

/// Whether a path is below a directory, and no part of it is skipped.
pub(super) fn is_scanned(directory: &Path, path: &Path) -> bool {
    path.strip_prefix(directory)
        .is_ok_and(|inside| !inside.iter().any(is_skipped_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_unfinished_files_are_skipped() {
        let check = |path: &str, expected| {
            assert_eq!(
                is_scanned(Path::new("/w"), Path::new(path)),
                expected,
                "{path}"
            );
        };
        check("/w/a.png", true);
        check("/w/sub/a.png", true);
        check("/w", true);
        check("/w/.a.png", false);
        check("/w/.git/a.png", false);
        check("/w/a.png.part", false);
        check("/w/a.png~", false);
        check("/w/x.tmp/a.png", false);
        check("/w/@eaDir/a.png", false);
        check("/w/a.png.opdownload", false);
        check("/elsewhere/a.png", false);
    }
}
