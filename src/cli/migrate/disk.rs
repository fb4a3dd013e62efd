//! Follows a path of another program's configuration to a file or a directory.

use std::path::{Path, PathBuf};

/// Where paths of a configuration lead. Tests have a disk of their own.
pub(in crate::cli) struct Disk {
    home: PathBuf,
    look: fn(&Path) -> Option<Kind>,
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Kind {
    File,
    Directory,
}

impl Disk {
    pub(in crate::cli) fn of(home: &Path) -> Self {
        Self { home: home.to_owned(), look: on_disk }
    }

    #[cfg(test)]
    pub(super) fn pretended(home: &str, look: fn(&Path) -> Option<Kind>) -> Self {
        Self { home: home.into(), look }
    }

    /// A leading `~` replaced, as all of these programs do.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        let path = Path::new(written);
        let path =
            path.strip_prefix("~").map_or_else(|_| path.to_owned(), |rest| self.home.join(rest));
        // Without a slash at the end, which would make another name of the same directory.
        path.components().collect()
    }

    pub(super) fn kind(&self, path: &Path) -> Option<Kind> {
        (self.look)(path)
    }
}

fn on_disk(path: &Path) -> Option<Kind> {
    let found = std::fs::metadata(path).ok()?;
    Some(if found.is_dir() { Kind::Directory } else { Kind::File })
}
