//! The library guard: decides which rows with missing files are purged and when all are kept, and keeps
//! its last verdict.
//!
//! One missing picture takes its row with it. Many at once are an unmounted disk, a moved directory or
//! a failed synchronisation: their tags, folders and playlists are kept until their owner purges them.
//! Judging is pure; purging runs on the thread that asks. The verdict is renewed only when rows or
//! directories have changed, and a disk that does not answer changes nothing of it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::Error;
use super::context::ImportContext;
use super::disk::is_gone;
use super::file_removal::clear_own;
use crate::digest::Checksum;
use crate::store::images::{self, Places};
use crate::store::purge::{self, Purged};
use crate::store::{self, Connection, Store, watched};
use crate::sys::lock;
use crate::wire::{Event, GalleryDomain, LibraryHealth, OrphanReason, own_path};

/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard(Arc<Mutex<GuardState>>);

#[derive(Debug, Default)]
pub(super) struct GuardState {
    pub(super) health: LibraryHealth,
    pub(super) total: usize,
    /// The state of rows and directories that the verdict is about.
    pub(super) seen: Option<Arc<Signature>>,
}

/// Equal where no row and no file has come or gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signature {
    generation: u64,
    /// Each directory; none where it is not there.
    homes: Vec<(PathBuf, Option<Stamp>)>,
}

/// Device, inode and time of change of a directory.
type Stamp = (u64, u64, i64, i64);

impl Guard {
    /// Takes note of what was found missing; from here on rows are purged again, or not.
    pub(super) fn note(&self, store: &Store, generation: u64, rows: &[Row], verdict: &Verdict) {
        let guarded = !verdict.keep.is_empty();
        let homes = || homes(rows).into_iter().map(PathBuf::from).collect();
        let seen = guarded.then(|| Arc::new(Signature::of(generation, homes())));
        let mut state = self.lock();
        if guarded && !state.health.guarded {
            log::error!(
                "{} of {} pictures are missing; keeping their entries. Is the disk mounted? \
                 `murald library purge-missing` removes them",
                verdict.keep.len(),
                verdict.total
            );
        } else if state.health.guarded && !guarded {
            log::info!("all missing pictures are back");
        }
        state.health = LibraryHealth { missing: verdict.keep.len(), guarded };
        state.total = verdict.total;
        state.seen = seen;
        drop(state);
        store.keep_rows(guarded);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, GuardState> {
        // Every holder leaves it whole between two statements that could panic.
        lock(&self.0)
    }
}

/// The directories of rows.
fn homes(rows: &[Row]) -> BTreeSet<&Path> {
    rows.iter().filter_map(|(_, path, _)| path.parent()).collect()
}

impl Signature {
    fn of(generation: u64, homes: Vec<PathBuf>) -> Self {
        let look = |home: PathBuf| {
            let found = home.metadata().ok();
            let found = found.map(|m| (m.dev(), m.ino(), m.mtime(), m.mtime_nsec()));
            (home, found)
        };
        Self { generation, homes: homes.into_iter().map(look).collect() }
    }

    pub(super) fn is_still_so(&self, generation: u64) -> bool {
        let homes = self.homes.iter().map(|(home, _)| home);
        *self == Self::of(generation, homes.cloned().collect())
    }
}

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

/// The verdict on rows whose files are missing.
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
        let mut elsewhere = Vec::new();
        for (id, path, _) in rows {
            let directory = path.parent().unwrap_or(path);
            let home = homes.entry(directory).or_default();
            home.total += 1;
            if own_path(path) != path {
                // Nobody looks at where it is now: its owner is told.
                elsewhere.push(*id);
            } else if !listed.contains(path.as_path()) && is_gone(path) {
                home.missing.push(*id);
            }
        }
        homes.iter_mut().for_each(|(directory, home)| home.is_there = directory.is_dir());
        let mut verdict = judge(homes.into_values());
        verdict.keep.extend(elsewhere);
        verdict
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
/// publishes it. Returns how many were removed.
pub(super) fn purge(context: &ImportContext, ids: &[i64]) -> Result<usize, Error> {
    let ImportContext { store, bus, .. } = context;
    let (mut count, mut references) = (0, Purged::default());
    for some in ids.chunks(AT_ONCE) {
        let gone = loop {
            if let Some(gone) = MissingRows::look(store, some)?.purge(store)? {
                break gone;
            }
        };
        count += gone.len();
        for Lost { id, places, purged } in &gone {
            references += *purged;
            log::warn!("{} was deleted; removed image {id}", places.home.display());
            bus.publish(&Event::ImageOrphanPurged {
                image_id: *id,
                reason: OrphanReason::FileMissing,
                monitor_states_purged: purged.monitor_states,
                history_entries_purged: purged.history_entries,
                playlists_affected: purged.playlists,
            });
        }
        clear_own(context, gone.iter().filter_map(|lost| lost.places.preview.as_deref()));
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
    places: Places,
    purged: Purged,
}

/// Rows whose files were not there, looked at outside of any transaction: every writer would wait for
/// the disk.
struct MissingRows {
    rows: Vec<(i64, Places)>,
    given_back: u64,
}

impl MissingRows {
    fn look(store: &Store, ids: &[i64]) -> Result<Self, Error> {
        let given_back = store.given_back();
        let place = |c: &Connection, id: i64| Ok(images::places(c, id)?.map(|places| (id, places)));
        let rows: Result<Vec<_>, store::Error> =
            store.read(|c| ids.iter().filter_map(|&id| place(c, id).transpose()).collect());
        let mut rows = rows?;
        rows.retain(|(_, places)| is_gone(&places.home));
        Ok(Self { rows, given_back })
    }

    /// Removes those that are as they were. None where a file was given back since: it may be that of
    /// one of them.
    fn purge(self, store: &Store) -> Result<Option<Vec<Lost>>, Error> {
        store.write(|c| {
            if store.given_back() != self.given_back {
                return Ok(None);
            }
            let mut gone = Vec::new();
            for (id, places) in self.rows {
                // An image that was renamed or rewritten has a file.
                if images::places(c, id)?.as_ref() == Some(&places) {
                    // In a watched directory it may return, or be there still where this was a copy.
                    watched::forget_image(c, id)?;
                    gone.push(Lost { id, places, purged: purge::one(c, id)? });
                }
            }
            Ok(Some(gone))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::edits::take_home;
    use crate::store::images::NewImage;
    use crate::wire::Format;

    /// Rows of files that are not there.
    fn rows(store: &Store, directory: &Path, names: &[&str]) -> Vec<i64> {
        let row = |(at, name): (usize, &&str)| NewImage {
            name: (*name).to_owned(),
            path: directory.join(name),
            format: Format::Png,
            width: 4,
            height: 3,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: 1,
            checksum: [at as u8; 32],
            description: String::new(),
            colors: Vec::new(),
            hue_group: 99,
            folder_id: None,
            source_path: "/from".into(),
            in_place: false,
            web: None,
        };
        let insert = |row: &NewImage| store.write(|c| images::insert(c, row)).unwrap();
        names.iter().enumerate().map(row).map(|row| insert(&row)).collect()
    }

    #[test]
    fn rows_are_purged_by_what_was_seen_of_them_and_no_disk_is_asked() {
        let (directory, store) = store::tests::scratch();
        let ids = rows(&store, directory.path(), &["there", "gone", "renamed", "hangs"]);
        std::fs::write(directory.path().join("there"), "").unwrap();
        let look = || MissingRows::look(&store, &ids).unwrap();
        let purged = |seen: MissingRows| -> Option<Vec<i64>> {
            let gone = seen.purge(&store).unwrap();
            gone.map(|gone| gone.iter().map(|lost| lost.id).collect())
        };
        let seen = look();
        let count = store.write(|c| -> Result<(), store::Error> {
            store.count_given_back(c);
            Ok(())
        });
        count.unwrap();
        assert_eq!(purged(seen), None, "it may be the file of one of them");
        let seen = look();
        store.write(|c| take_home(c, ids[2], &directory.path().join("other"))).unwrap();
        // A look would tell that it is back, or wait for its disk.
        std::fs::write(directory.path().join("hangs"), "").unwrap();
        assert_eq!(purged(seen), Some(vec![ids[1], ids[3]]));
    }

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
