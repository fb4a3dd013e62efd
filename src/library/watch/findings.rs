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

#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) root: Root,
    pub(super) leads: Option<Leads>,
    pub(super) files: Vec<(PathBuf, Stamp)>,
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
    /// Unchanged files and their new paths: a directory above them was renamed.
    pub(super) renamed: Vec<(WatchedFile, PathBuf)>,
    /// Missing files whose disk is missing, too.
    pub(super) away: Vec<WatchedFile>,
    /// Files whose disk has another device number now.
    pub(super) renumbered: Vec<(PathBuf, u64)>,
    /// The file sizes of images whose files are missing: a changed file of this size may be one of them.
    pub(super) lost: BTreeSet<u64>,
}

/// Compares the known files of a scope with those that were found.
pub(super) fn compare(known: Vec<WatchedFile>, findings: &Findings, scope: &Scope) -> Difference {
    let found: HashMap<&Path, &Stamp> =
        findings.files.iter().map(|(path, stamp)| (path.as_path(), stamp)).collect();
    let mut difference = Difference {
        found: findings.files.iter().map(|(path, _)| path.clone()).collect(),
        ..Difference::default()
    };
    let (mut unchanged, mut rewritten) = (BTreeSet::new(), BTreeSet::new());
    // The old and new device numbers of disks that were mounted again.
    let mut numbers: HashMap<u64, u64> = HashMap::new();
    let mut missing = Vec::new();
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
                    unchanged.insert(file.path);
                } else {
                    difference.lost.extend(file.image_id.map(|_| file.stamp.size));
                    rewritten.insert(file.path);
                }
            }
            None if file.path.ancestors().any(|at| findings.unseen.contains(at)) => {}
            None => missing.push(file),
        }
    }
    let mut new: HashMap<(u64, u64), &(PathBuf, Stamp)> = HashMap::new();
    if !missing.is_empty() {
        let is_new = |path: &PathBuf| !unchanged.contains(path) && !rewritten.contains(path);
        let files = findings.files.iter().filter(|(path, _)| is_new(path));
        new.extend(files.map(|file| ((file.1.device, file.1.inode), file)));
    }
    for mut file in missing {
        if let Some(&now) = numbers.get(&file.stamp.device) {
            file.stamp.device = now;
            difference.renumbered.push((file.path.clone(), now));
        }
        let identity = (file.stamp.device, file.stamp.inode);
        // A file that was renamed itself has a new change time, so this finds renamed directories only.
        if new.get(&identity).is_some_and(|(_, stamp)| stamp.same(&file.stamp))
            && let Some((path, _)) = new.remove(&identity)
        {
            unchanged.insert(path.clone());
            difference.renamed.push((file, path.clone()));
            continue;
        }
        let device = device_of(&file.path, findings, scope);
        if file.image_id.is_some() {
            difference.lost.insert(file.stamp.size);
        }
        match device == Some(file.stamp.device) {
            true => difference.gone.push(file),
            false => difference.away.push(file),
        }
    }
    let changed = findings.files.iter().filter(|(path, _)| !unchanged.contains(path));
    difference.changed = changed.cloned().collect();
    difference
}

/// The device on which a path would be.
fn device_of(path: &Path, findings: &Findings, scope: &Scope) -> Option<u64> {
    let walked = || path.ancestors().find_map(|at| findings.directories.get(at)).copied();
    match scope {
        Scope::All if findings.gone.is_empty() => walked(),
        _ => {
            let gone = path.ancestors().find_map(|at| findings.gone.get(at));
            gone.copied().or_else(walked)
        }
    }
}

/// A missing file.
#[derive(Clone, Copy, Debug)]
struct Gone {
    since: Instant,
    /// Whether it was looked for again after its time was up.
    confirmed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Missing {
    gone: BTreeMap<PathBuf, Gone>,
    /// Files on an unmounted disk.
    away: BTreeSet<PathBuf>,
    /// Files that vanished all at once. Their images stay until the files are back, or the owner
    /// removes them.
    vanished: BTreeSet<PathBuf>,
}

impl Missing {
    /// Stores the missing files of a look, and removes found and renamed ones. Leaves the other fields
    /// of `difference`.
    pub(super) fn absorb(&mut self, difference: &mut Difference, scope: &Scope, now: Instant) {
        // Files in the scope that are not reported as gone again were renamed: forget their old paths.
        let still: BTreeSet<&PathBuf> = difference.gone.iter().map(|file| &file.path).collect();
        self.gone.retain(|path, _| still.contains(path) || !scope.has(path));
        let renamed = std::mem::take(&mut difference.renamed);
        renamed.iter().for_each(|(file, _)| self.left(&file.path));
        std::mem::take(&mut difference.found).iter().for_each(|path| self.left(path));
        for file in std::mem::take(&mut difference.gone) {
            self.away.remove(&file.path);
            if self.vanished.contains(&file.path) {
                continue;
            }
            let gone = self.gone.entry(file.path).or_insert(Gone { since: now, confirmed: false });
            gone.confirmed |= now >= gone.since + GRACE;
        }
        for file in std::mem::take(&mut difference.away) {
            self.gone.remove(&file.path);
            if file.image_id.is_some() {
                self.away.insert(file.path);
            }
        }
    }

    /// The files that are to be looked for again, as their time is up.
    pub(super) fn to_confirm(&self, now: Instant) -> BTreeSet<PathBuf> {
        let due = |gone: &Gone| !gone.confirmed && gone.since + GRACE <= now;
        self.gone.iter().filter(|(_, gone)| due(gone)).map(|(path, _)| path.clone()).collect()
    }

    /// When the next file is to be looked for again.
    pub(super) fn due(&self) -> Option<Instant> {
        let waiting = self.gone.values().filter(|gone| !gone.confirmed);
        waiting.map(|gone| gone.since + GRACE).min()
    }

    /// Restarts the time of all gone files.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.gone.values_mut().for_each(|gone| *gone = Gone { since: now, confirmed: false });
    }

    /// The files that are gone for good.
    pub(super) fn leaving(&self) -> Vec<PathBuf> {
        self.gone.iter().filter(|(_, gone)| gone.confirmed).map(|(path, _)| path.clone()).collect()
    }

    /// Keeps the images of all files that are gone, as they vanished at once.
    pub(super) fn vanish(&mut self) {
        self.vanished.extend(std::mem::take(&mut self.gone).into_keys());
    }

    /// Forgets which files are kept, so that the next look treats them like the others.
    pub(super) fn look_for_kept(&mut self) {
        self.away.clear();
        self.vanished.clear();
    }

    /// Whether any file is gone that is not kept.
    pub(super) fn are_waited_for(&self) -> bool {
        !self.gone.is_empty()
    }

    pub(super) fn left(&mut self, path: &Path) {
        self.gone.remove(path);
        self.away.remove(path);
        self.vanished.remove(path);
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.gone.contains_key(path) || self.away.contains(path) || self.vanished.contains(path)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.kept() == 0
    }

    /// The number of files whose images stay, however long the files are missing.
    pub(super) fn kept(&self) -> usize {
        self.away.len() + self.vanished.len()
    }
}

#[cfg(test)]
mod tests;
