//! Files that stayed on the disk when their images were deleted, and are removed afterwards. Runs on the
//! thread that asks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::known::Known;
use super::removal::Going;
use super::trash::Trashed;
use super::{Error, Library, disk};
use crate::store::watched;

impl Library {
    /// Removes such files, each with those of the same content that stayed, too. Every file is compared
    /// with what murald knows before any is removed. Returns how many there were.
    pub(crate) fn remove_kept(&self, paths: &[PathBuf], trash: bool) -> Result<usize, Error> {
        let mut files = BTreeMap::new();
        for path in paths {
            let kept = self.store.read(|c| watched::kept(c, path))?;
            if kept.is_empty() {
                return Err(Error::NotKept { path: path.clone() });
            }
            files.extend(kept.into_iter().map(|file| (file.path.clone(), file)));
        }
        let known = |file: &watched::WatchedFile| {
            disk::answers(&file.path)?;
            Ok((NOBODY, file.path.clone(), Known::kept(&self.context, file)?))
        };
        let going = files.values().map(known).collect::<Result<Vec<Going>, Error>>()?;
        let mut trashed = Trashed::new(&self.context);
        let turn = self.context.names.turn();
        for one @ (_, path, known) in &going {
            match trash {
                true => trashed.take(one)?,
                false if known.is_removed(path) => {}
                false => return Err(not_removed(path)),
            }
            self.store.note(|c| watched::forget(c, path))?;
        }
        drop(turn);
        Ok(going.len())
    }
}

/// No image's id: nothing comes back from the trash.
const NOBODY: i64 = 0;

fn not_removed(path: &Path) -> Error {
    Error::file("remove", path)(std::io::Error::other("the log says why"))
}
