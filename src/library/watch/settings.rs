//! Reads the watched directories from the configuration. Pure.

use std::path::PathBuf;

use crate::config::{Config, Exclude, own_directories, watched_directory};
use crate::paths::Dirs;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchSettings {
    pub(crate) directories: Vec<Wanted>,
    pub(crate) folders: bool,
    pub(crate) exclude: Exclude,
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
    pub(crate) fn from_config(config: &Config, dirs: &Dirs) -> Self {
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
            exclude: Exclude::new(&config.library.exclude),
            own: own_directories(dirs, &config.daemon),
        }
    }
}
