//! Compares the listing of a watched directory with the known files: which have changed, which are
//! missing and for how long. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::settings::GRACE;
use crate::store::watched::{Stamp, WatchedFile};

/// The paths that are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The whole directory.
    All,
    /// These paths, and all below them.
    Paths(BTreeSet<PathBuf>),
}

impl Scope {
    /// Whether a path was looked at.
    pub(super) fn has(&self, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Paths(paths) => path.ancestors().any(|at| paths.contains(at)),
        }
    }
}

/// How the directory itself was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Root {
    #[default]
    There,
    Missing,
    /// It cannot be read, and why.
    Closed(String),
}

/// The target of the path of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Leads {
    /// The path without links.
    pub(super) real: PathBuf,
    pub(super) device: u64,
    /// The inodes of its parent directories; empty if the directory was missing in between.
    pub(super) above: Vec<u64>,
}

impl Leads {
    /// Whether a link leads elsewhere, or a parent directory was replaced by another. A disk that was
    /// mounted or unmounted there does not count.
    pub(super) fn is_elsewhere(&self, before: &Self) -> bool {
        let is_on_its_disk = self.device == before.device && !before.above.is_empty();
        self.real != before.real || is_on_its_disk && self.above != before.above
    }
}

/// A file that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
    /// When its inode was created, in nanoseconds since 1970; `i64::MAX` if unknown.
    pub(super) born: i64,
}

impl Found {
    /// Whether this is a known file with another name. A rename changes the change time only. The
    /// inode must be older than the note, since a new file may get the inode number of a removed one.
    fn is_renamed(&self, known: &WatchedFile) -> bool {
        let is_same_inode = || self.born <= known.stamp.changed && known.checksum.is_some();
        self.stamp.same(&known.stamp) || self.stamp.is(&known.stamp) && is_same_inode()
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) root: Root,
    pub(super) leads: Option<Leads>,
    pub(super) files: Vec<Found>,
    /// Files that no record can name, as their names are not UTF-8.
    pub(super) unnamed: BTreeSet<PathBuf>,
    /// Files that were looked for and are missing, with the device that they would be on.
    pub(super) gone: BTreeMap<PathBuf, u64>,
    /// The directories, with their devices.
    pub(super) directories: BTreeMap<PathBuf, u64>,
    /// Whether a path is a directory: only a look at everything finds the path by which it is known.
    pub(super) has_directory: bool,
    /// Paths that could not be read: nothing in them counts as gone.
    pub(super) unseen: BTreeSet<PathBuf>,
}

/// The differences between a listing and the known files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Files that are new or were written since.
    pub(super) changed: Vec<(PathBuf, Stamp)>,
    pub(super) found: Vec<PathBuf>,
    pub(super) gone: Vec<WatchedFile>,
    /// Files that were renamed, or a directory above them: as they were known, and as they are now.
    pub(super) renamed: Vec<(WatchedFile, WatchedFile)>,
    /// Missing files whose disk is missing, too.
    pub(super) away: Vec<WatchedFile>,
    /// Files whose disk has another device number now.
    pub(super) renumbered: Vec<(PathBuf, u64)>,
    /// The file sizes of images whose files are missing: a changed file of this size may be one of them.
    pub(super) lost: BTreeSet<u64>,
}

/// Compares the known files of a scope with those that were found.
pub(super) fn compare(known: Vec<WatchedFile>, findings: &Findings, scope: &Scope) -> Difference {
    let files = &findings.files;
    let found: HashMap<&Path, &Stamp> = files
        .iter()
        .map(|file| (file.path.as_path(), &file.stamp))
        .collect();
    let mut difference = Difference {
        found: files.iter().map(|file| file.path.clone()).collect(),
        ..Difference::default()
    };
    let mut settled = BTreeSet::new();
    // The old and new device numbers of disks that were mounted again.
    let mut numbers: HashMap<u64, u64> = HashMap::new();
    let mut displaced = Vec::new();
    for file in known {
        match found.get(file.path.as_path()) {
            Some(stamp) => {
                let is_elsewhere = stamp.device != file.stamp.device;
                // Without the disk, its mount point may have another file of this name.
                if is_elsewhere && stamp.same_written(&file.stamp) {
                    numbers.insert(file.stamp.device, stamp.device);
                }
                if stamp.same(&file.stamp) {
                    let now = is_elsewhere.then(|| (file.path.clone(), stamp.device));
                    difference.renumbered.extend(now);
                    settled.insert(file.path);
                } else {
                    displaced.push(file);
                }
            }
            None if file.path.ancestors().any(|at| findings.unseen.contains(at)) => {}
            None => displaced.push(file),
        }
    }
    let mut new: HashMap<(u64, u64), &Found> = HashMap::new();
    if !displaced.is_empty() {
        let others = files.iter().filter(|file| !settled.contains(&file.path));
        new.extend(others.map(|file| ((file.stamp.device, file.stamp.inode), file)));
    }
    for mut file in displaced {
        let is_found = found.contains_key(file.path.as_path());
        if let Some(&now) = numbers.get(&file.stamp.device).filter(|_| !is_found) {
            file.stamp.device = now;
            difference.renumbered.push((file.path.clone(), now));
        }
        let identity = (file.stamp.device, file.stamp.inode);
        // A file that has got a second name (a hard link) is still here.
        let here = found.get(file.path.as_path());
        let is_here = here.is_some_and(|here| (here.device, here.inode) == identity);
        let now = new
            .get(&identity)
            .filter(|now| !is_here && now.path != file.path && now.is_renamed(&file));
        if let Some(Found { path, stamp, .. }) = now.copied() {
            new.remove(&identity);
            settled.insert(path.clone());
            let now = WatchedFile {
                path: path.clone(),
                stamp: *stamp,
                ..file
            };
            difference.renamed.push((file, now));
            continue;
        }
        difference
            .lost
            .extend(file.image_id.map(|_| file.stamp.size));
        if is_found {
            continue;
        }
        match device_of(&file.path, findings, scope) == Some(file.stamp.device) {
            true => difference.gone.push(file),
            false => difference.away.push(file),
        }
    }
    let changed = files.iter().filter(|file| !settled.contains(&file.path));
    difference.changed = changed
        .map(|file| (file.path.clone(), file.stamp))
        .collect();
    difference
}

/// The device on which a path would be.
fn device_of(path: &Path, findings: &Findings, scope: &Scope) -> Option<u64> {
    let walked = || {
        path.ancestors()
            .find_map(|at| findings.directories.get(at))
            .copied()
    };
    match scope {
        Scope::All if findings.gone.is_empty() => walked(),
        _ => {
            let gone = path.ancestors().find_map(|at| findings.gone.get(at));
            gone.copied().or_else(walked)
        }
    }
}

/// Why a file is missing, and how long its image stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    /// Its image leaves after a time. `confirmed`: the file was looked for again after that.
    Gone { since: Instant, confirmed: bool },
    /// Its disk is unmounted.
    Away,
    /// It vanished with all others: its image stays until the file is back, or the owner removes it.
    Vanished,
}

/// The missing files of a directory.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<PathBuf, Absence>);

impl Missing {
    /// Stores the missing files of a look, and removes found and renamed ones. Leaves the other fields
    /// of `difference`.
    pub(super) fn absorb(&mut self, difference: &mut Difference, scope: &Scope, now: Instant) {
        let gone = Absence::Gone {
            since: now,
            confirmed: false,
        };
        // Files in the scope that are not reported as gone again were renamed: forget their old paths.
        let still: BTreeSet<&PathBuf> = difference.gone.iter().map(|file| &file.path).collect();
        self.0
            .retain(|path, one| !one.is_gone() || still.contains(path) || !scope.has(path));
        let renamed = std::mem::take(&mut difference.renamed);
        renamed.iter().for_each(|(file, _)| self.left(&file.path));
        std::mem::take(&mut difference.found)
            .iter()
            .for_each(|path| self.left(path));
        for file in std::mem::take(&mut difference.gone) {
            match self.0.entry(file.path).or_insert(gone) {
                Absence::Gone { since, confirmed } => *confirmed |= now >= *since + GRACE,
                away @ Absence::Away => *away = gone,
                Absence::Vanished => {}
            }
        }
        for WatchedFile { path, image_id, .. } in std::mem::take(&mut difference.away) {
            if image_id.is_none() {
                self.0.remove(&path);
            } else if self.0.get(&path) != Some(&Absence::Vanished) {
                self.0.insert(path, Absence::Away);
            }
        }
    }

    /// The files that are gone, but not yet looked for again, and when their time is up.
    fn waiting(&self) -> impl Iterator<Item = (&PathBuf, Instant)> {
        self.0.iter().filter_map(|(path, one)| match one {
            Absence::Gone {
                since,
                confirmed: false,
            } => Some((path, *since + GRACE)),
            _ => None,
        })
    }

    /// The files that are to be looked for again, as their time is up.
    pub(super) fn to_confirm(&self, now: Instant) -> BTreeSet<PathBuf> {
        self.waiting()
            .filter(|(_, due)| *due <= now)
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// When the next file is to be looked for again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting().map(|(_, due)| due).min()
    }

    fn replace_gone(&mut self, by: Absence) {
        self.0
            .values_mut()
            .filter(|one| one.is_gone())
            .for_each(|one| *one = by);
    }

    /// Restarts the time of all gone files.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.replace_gone(Absence::Gone {
            since: now,
            confirmed: false,
        });
    }

    /// Keeps the images of all files that are gone, as they vanished at once.
    pub(super) fn vanish(&mut self) {
        self.replace_gone(Absence::Vanished);
    }

    /// The files that are gone for good.
    pub(super) fn leaving(&self) -> Vec<PathBuf> {
        let is_confirmed = |one: &Absence| {
            matches!(
                one,
                Absence::Gone {
                    confirmed: true,
                    ..
                }
            )
        };
        self.0
            .iter()
            .filter(|(_, one)| is_confirmed(one))
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Forgets which files are kept, so that the next look treats them like the others.
    pub(super) fn look_for_kept(&mut self) {
        self.0.retain(|_, one| one.is_gone());
    }

    /// Whether any file is gone that is not kept.
    pub(super) fn are_waited_for(&self) -> bool {
        self.0.len() > self.kept()
    }

    pub(super) fn left(&mut self, path: &Path) {
        self.0.remove(path);
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of files whose images stay, however long the files are missing.
    pub(super) fn kept(&self) -> usize {
        self.0.values().filter(|one| !one.is_gone()).count()
    }
}

impl Absence {
    fn is_gone(self) -> bool {
        matches!(self, Self::Gone { .. })
    }
}

#[cfg(test)]
mod tests;
