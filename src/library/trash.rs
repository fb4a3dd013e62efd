//! Files on their way into the desktop's trash, all of them or none. Runs on the thread that asks,
//! which may wait for the disk; never removes anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use trash::TrashItem;
use trash::os_limited::{list, restore_all};

use super::Error;
use super::disk::is_gone;
use super::import_file::ImportContext;
use super::removal::Going;
use crate::store::images;

/// What was moved into the trash. At the end those come back that have a row: it was not removed after
/// all, or is another folder's by now. Whose row somebody else has removed stay there.
pub(super) struct Trashed<'a> {
    context: &'a ImportContext,
    /// Where it was, as the trash writes it down, and whose it is; only what this one has moved.
    from: BTreeMap<PathBuf, i64>,
}

impl<'a> Trashed<'a> {
    pub(super) fn new(context: &'a ImportContext) -> Self {
        Self { context, from: BTreeMap::new() }
    }

    /// Moves a file or package into the trash of its disk, else into that of the home. What is gone
    /// already is skipped, and what its owner removes meanwhile. The caller has the turn
    /// ([`super::name::Names::turn`]): of a file that goes meanwhile the crate may leave an empty one
    /// in the trash.
    pub(super) fn take(&mut self, (id, path, known): &Going) -> Result<(), Error> {
        if known.look(path)?.is_none() {
            return Ok(());
        }
        let path = whole(path);
        match trash::delete(&path) {
            Err(_) if is_gone(&path) => {}
            Err(error) => return Err(Error::Trash { why: reason(error) }),
            Ok(()) => drop(self.from.insert(path, *id)),
        }
        Ok(())
    }

    /// The places of those that have a row. Whether one has is not known where the database fails: its
    /// file is better where the row says.
    fn back(&self) -> Vec<&PathBuf> {
        let has_row = |id| self.context.store.read(|c| images::exists(c, id)).unwrap_or(true);
        let back = self.from.iter().filter(|&(path, &id)| is_gone(path) && has_row(id));
        back.map(|(path, _)| path).collect()
    }
}

impl Drop for Trashed<'_> {
    fn drop(&mut self) {
        if self.from.is_empty() {
            return;
        }
        // Who removes one of them for good looks for its file once we are done, or its row is gone.
        let _turn = self.context.names.turn();
        let back = self.back();
        if back.is_empty() {
            return;
        }
        let items = list().map(|items| newest(items, &back)).unwrap_or_default();
        if items.len() < back.len() {
            log::error!("{} files are not found in the trash", back.len() - items.len());
        }
        // Each by itself: one whose place is taken holds no other up.
        for item in items {
            if let Err(error) = restore_all([item]) {
                log::error!("a file does not come back from the trash: {}", reason(error));
            }
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
