//! Compares the files of a walk with the known ones: which are where they were, which were renamed,
//! which are missing, and which are to be read. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::package::PackageVideo;
use crate::store::watched::{Missing, Stamp, WatchedFile};

/// How long an image without a file waits for the file to appear again, also under another name.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// How the directory itself was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Root {
    #[default]
    There,
    Missing,
    /// It cannot be read, and why.
    Closed(String),
}

/// A file that was found.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
    /// When its inode was created, in nanoseconds since 1970; `i64::MAX` if unknown.
    pub(super) born: i64,
}

/// What a walk has found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) root: Root,
    /// Sorted by name.
    pub(super) files: Vec<Seen>,
    /// The directories with their devices; a missing one has the device on which it would be.
    pub(super) directories: BTreeMap<PathBuf, u64>,
    /// Paths that could not be read: nothing in them counts as gone.
    pub(super) unread: BTreeSet<PathBuf>,
    /// Files that no row can name, as their names are not UTF-8.
    pub(super) unnamed: BTreeSet<PathBuf>,
    /// The packages, and the videos of those that have one. All others are files.
    pub(super) packages: BTreeMap<PathBuf, Option<PackageVideo>>,
    /// Links, and the devices of the directories that they are in.
    pub(super) links: BTreeMap<PathBuf, u64>,
    /// Whether a path is a directory or in a package: only a walk of everything finds the path by which
    /// it is known.
    pub(super) has_directory: bool,
}

/// A file that has another path now, or the same, if its image was missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) row: WatchedFile,
    pub(super) to: PathBuf,
    pub(super) stamp: Stamp,
}

/// What becomes of the image of a file that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Its disk is away: the image is kept, without a time limit.
    Away,
    /// The image waits for the file.
    Missing,
    /// The image has waited long enough.
    Expired,
}

/// The differences between a walk and the rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Files whose disk has another device number now.
    pub(super) devices: Vec<(PathBuf, u64)>,
    pub(super) moves: Vec<Move>,
    /// Files that are gone, with or without images.
    pub(super) gone: Vec<(WatchedFile, Loss)>,
    /// Files that may have the content of a missing image, and are to be read before all others.
    pub(super) first: Vec<(PathBuf, Stamp)>,
    pub(super) read: Vec<(PathBuf, Stamp)>,
    /// How many files with images are gone.
    pub(super) lost: usize,
    /// Whether any known file is there.
    pub(super) is_there: bool,
}

impl Difference {
    /// Whether all files have vanished at once, of more than one: their disk is more likely unmounted
    /// than emptied.
    pub(super) fn is_away(&self) -> bool {
        !self.is_there && self.lost > 1
    }
}

/// Compares the rows of the files that were looked for with those that were found. `waiting` has the
/// rows of missing images, whose files may be found here. `others`: whether a known file is there that
/// was not looked for.
pub(super) fn compare(
    rows: &[WatchedFile],
    mut waiting: Vec<WatchedFile>,
    missing: &HashMap<i64, Missing>,
    found: &Found,
    others: bool,
    now: i64,
) -> Difference {
    let files: HashMap<&Path, &Seen> = found.files.iter().map(|f| (&*f.path, f)).collect();
    let sought: HashSet<&Path> = rows.iter().map(|row| &*row.path).collect();
    let mut difference = Difference::default();
    waiting.retain(|row| !sought.contains(&*row.path));
    let (mut settled, displaced) = settle(rows, waiting, (&files, missing), &mut difference);
    let mut is_there = others || settled.values().any(|has_image| *has_image);
    let displaced = find_moves(
        displaced,
        (&found.files, &files),
        &mut settled,
        &mut difference,
    );
    is_there |= difference
        .moves
        .iter()
        .any(|one| one.row.image_id.is_some());
    let mut sizes: HashSet<u64> = missing.values().map(|one| one.size).collect();
    let mut gone = Vec::new();
    for row in displaced {
        let has_image = row.image_id.is_some();
        sizes.extend(has_image.then_some(row.stamp.size));
        let is_unread = || row.path.ancestors().any(|at| found.unread.contains(at));
        if files.contains_key(&*row.path) {
            is_there |= has_image;
        } else if sought.contains(&*row.path) && !is_unread() {
            gone.push(row);
        }
    }
    difference.lost = gone.iter().filter(|row| row.image_id.is_some()).count();
    difference.is_there = is_there;
    difference.lose(gone, missing, &found.directories, now);
    let read = found.files.iter();
    let read = read.filter(|file| !settled.contains_key(&*file.path));
    let read = read.map(|file| (file.path.clone(), file.stamp));
    (difference.first, difference.read) = read.partition(|(_, stamp)| sizes.contains(&stamp.size));
    difference
}

/// The files that are certainly known, with whether they have images, and the rows of all others.
type Settled<'f> = (HashMap<&'f Path, bool>, Vec<WatchedFile>);

fn settle<'f>(
    rows: &[WatchedFile],
    elsewhere: Vec<WatchedFile>,
    (files, missing): (&HashMap<&'f Path, &'f Seen>, &HashMap<i64, Missing>),
    difference: &mut Difference,
) -> Settled<'f> {
    let (mut settled, mut displaced) = (HashMap::new(), Vec::new());
    // The old and new device numbers of disks that were mounted again.
    let mut numbers: HashMap<u64, u64> = HashMap::new();
    for row in rows {
        let file = files.get(&*row.path);
        let Some(file) = file.filter(|file| file.stamp.same(&row.stamp)) else {
            displaced.push(row.clone());
            continue;
        };
        if file.stamp.device != row.stamp.device {
            numbers.insert(row.stamp.device, file.stamp.device);
            difference
                .devices
                .push((row.path.clone(), file.stamp.device));
        }
        settled.insert(&*file.path, row.image_id.is_some());
        if row.image_id.is_some_and(|id| missing.contains_key(&id)) {
            difference.moves.push(Move {
                row: row.clone(),
                to: row.path.clone(),
                stamp: file.stamp,
            });
        }
    }
    displaced.extend(elsewhere);
    for row in &mut displaced {
        if let Some(&number) = numbers.get(&row.stamp.device) {
            row.stamp.device = number;
            difference.devices.push((row.path.clone(), number));
        }
    }
    (settled, displaced)
}

/// Finds the displaced files that have another path now; returns the rows of all others.
fn find_moves<'f>(
    displaced: Vec<WatchedFile>,
    (all, files): (&'f [Seen], &HashMap<&'f Path, &'f Seen>),
    settled: &mut HashMap<&'f Path, bool>,
    difference: &mut Difference,
) -> Vec<WatchedFile> {
    let mut new: HashMap<(u64, u64), &Seen> = HashMap::new();
    if !displaced.is_empty() {
        for file in all.iter().filter(|file| !settled.contains_key(&*file.path)) {
            new.entry(file.stamp.identity()).or_insert(file);
        }
    }
    let mut others = Vec::new();
    for row in displaced {
        let identity = row.stamp.identity();
        // A file with a second name (a hard link) has not moved.
        let is_here = files
            .get(&*row.path)
            .is_some_and(|file| file.stamp.identity() == identity);
        match new.get(&identity) {
            Some(file) if !is_here && file.is_renamed(&row) => {
                settled.insert(&*file.path, row.image_id.is_some());
                let to = file.path.clone();
                let stamp = file.stamp;
                difference.moves.push(Move { row, to, stamp });
                new.remove(&identity);
            }
            _ => others.push(row),
        }
    }
    others
}

impl Seen {
    /// Whether this is a known file with another name. A rename changes the change time only. The
    /// inode must be older than the row, since a new file may get the inode number of a removed one.
    fn is_renamed(&self, row: &WatchedFile) -> bool {
        let is_old = self.born <= row.stamp.changed || self.stamp.changed == row.stamp.changed;
        self.stamp.same_written(&row.stamp) && is_old
    }
}

impl Difference {
    /// Decides what becomes of the images of files that are gone, unless they are marked so already.
    fn lose(
        &mut self,
        gone: Vec<WatchedFile>,
        missing: &HashMap<i64, Missing>,
        directories: &BTreeMap<PathBuf, u64>,
        now: i64,
    ) {
        let all_away = self.is_away();
        let found = self.moves.iter().filter_map(|one| one.row.image_id);
        let found: HashSet<i64> = found.collect();
        let is_away = |row: &&WatchedFile| {
            let device = row.path.ancestors().find_map(|at| directories.get(at));
            all_away || device != Some(&row.stamp.device)
        };
        let away = gone.iter().filter(is_away).filter_map(|row| row.image_id);
        let away: HashSet<i64> = away.collect();
        for row in gone {
            let Some(id) = row.image_id else {
                // The row of a file that was deleted in murald stays.
                let is_unusable = row.checksum.is_none() && !is_away(&&row);
                self.gone
                    .extend(is_unusable.then_some((row, Loss::Missing)));
                continue;
            };
            let marked = missing.get(&id).filter(|_| !found.contains(&id));
            // An image that is there does not need a file only because another one is away.
            let is_kept = marked.is_some() && away.contains(&id);
            let loss = match marked {
                _ if is_kept || is_away(&&row) => Loss::Away,
                Some(one) if one.is_due(now) => Loss::Expired,
                _ => Loss::Missing,
            };
            let is_news = match marked.map(|one| one.since) {
                Some(0) => loss != Loss::Away,
                Some(_) => loss != Loss::Missing,
                None => true,
            };
            self.gone.extend(is_news.then_some((row, loss)));
        }
        // The last loss decides whether the image has a time limit.
        self.gone.sort_by_key(|(_, loss)| *loss == Loss::Away);
    }
}

impl Difference {
    /// Has the image of a package's video follow to the file that the package names now. Its content is
    /// read there.
    pub(super) fn follow_videos(&mut self, found: &Found) {
        let is_new = |path: &Path| {
            self.first
                .iter()
                .chain(&self.read)
                .any(|(new, _)| new == path)
        };
        let video = |row: &WatchedFile| {
            let package = row.path.ancestors().find_map(|at| found.packages.get(at));
            let video = package.and_then(Option::as_ref).map(|video| &video.path);
            video.filter(|video| row.image_id.is_some() && is_new(video))
        };
        let moves = self.gone.iter().filter_map(|(row, _)| {
            let to = video(row)?.clone();
            let stamp = row.stamp;
            let row = row.clone();
            Some(Move { row, to, stamp })
        });
        let moves: Vec<Move> = moves.collect();
        self.gone
            .retain(|(row, _)| !moves.iter().any(|one| one.row.path == row.path));
        self.moves.extend(moves);
    }
}

impl Missing {
    /// Whether its image has waited long enough for a file.
    pub(super) fn is_due(&self, now: i64) -> bool {
        self.since > 0 && now - self.since >= GRACE.as_micros() as i64
    }
}

/// The moves in slices of about `most`, each of which is one transaction. A target is free when its turn
/// comes, unless the files have changed places in a cycle, which is in one slice.
pub(super) fn slices(moves: Vec<Move>, most: usize) -> Vec<Vec<Move>> {
    let mut left: BTreeMap<PathBuf, Move> = moves
        .into_iter()
        .map(|one| (one.row.path.clone(), one))
        .collect();
    let into: HashMap<PathBuf, PathBuf> = left
        .values()
        .map(|one| (one.to.clone(), one.row.path.clone()))
        .collect();
    let is_end = |one: &&Move| one.to == one.row.path || !left.contains_key(&one.to);
    let mut ends: Vec<PathBuf> = left
        .values()
        .filter(is_end)
        .map(|one| one.to.clone())
        .collect();
    let mut slices: Vec<Vec<Move>> = vec![Vec::new()];
    loop {
        let is_cycle = ends.is_empty();
        let next = || left.keys().next().cloned();
        let Some(mut target) = ends.pop().or_else(next) else {
            break;
        };
        if is_cycle {
            slices.push(Vec::new());
        }
        while let Some(one) = into.get(&target).and_then(|from| left.remove(from)) {
            let slice = slices
                .last_mut()
                .filter(|slice| is_cycle || slice.len() < most);
            target.clone_from(&one.row.path);
            match slice {
                Some(slice) => slice.push(one),
                None => slices.push(vec![one]),
            }
        }
    }
    slices.retain(|slice| !slice.is_empty());
    slices
}

#[cfg(test)]
mod tests;
