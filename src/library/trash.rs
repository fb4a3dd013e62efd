//! Files on their way into the desktop's trash, all of them or none. Runs on the thread that asks,
//! which may wait for the disk; never removes anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use trash::TrashItem;
use trash::os_limited::{list, restore_all};

use super::Error;
use super::disk::is_gone;

/// What was moved into the trash and is to come back, unless it is kept there.
#[derive(Default)]
pub(super) struct Trashed {
    /// Where it was, as the trash writes it down; only what this one has moved.
    from: BTreeSet<PathBuf>,
}

impl Trashed {
    /// Moves a file or package into the trash of its disk, else into that of the home. What is gone
    /// already is passed over. The caller has the turn ([`super::name::Names::turn`]): of a file that
    /// goes meanwhile the crate leaves an empty one in the trash.
    pub(super) fn take(&mut self, path: &Path) -> Result<(), Error> {
        if !is_gone(path) {
            let path = whole(path);
            trash::delete(&path).map_err(|error| Error::Trash { why: reason(error) })?;
            self.from.insert(path);
        }
        Ok(())
    }

    /// They stay there, but for those of these places.
    pub(super) fn keep_but(mut self, back: &[&Path]) {
        let back: BTreeSet<PathBuf> = back.iter().map(|path| whole(path)).collect();
        self.from.retain(|path| back.contains(path));
    }
}

impl Drop for Trashed {
    fn drop(&mut self) {
        let missing: Vec<&PathBuf> = self.from.iter().filter(|path| is_gone(path)).collect();
        if missing.is_empty() {
            return;
        }
        let found = list().and_then(|items| restore_all(newest(items, &missing)));
        if let Err(error) = found {
            log::error!("files do not come back from the trash: {}", reason(error));
        }
    }
}

/// The file itself stays what it is: it may be a link.
fn whole(path: &Path) -> PathBuf {
    let home = path.parent().and_then(|home| home.canonicalize().ok());
    match (home, path.file_name()) {
        (Some(home), Some(name)) => home.join(name),
        _ => path.to_owned(),
    }
}

/// Something of the same name may have been in the trash before.
fn newest(items: Vec<TrashItem>, from: &[&PathBuf]) -> Vec<TrashItem> {
    let age = |item: &TrashItem| {
        let written = Path::new(&item.id).metadata().and_then(|info| info.modified());
        (item.time_deleted, written.unwrap_or(SystemTime::UNIX_EPOCH))
    };
    let of = |path: &&PathBuf| {
        let same = items.iter().filter(|item| item.original_path() == **path);
        same.max_by_key(|item| age(item)).cloned()
    };
    from.iter().filter_map(of).collect()
}

/// The crate's own words are for programmers.
fn reason(error: trash::Error) -> String {
    match error {
        trash::Error::FileSystem { path, source } => format!("{}: {source}", path.display()),
        trash::Error::Unknown { description } => description,
        other => other.to_string(),
    }
}
