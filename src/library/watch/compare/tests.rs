//! The rules of `compare`, `slices` and `place` beside an oracle: files in memory, random operations,
//! walks in the middle of them, and kills between transactions.
//!
//! `MURALD_RUNS=N` makes N runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::super::place::{Facts, Owner, Placement, Same, place};
use super::{Found, Loss, Move, Seen, compare, slices};
use crate::digest::Checksum;
use crate::store::watched::{Missing, Stamp, WatchedFile};

mod cells;
mod operations;

const SECOND: i64 = 1_000_000;
/// Longer than a missing file is waited for.
const GRACE: i64 = 11 * SECOND;

#[derive(Clone)]
struct Inode {
    content: u64,
    stamp: Stamp,
    born: i64,
}

/// The disk. Times are in microseconds.
#[derive(Default)]
struct Disk {
    files: BTreeMap<String, u64>,
    inodes: HashMap<u64, Inode>,
    /// The files of the mount point while the disk is unmounted.
    under: Option<BTreeMap<String, Inode>>,
    now: i64,
    last: u64,
    device: u64,
    /// Whether all files have the same size.
    equal: bool,
}

fn at(name: &str) -> PathBuf {
    Path::new("/w").join(name)
}

fn checksum(content: u64) -> Checksum {
    let mut sum = Checksum::default();
    sum[..8].copy_from_slice(&content.to_le_bytes());
    sum
}

impl Disk {
    fn tick(&mut self, micros: i64) {
        self.now += micros;
    }

    fn inode(&self, content: u64) -> Inode {
        let stamp = Stamp {
            size: if self.equal { 100 } else { 100 + content % 50 },
            modified: self.now,
            changed: self.now,
            inode: self.last,
            device: 0,
        };
        Inode {
            content,
            stamp,
            born: self.now,
        }
    }

    /// Writes a file, into its inode if it is there; `keep`: with its old time.
    fn write(&mut self, name: &str, content: u64, keep: bool) {
        self.tick(10_000);
        if let Some(&id) = self.files.get(name) {
            let mut new = self.inode(content);
            let old = &self.inodes[&id];
            (new.born, new.stamp.inode) = (old.born, id);
            if keep {
                new.stamp.modified = old.stamp.modified;
            }
            self.inodes.insert(id, new);
        } else {
            self.last += 1;
            self.files.insert(name.to_owned(), self.last);
            self.inodes.insert(self.last, self.inode(content));
        }
    }

    fn touch(&mut self, id: u64) {
        self.tick(10_000);
        self.inodes.get_mut(&id).unwrap().stamp.changed = self.now;
    }

    fn rename(&mut self, from: &str, to: &str) {
        let id = self.files.remove(from).unwrap();
        self.touch(id);
        self.files.insert(to.to_owned(), id);
    }

    fn remove(&mut self, name: &str) {
        let id = self.files.remove(name).unwrap();
        self.touch(id);
    }

    fn link(&mut self, from: &str, to: &str) {
        let id = self.files[from];
        self.touch(id);
        self.files.insert(to.to_owned(), id);
    }

    fn content(&self, name: &str) -> u64 {
        match &self.under {
            Some(under) => under[name].content,
            None => self.inodes[&self.files[name]].content,
        }
    }

    fn walk(&self) -> Found {
        let device = if self.under.is_some() { 1 } else { self.device };
        let mut files: Vec<Seen> = Vec::new();
        let mut add = |name: &String, inode: &Inode| {
            let mut stamp = inode.stamp;
            stamp.device = device;
            files.push(Seen {
                path: at(name),
                stamp,
                born: inode.born,
            });
        };
        match &self.under {
            Some(under) => under.iter().for_each(|(name, inode)| add(name, inode)),
            None => {
                let visible = self.files.iter().filter(|(name, _)| !name.starts_with('.'));
                visible.for_each(|(name, id)| add(name, &self.inodes[id]));
            }
        }
        Found {
            files,
            directories: [(at(""), device)].into(),
            ..Found::default()
        }
    }
}

#[derive(Clone, Debug)]
struct Image {
    content: Checksum,
    path: PathBuf,
    size: u64,
    missing: Option<i64>,
    tags: BTreeSet<i64>,
}

/// A walk that a kill has ended.
struct Killed;

#[derive(Default)]
struct Library {
    images: BTreeMap<i64, Image>,
    rows: BTreeMap<PathBuf, WatchedFile>,
    last: i64,
    /// The files of the last walk.
    seen: BTreeSet<PathBuf>,
    /// Kills that are left to be made, as random numbers.
    kills: Option<Random>,
}

#[derive(Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % below as u64) as usize
    }

    fn half(&mut self) -> bool {
        self.next(2) == 0
    }
}

impl Library {
    fn look(&mut self, disk: &Disk) {
        while self.look_once(disk).is_err() {}
    }

    /// The end of a transaction, after which a kill may come.
    fn commit(&mut self) -> Result<(), Killed> {
        let is_killed = self
            .kills
            .as_mut()
            .is_some_and(|random| random.next(100) < 15);
        if is_killed { Err(Killed) } else { Ok(()) }
    }

    fn files_of(&self, id: i64) -> Vec<PathBuf> {
        let rows = self.rows.values().filter(|row| row.image_id == Some(id));
        rows.map(|row| row.path.clone()).collect()
    }

    fn lose(&mut self, id: i64, path: &Path, now: i64) {
        let others = self.files_of(id);
        let other = others
            .iter()
            .find(|other| *other != path && self.seen.contains(*other));
        let Some(image) = self.images.get_mut(&id) else {
            return;
        };
        if image.path != path && self.seen.contains(&image.path) {
            return;
        }
        match other {
            Some(other) => image.path.clone_from(other),
            None => image.missing = image.missing.filter(|since| *since > 0).or(Some(now)),
        }
    }

    fn missing(&self) -> HashMap<i64, Missing> {
        let missing = self.images.iter().filter_map(|(id, image)| {
            let missing = Missing {
                since: image.missing?,
                size: image.size,
                path: image.path.clone(),
                has_files: !self.files_of(*id).is_empty(),
            };
            Some((*id, missing))
        });
        missing.collect()
    }

    fn look_once(&mut self, disk: &Disk) -> Result<(), Killed> {
        let found = disk.walk();
        let now = disk.now;
        self.seen = found.files.iter().map(|file| file.path.clone()).collect();
        let rows: Vec<WatchedFile> = self.rows.values().cloned().collect();
        let missing = self.missing();
        let difference = compare(&rows, Vec::new(), &missing, &found, false, now);
        let is_away = difference.is_away();
        for (path, device) in difference.devices {
            self.rows.get_mut(&path).unwrap().stamp.device = device;
        }
        for slice in slices(difference.moves, 2) {
            self.shift(&slice, now);
            self.commit()?;
        }
        for (row, loss) in difference.gone {
            let still = self.rows.get(&row.path);
            if still.is_some_and(|still| still.stamp.inode == row.stamp.inode) {
                self.gone(&row, loss, now);
            }
        }
        self.commit()?;
        self.read(disk, &difference.first, &difference.read, now)?;
        let due = |one: &Missing| !is_away && one.is_due(now) && !one.has_files;
        for (id, _) in missing.iter().filter(|(_, one)| due(one)) {
            let image = self.images.get(id);
            if image.is_some_and(|image| image.missing.is_some()) && self.files_of(*id).is_empty() {
                self.expire(*id);
            }
        }
        self.commit()
    }

    fn shift(&mut self, slice: &[Move], now: i64) {
        let mut losers = Vec::new();
        let mut taken = Vec::new();
        for one in slice {
            let row = self.rows.get(&one.row.path);
            if row.is_some_and(|row| row.stamp.inode == one.row.stamp.inode) {
                taken.extend(self.rows.remove(&one.row.path).map(|row| (row, one)));
            }
        }
        for (row, Move { to, stamp, .. }) in taken {
            let path = to.clone();
            let stamp = *stamp;
            let id = row.image_id.unwrap();
            let image = self.images.get_mut(&id).unwrap();
            if image.path == row.path || image.missing.is_some() {
                (image.path, image.missing) = (to.clone(), None);
            }
            let before = self
                .rows
                .insert(to.clone(), WatchedFile { path, stamp, ..row });
            let loser = before
                .and_then(|before| before.image_id)
                .filter(|loser| *loser != id);
            losers.extend(loser.map(|loser| (loser, to)));
        }
        losers
            .into_iter()
            .for_each(|(id, path)| self.lose(id, path, now));
    }

    fn gone(&mut self, row: &WatchedFile, loss: Loss, now: i64) {
        let id = row.image_id.unwrap();
        let others = self.files_of(id);
        if others
            .iter()
            .any(|other| *other != row.path && self.seen.contains(other))
        {
            self.rows.remove(&row.path);
            return self.lose(id, &row.path, now);
        }
        let image = self.images.get_mut(&id).unwrap();
        match loss {
            Loss::Away => image.missing = Some(0),
            Loss::Missing => image.missing = image.missing.filter(|since| *since > 0).or(Some(now)),
            Loss::Expired => self.expire(id),
        }
    }

    fn expire(&mut self, id: i64) {
        let image = self.images.remove(&id).unwrap();
        let heir = self.rows.get(&image.path).and_then(|row| row.image_id);
        if let Some(heir) = heir.and_then(|heir| self.images.get_mut(&heir)) {
            heir.tags.extend(image.tags);
        }
        self.rows.retain(|_, row| row.image_id != Some(id));
    }

    /// All candidates are read before any is placed: first those that still have their own content, then
    /// known contents.
    fn read(
        &mut self,
        disk: &Disk,
        first: &[(PathBuf, Stamp)],
        rest: &[(PathBuf, Stamp)],
        now: i64,
    ) -> Result<(), Killed> {
        let all = first.iter().chain(rest);
        let mut pending: BTreeSet<PathBuf> = all.map(|(path, _)| path.clone()).collect();
        let mut wait = Vec::new();
        for is_own in [true, false] {
            for one in first {
                let content = self.content(disk, one);
                let same = self
                    .images
                    .iter()
                    .find(|(_, image)| image.content == content);
                let owner = self.rows.get(&one.0).and_then(|row| row.image_id);
                match same {
                    Some((id, _)) if !is_own || owner == Some(*id) => {
                        self.place(one, content, &mut pending, now);
                        self.commit()?;
                    }
                    None if !is_own => wait.push(one.clone()),
                    _ => {}
                }
            }
        }
        for one in wait.iter().chain(rest) {
            let content = self.content(disk, one);
            self.place(one, content, &mut pending, now);
            self.commit()?;
        }
        Ok(())
    }

    fn content(&self, disk: &Disk, (path, _): &(PathBuf, Stamp)) -> Checksum {
        checksum(disk.content(path.strip_prefix("/w").unwrap().to_str().unwrap()))
    }

    fn place(
        &mut self,
        (path, stamp): &(PathBuf, Stamp),
        content: Checksum,
        pending: &mut BTreeSet<PathBuf>,
        now: i64,
    ) {
        let same = self
            .images
            .iter()
            .find(|(_, image)| image.content == content);
        let same = same.map_or(Same::Nothing, |(id, image)| {
            let row = self.rows.get(&image.path);
            let has_file = row.is_some_and(|row| row.image_id == Some(*id));
            let is_intact = image.missing.is_none() && has_file && !pending.contains(&image.path);
            Same::Image { id: *id, is_intact }
        });
        let row = self.rows.get(path);
        let missing_here = || {
            let here = |image: &Image| image.missing.is_some() && image.path == *path;
            let mut images = self.images.iter().rev();
            images.find(|(_, image)| here(image)).map(|(id, _)| *id)
        };
        let own = row.and_then(|row| row.image_id).or_else(missing_here);
        let own = own.map(|id| Owner {
            id,
            path: self.images[&id].path.clone(),
            is_missing: self.images[&id].missing.is_some(),
        });
        let checksum = Some(&content);
        let facts = Facts {
            path,
            stamp,
            checksum,
        };
        let placement = place(facts, row, own.as_ref(), same);
        pending.remove(path);
        self.apply(placement, (path, stamp), content, now);
    }

    fn apply(
        &mut self,
        placement: Placement,
        (path, stamp): (&PathBuf, &Stamp),
        content: Checksum,
        now: i64,
    ) {
        let id = match placement {
            Placement::Nothing => return,
            Placement::Same { id, moves } => {
                let image = self.images.get_mut(&id).unwrap();
                if moves {
                    (image.path, image.missing) = (path.clone(), None);
                }
                id
            }
            Placement::Rewritten(id) => {
                self.rows
                    .retain(|other, row| row.image_id != Some(id) || other == path);
                let image = self.images.get_mut(&id).unwrap();
                (image.content, image.size, image.missing) = (content, stamp.size, None);
                id
            }
            Placement::New => {
                self.last += 1;
                let image = Image {
                    content,
                    path: path.clone(),
                    size: stamp.size,
                    missing: None,
                    tags: BTreeSet::new(),
                };
                self.images.insert(self.last, image);
                self.last
            }
            other => panic!("{other:?}"),
        };
        let row = WatchedFile {
            path: path.clone(),
            image_id: Some(id),
            checksum: Some(content),
            stamp: *stamp,
        };
        let before = self.rows.insert(path.clone(), row);
        let loser = before.and_then(|before| before.image_id);
        if let Some(loser) = loser.filter(|loser| *loser != id) {
            self.lose(loser, path, now);
        }
    }

    /// Rows are the files by content, each image has a file of its content, and each content one image.
    fn check(&self, disk: &Disk, when: &str) {
        let files = disk.files.iter().filter(|(name, _)| !name.starts_with('.'));
        let files: BTreeMap<PathBuf, Checksum> = files
            .map(|(name, _)| (at(name), checksum(disk.content(name))))
            .collect();
        let rows: BTreeMap<PathBuf, Checksum> = self
            .rows
            .iter()
            .map(|(path, row)| (path.clone(), row.checksum.unwrap()))
            .collect();
        assert_eq!(rows, files, "{when}");
        for (id, image) in &self.images {
            assert_eq!(
                image.missing, None,
                "{when}: image {id} is missing: {image:?}"
            );
            let row = self.rows.get(&image.path);
            let is_its = |row: &WatchedFile| {
                row.image_id == Some(*id) && row.checksum == Some(image.content)
            };
            assert!(
                row.is_some_and(is_its),
                "{when}: image {id} has no file: {image:?}"
            );
        }
        let contents: BTreeSet<_> = self.images.values().map(|image| image.content).collect();
        assert_eq!(
            contents.len(),
            self.images.len(),
            "{when}: two images of one content"
        );
    }
}

#[test]
fn rows_follow_the_files_in_random_runs() {
    let runs = std::env::var("MURALD_RUNS").map_or(300, |runs| runs.parse().unwrap());
    let mut failed = Vec::new();
    for seed in 0..runs {
        let run = move || operations::run(seed, seed % 2 == 1);
        if let Err(panic) = std::panic::catch_unwind(run) {
            let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            failed.push(format!("seed {seed}: {why}"));
        }
    }
    let some = failed
        .iter()
        .take(5)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        failed.is_empty(),
        "{} of {runs} runs failed\n{some}",
        failed.len()
    );
}
