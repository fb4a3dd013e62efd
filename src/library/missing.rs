//! The judgement of the library guard: of rows whose files are not there, which go, and when all are
//! kept.
//!
//! One picture that its owner has removed takes its row with it. Many at once are a disk that is not
//! mounted, a directory that was moved or a synchronisation that went wrong: their tags, folders and
//! playlists are worth more than a tidy list, so they stay until their owner says otherwise. Judging
//! is pure; purging runs on the thread that asks.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::Error;
use super::disk::is_gone;
use super::removal::clear;
use crate::digest::Checksum;
use crate::events::EventBus;
use crate::store::Store;
use crate::store::images;
use crate::store::purge::{self, Purged};
use crate::store::watched;
use crate::wire::{Event, GalleryDomain, OrphanReason};

/// An image's id, its file or package, and what is in it.
pub(super) type Row = (i64, PathBuf, Checksum);

/// So many may be missing however small the library is.
const FEW: usize = 20;
/// One of so many may be missing however large it is.
const SHARE: usize = 5;
/// Rows that one transaction purges: others that write wait for tenths of a second, not for all.
const AT_ONCE: usize = 2000;

/// A directory in which rows have their files: most libraries have one, some have been moved.
#[derive(Debug, Default)]
struct Home {
    missing: Vec<i64>,
    total: usize,
    is_there: bool,
}

/// What is to become of the rows whose files are missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// They go.
    pub(super) purge: Vec<i64>,
    /// They stay.
    pub(super) keep: Vec<i64>,
    /// All rows, those with files too.
    pub(super) total: usize,
}

impl Verdict {
    /// On all rows, with the files that the library's directory was seen to have.
    pub(super) fn on(rows: &[Row], files: &[PathBuf]) -> Self {
        let listed: HashSet<&Path> = files.iter().map(PathBuf::as_path).collect();
        let mut homes: BTreeMap<&Path, Home> = BTreeMap::new();
        for (id, path, _) in rows {
            let directory = path.parent().unwrap_or(path);
            let home = homes.entry(directory).or_default();
            home.total += 1;
            if !listed.contains(path.as_path()) && is_gone(path) {
                home.missing.push(*id);
            }
        }
        homes.iter_mut().for_each(|(directory, home)| home.is_there = directory.is_dir());
        judge(homes.into_values())
    }

    /// All that are missing.
    pub(super) fn missing(self) -> Vec<i64> {
        [self.purge, self.keep].concat()
    }
}

fn judge(homes: impl Iterator<Item = Home>) -> Verdict {
    let homes: Vec<Home> = homes.collect();
    let total = homes.iter().map(|home| home.total).sum();
    let missing: usize = homes.iter().map(|home| home.missing.len()).sum();
    let many = missing > FEW && missing * SHARE > total;
    let mut verdict = Verdict { total, ..Verdict::default() };
    for home in homes {
        // A whole directory is more likely away than emptied, however few were in it.
        let away = !home.is_there || (home.missing.len() == home.total && home.total > 1);
        let list = if many || away { &mut verdict.keep } else { &mut verdict.purge };
        list.extend(home.missing);
    }
    verdict
}

/// Removes the rows of those images whose files are not there, with every reference to them, and
/// tells of it. Returns how many went.
pub(super) fn purge(store: &Store, bus: &EventBus, ids: &[i64]) -> Result<usize, Error> {
    let (mut count, mut references) = (0, Purged::default());
    for some in ids.chunks(AT_ONCE) {
        let gone = purge_some(store, some)?;
        count += gone.len();
        gone.iter().for_each(|lost| references += lost.purged);
        for Lost { id, path, purged, .. } in &gone {
            log::warn!("{} is gone: image {id} leaves the library", path.display());
            bus.publish(&Event::ImageOrphanPurged {
                image_id: *id,
                reason: OrphanReason::FileMissing,
                monitor_states_purged: purged.monitor_states,
                history_entries_purged: purged.history_entries,
                playlists_affected: purged.playlists,
            });
        }
        clear(store, gone.iter().filter_map(|lost| lost.preview.as_deref()));
    }
    let images = (count > 0).then_some(GalleryDomain::Images);
    for domain in images.into_iter().chain(references.domains()) {
        bus.publish(&Event::GalleryChanged { domain });
    }
    Ok(count)
}

/// A row that went.
struct Lost {
    id: i64,
    path: PathBuf,
    preview: Option<PathBuf>,
    purged: Purged,
}

fn purge_some(store: &Store, ids: &[i64]) -> Result<Vec<Lost>, Error> {
    store.write(|c| {
        let mut gone = Vec::new();
        for &id in ids {
            // Looked at again where nobody can rename it or give it back meanwhile.
            let Some((path, preview)) = images::places(c, id)? else { continue };
            if is_gone(&path) {
                // In a watched directory it may return, or be there still where this was a copy.
                watched::forget_image(c, id)?;
                let purged = purge::one(c, id)?;
                gone.push(Lost { id, path, preview, purged });
            }
        }
        Ok(gone)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(homes: &[(usize, usize, bool)], purged: usize, kept: usize) {
        let homes = homes.iter().map(|&(missing, total, is_there)| Home {
            missing: (0..missing as i64).collect(),
            total,
            is_there,
        });
        let verdict = judge(homes);
        assert_eq!((verdict.purge.len(), verdict.keep.len()), (purged, kept), "{verdict:?}");
    }

    #[test]
    fn guard_keeps_rows_over_a_fifth_and_over_twenty() {
        check(&[(0, 0, false)], 0, 0);
        check(&[(1, 1, true)], 1, 0);
        check(&[(20, 21, true)], 20, 0);
        check(&[(21, 105, true)], 21, 0);
        check(&[(21, 104, true)], 0, 21);
        check(&[(1200, 10_000, true)], 1200, 0);
        check(&[(9998, 10_000, true)], 0, 9998);
    }

    #[test]
    fn guard_keeps_rows_of_a_directory_that_is_away_or_empty() {
        check(&[(3, 3, true)], 0, 3);
        check(&[(1, 1, false)], 0, 1);
        check(&[(2, 2, false), (1, 9, true)], 1, 2);
        check(&[(30, 30, false), (1, 9, true)], 0, 31);
    }
}
