//! The operations of the model, and what must hold after each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Disk, GRACE, Inode, Library, Random, SECOND, at};

const STEPS: usize = 60;

struct Run {
    random: Random,
    disk: Disk,
    library: Library,
    last_content: u64,
}

/// The image that each file must have after an operation.
type Keep = BTreeMap<String, i64>;

/// What else must hold: the path of an image, or the tags that it has.
#[derive(Default)]
struct Expect {
    path: Option<(i64, String)>,
    tags: Option<(i64, BTreeSet<i64>)>,
}

/// One file, another one, and a free name.
#[derive(Clone, Default)]
struct Chosen {
    there: Vec<String>,
    one: String,
    other: Option<String>,
    free: Option<String>,
    /// Files that share their images with other files.
    twins: BTreeSet<String>,
}

impl Chosen {
    fn is_twin(&self) -> bool {
        self.twins.contains(&self.one)
    }
}

/// Makes one run; its number chooses the operations.
pub(super) fn run(seed: u64, kills: bool) {
    let mut random = Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..8 {
        random.next(2);
    }
    let mut run = Run {
        disk: Disk {
            device: 2,
            equal: random.half(),
            now: SECOND,
            ..Disk::default()
        },
        library: Library {
            kills: kills.then(|| Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1)),
            ..Library::default()
        },
        random,
        last_content: 0,
    };
    for name in names().into_iter().take(6) {
        let content = run.content();
        run.disk.write(&name, content, false);
    }
    run.library.look(&run.disk);
    run.library.check(&run.disk, "at the start");
    for (id, image) in &mut run.library.images {
        image.tags = [*id].into();
    }
    (0..STEPS).for_each(|step| run.step(step));
}

fn names() -> Vec<String> {
    let names =
        ["", "d/"].map(|directory| "abcdef".chars().map(move |n| format!("{directory}{n}")));
    names.into_iter().flatten().collect()
}

impl Run {
    fn content(&mut self) -> u64 {
        self.last_content += 1;
        self.last_content
    }

    fn look(&mut self) {
        self.library.look(&self.disk);
        self.library.look(&self.disk);
    }

    /// Perhaps a walk in the middle of an operation.
    fn maybe(&mut self) {
        self.disk.tick(400_000);
        if self.random.half() {
            self.look();
        }
    }

    fn id(&self, name: &str) -> i64 {
        self.library.rows[&at(name)].image_id.unwrap()
    }

    fn write(&mut self, name: &str) {
        let content = self.content();
        self.disk.write(name, content, false);
    }

    fn pick(&mut self, from: &[String]) -> Option<String> {
        (!from.is_empty()).then(|| from[self.random.next(from.len())].clone())
    }

    fn choose(&mut self) -> Chosen {
        let there: Vec<String> = self.disk.files.keys().cloned().collect();
        let one = self.pick(&there).unwrap_or_default();
        let others: Vec<_> = there.iter().filter(|name| **name != one).cloned().collect();
        let free: Vec<_> = names()
            .into_iter()
            .filter(|name| !self.disk.files.contains_key(name))
            .collect();
        let is_twin = |name: &&String| self.library.files_of(self.id(name)).len() > 1;
        let twins = there.iter().filter(is_twin).cloned().collect();
        let (other, free) = (self.pick(&others), self.pick(&free));
        Chosen {
            there,
            one,
            other,
            free,
            twins,
        }
    }

    fn step(&mut self, step: usize) {
        let chosen = self.choose();
        let mut keep: Keep = chosen
            .there
            .iter()
            .map(|name| (name.clone(), self.id(name)))
            .collect();
        let operation = self.random.next(22);
        let Some(expect) = self.change(operation, &chosen, &mut keep) else {
            return;
        };
        let when = format!("step {step}, operation {operation}, {}", chosen.one);
        self.disk.tick(SECOND / 2);
        self.look();
        self.has(&keep, &when);
        self.disk.tick(GRACE);
        self.look();
        self.library.check(&self.disk, &when);
        self.has(&keep, &format!("{when}, later"));
        if let Some((id, name)) = expect.path {
            assert_eq!(self.library.images[&id].path, at(&name), "{when}: the path");
        }
        if let Some((id, tags)) = expect.tags {
            assert!(
                self.library.images[&id].tags.is_superset(&tags),
                "{when}: the tags"
            );
        }
    }

    fn has(&self, keep: &Keep, when: &str) {
        for (name, id) in keep {
            assert_eq!(self.id(name), *id, "{when}: the image of {name}");
        }
    }

    /// Makes an operation; `None` if it makes no sense now.
    fn change(&mut self, operation: usize, chosen: &Chosen, keep: &mut Keep) -> Option<Expect> {
        let one = chosen.one.as_str();
        let is_alone = !chosen.is_twin();
        let free = chosen.free.clone();
        let mut expect = Expect::default();
        match operation {
            0 => self.write(&free?),
            1..=3 => self.rename(one, &free?, keep),
            4 => expect.tags = Some(self.replace(chosen, keep)?),
            5 if is_alone => self.write(one),
            6 if is_alone => {
                let content = self.content();
                self.disk.write(one, content, self.disk.equal);
            }
            7 if chosen.there.len() > 3 => {
                self.disk.remove(one);
                keep.remove(one);
            }
            8 => self.swap(one, &chosen.other.clone()?, keep),
            9 => self.swap_copies(chosen, keep)?,
            10 => {
                let content = self.disk.content(one);
                let free = free?;
                self.disk.write(&free, content, false);
                keep.insert(free, keep[one]);
            }
            11 => {
                let free = free?;
                self.disk.link(one, &free);
                keep.insert(free, keep[one]);
            }
            12 => {
                let free = free?;
                self.disk.rename(one, ".out");
                self.maybe();
                self.disk.tick(3 * SECOND);
                self.maybe();
                self.disk.rename(".out", &free);
                keep_as(keep, one, &free);
            }
            13 => self.move_tree(chosen)?,
            14 => self.disk.device += 1,
            15 if is_alone => {
                self.write(".new");
                self.maybe();
                self.disk.rename(".new", one);
            }
            16 if is_alone => {
                self.rename(one, &free?, keep);
                self.write(one);
            }
            17 => self.chain(chosen, keep)?,
            18 if is_alone => {
                let free = free?;
                self.disk.device += 1;
                self.rename(one, &free, keep);
                self.write(one);
            }
            19 if is_alone => {
                let content = self.disk.content(one);
                let free = free?;
                self.disk.write(one, content, false);
                self.disk.write(&free, content, false);
                expect.path = Some((keep[one], one.to_owned()));
                keep.insert(free, keep[one]);
            }
            20 | 21 => self.unmount(chosen, keep),
            _ => return None,
        }
        Some(expect)
    }

    fn rename(&mut self, from: &str, to: &str, keep: &mut Keep) {
        self.disk.rename(from, to);
        keep_as(keep, from, to);
    }

    /// A file replaces another one, whose content is lost; its tags are not.
    fn replace(&mut self, chosen: &Chosen, keep: &mut Keep) -> Option<(i64, BTreeSet<i64>)> {
        let (one, other) = (&chosen.one, chosen.other.as_ref()?);
        if chosen.is_twin() || chosen.twins.contains(other) {
            return None;
        }
        let [id, lost] = [keep[one], keep[other]];
        let tags = [id, lost].map(|id| self.library.images[&id].tags.clone());
        self.rename(one, other, keep);
        Some((id, tags.into_iter().flatten().collect()))
    }

    fn swap(&mut self, one: &str, other: &str, keep: &mut Keep) {
        self.disk.rename(one, ".away");
        self.maybe();
        self.disk.rename(other, one);
        self.maybe();
        self.disk.rename(".away", other);
        exchange(keep, one, other);
    }

    fn swap_copies(&mut self, chosen: &Chosen, keep: &mut Keep) -> Option<()> {
        let (one, other) = (&chosen.one, chosen.other.as_ref()?);
        if chosen.is_twin() || chosen.twins.contains(other) {
            return None;
        }
        let contents = [one, other].map(|name| self.disk.content(name));
        self.disk.write(one, contents[1], false);
        self.maybe();
        self.disk.write(other, contents[0], false);
        exchange(keep, one, other);
        Some(())
    }

    fn move_tree(&mut self, chosen: &Chosen) -> Option<()> {
        let moved: Vec<_> = chosen
            .there
            .iter()
            .filter(|name| name.starts_with("d/"))
            .collect();
        if moved.is_empty() {
            return None;
        }
        moved
            .iter()
            .for_each(|name| self.disk.rename(name, &format!(".t{name}")));
        self.maybe();
        moved
            .iter()
            .for_each(|name| self.disk.rename(&format!(".t{name}"), name));
        Some(())
    }

    /// Renames files in a ring, or in a chain that ends at a free name.
    fn chain(&mut self, chosen: &Chosen, keep: &mut Keep) -> Option<()> {
        let free = chosen.free.as_ref()?;
        let mut left = chosen.there.clone();
        let mut ring = Vec::new();
        while ring.len() < 4 && !left.is_empty() {
            ring.push(left.swap_remove(self.random.next(left.len())));
        }
        if ring.len() < 3 || ring.iter().any(|name| chosen.twins.contains(name)) {
            return None;
        }
        let end = if self.random.half() { &ring[0] } else { free };
        let ids: Vec<i64> = ring.iter().map(|name| keep.remove(name).unwrap()).collect();
        self.disk.rename(&ring[ring.len() - 1], ".ring");
        for pair in ring.windows(2).rev() {
            self.disk.rename(&pair[0], &pair[1]);
        }
        self.disk.rename(".ring", end);
        let targets = ring[1..].iter().chain([end]).cloned();
        keep.extend(targets.zip(ids));
        Some(())
    }

    /// The disk is unmounted for half a minute, and changed elsewhere meanwhile.
    fn unmount(&mut self, chosen: &Chosen, keep: &mut Keep) {
        self.disk.under = Some(BTreeMap::new());
        self.disk.tick(SECOND / 2);
        self.look();
        self.are_away(keep, "after the unmount");
        if self.random.half() {
            let free = chosen.free.clone().into_iter();
            for name in ["stray", "other"]
                .map(str::to_owned)
                .into_iter()
                .chain(free)
                .take(2)
            {
                self.last_content += 1;
                let mut inode = self.disk.inode(self.last_content);
                inode.stamp.inode = 5000 + self.last_content;
                self.add_under(name, inode);
            }
        }
        for _ in 0..4 {
            self.disk.tick(8 * SECOND);
            self.library.look(&self.disk);
        }
        self.are_away(keep, "while unmounted");
        self.disk.device += u64::from(self.random.next(10) < 7);
        self.disk.under = None;
        let gone = self.change_elsewhere(chosen, keep);
        self.disk.tick(SECOND / 2);
        self.look();
        if let Some(gone) = gone {
            let since = self
                .library
                .images
                .get(&gone)
                .and_then(|image| image.missing);
            assert!(
                since.is_some_and(|since| since > 0),
                "no clock after the mount: {since:?}"
            );
        }
        self.forget_strays();
    }

    fn add_under(&mut self, name: String, inode: Inode) {
        self.disk.under.as_mut().unwrap().insert(name, inode);
    }

    fn are_away(&self, keep: &Keep, when: &str) {
        for (name, id) in keep {
            let missing = self.library.images.get(id).map(|image| image.missing);
            assert_eq!(missing, Some(Some(0)), "{when}: the image of {name}");
        }
    }

    fn change_elsewhere(&mut self, chosen: &Chosen, keep: &mut Keep) -> Option<i64> {
        if chosen.is_twin() || chosen.there.len() <= 3 {
            return None;
        }
        let one = chosen.one.as_str();
        match (self.random.next(4), &chosen.free) {
            (0, _) => {
                self.disk.remove(one);
                return keep.remove(one);
            }
            (1, Some(free)) => self.rename(one, free, keep),
            (2, _) => self.write(one),
            _ => {}
        }
        None
    }

    /// The user removes what the mount point had.
    fn forget_strays(&mut self) {
        let away = self
            .library
            .images
            .iter()
            .filter(|(_, image)| image.missing == Some(0));
        for id in away.map(|(id, _)| *id).collect::<Vec<_>>() {
            for path in self.library.files_of(id) {
                let row = self.library.rows.remove(&path).unwrap();
                assert_eq!(row.stamp.device, 1, "away after the mount: {path:?}");
            }
            self.library.images.remove(&id);
        }
    }
}

fn keep_as(keep: &mut Keep, from: &str, to: &str) {
    let id = keep.remove(from).unwrap();
    keep.insert(to.to_owned(), id);
}

fn exchange(keep: &mut Keep, one: &str, other: &str) {
    let ids = [keep[one], keep[other]];
    keep.insert(one.to_owned(), ids[1]);
    keep.insert(other.to_owned(), ids[0]);
}
