//! The power goes at any instant: what was written and not flushed is gone, or some of it is. The next
//! start finds rows and files that agree, and what was acknowledged before.
//!
//! A disk is told from what the daemon does at the gate: what a directory or a file held when it was
//! flushed last stays, in the strictest reading of what a flush is for. Of each instant there are four
//! outcomes: names and contents as they were flushed, or as they are. A file stays the one that it was,
//! with its number and time, by which the daemon knows it again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::json;

use super::every;
use super::gate::Call;
use super::scene::{Holdings, Scene};

/// What the daemon keeps; the rest of the house is the test's own.
const KEPT: [&str; 3] = ["data", "config", "cache"];

/// A file or directory, whatever its name: numbers are given again, with another time.
type Node = (u64, Option<SystemTime>);
type Names = BTreeMap<OsString, Node>;
/// What there would be: files, and none for directories.
type Tree = BTreeMap<PathBuf, Option<Content>>;

/// What is in a file, and since when.
#[derive(Clone, Default, PartialEq)]
struct Content {
    bytes: Arc<Vec<u8>>,
    modified: Option<SystemTime>,
    /// A name of the test's own for the file, for when the daemon has taken away the last of its own.
    link: PathBuf,
}

impl Hash for Content {
    /// Disks on which only a time is another are the same to try.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.bytes.hash(hasher);
    }
}

#[derive(Clone, Default)]
struct Disk {
    directories: HashMap<Node, Names>,
    /// Of files, those too that have no name any more.
    contents: HashMap<Node, Content>,
    links: PathBuf,
}

impl Disk {
    fn new(root: &Path) -> Self {
        let links = root.join("links");
        fs::create_dir(&links).unwrap();
        Self { links, ..Self::default() }
    }

    /// Takes in what is there now.
    fn look(&mut self, root: &Path) {
        self.directories.clear();
        self.look_at(root, true);
    }

    fn look_at(&mut self, directory: &Path, is_root: bool) -> Option<Node> {
        let node = node(directory)?;
        let mut names = Names::new();
        for entry in fs::read_dir(directory).ok()?.flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let text = name.to_string_lossy();
            let is_ours = !is_root || KEPT.contains(&&*text);
            // Nobody's memory: the log, and what SQLite makes anew at each start.
            if !is_ours || text.starts_with("daemon.log") || text.ends_with("-shm") {
                continue;
            }
            let found = match entry.file_type().ok()?.is_dir() {
                true => self.look_at(&path, false),
                false => self.read(&path),
            };
            // Gone again.
            let Some(found) = found else { continue };
            names.insert(name, found);
        }
        self.directories.insert(node, names);
        Some(node)
    }

    fn read(&mut self, path: &Path) -> Option<Node> {
        let seen = node(path)?;
        // While it has this name, its number is not given again.
        let link = self.links.join(seen.0.to_string());
        if !self.contents.contains_key(&seen) {
            fs::hard_link(path, &link).ok()?;
            // Another may have come under this name.
            if node(&link) != Some(seen) {
                fs::remove_file(&link).unwrap();
                return None;
            }
        }
        let bytes = Arc::new(fs::read(&link).ok()?);
        let modified = link.metadata().ok()?.modified().ok();
        let content = Content { bytes, modified, link };
        if self.contents.get(&seen) != Some(&content) {
            self.contents.insert(seen, content);
        }
        Some(seen)
    }

    /// What is at `path` in `now` stays.
    fn flush(&mut self, path: &Path, now: &Self) {
        let Some(node) = node(path) else { return };
        if let Some(names) = now.directories.get(&node) {
            self.directories.insert(node, names.clone());
        } else if let Some(content) = now.contents.get(&node) {
            self.contents.insert(node, content.clone());
        }
    }
}

fn node(path: &Path) -> Option<Node> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.created().ok()))
}

/// The names of one, the contents of another; `now` tells directories from files.
fn tree(root: &Path, names: &Disk, contents: &Disk, now: &Disk) -> Tree {
    let mut tree = Tree::new();
    let mut left: Vec<(PathBuf, Node)> =
        node(root).map(|node| (PathBuf::new(), node)).into_iter().collect();
    while let Some((at, node)) = left.pop() {
        for (name, inner) in names.directories.get(&node).into_iter().flatten() {
            let path = at.join(name);
            if let Some(Content { link, .. }) = now.contents.get(inner) {
                // A file also where nothing of it was flushed.
                let empty = || Content { link: link.clone(), ..Content::default() };
                let content = contents.contents.get(inner).cloned().unwrap_or_else(empty);
                tree.insert(path, Some(content));
            } else {
                tree.insert(path.clone(), None);
                left.push((path, *inner));
            }
        }
    }
    tree
}

/// A disk as the next start may find it.
struct Outcome {
    when: String,
    /// How many acts were acknowledged by then.
    acknowledged: usize,
    tree: Tree,
}

struct Recorder {
    root: PathBuf,
    now: Disk,
    flushed: Disk,
    step: usize,
    instants: usize,
    acknowledged: usize,
    outcomes: Vec<Outcome>,
    known: HashSet<u64>,
}

impl Recorder {
    /// All that is there is on the disk.
    fn new(root: &Path, step: usize) -> Self {
        let mut now = Disk::new(root);
        now.look(root);
        Self {
            root: root.to_owned(),
            flushed: now.clone(),
            now,
            step,
            instants: 0,
            acknowledged: 0,
            outcomes: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// Before a call is carried out.
    fn note(&mut self, call: &Call) {
        if !call.changes() {
            return;
        }
        let Some(path) = call.path() else { return };
        let is_ours = KEPT.iter().any(|kept| path.starts_with(self.root.join(kept)));
        if path != self.root && !is_ours {
            return;
        }
        self.instants += 1;
        let is_tried = self.instants.is_multiple_of(self.step);
        if !is_tried && !call.flushes() {
            return;
        }
        self.now.look(&self.root);
        if is_tried {
            let shown = path.strip_prefix(&self.root).unwrap().display();
            self.keep(&format!("{} before {} {shown}", self.instants, call.name));
        }
        if call.flushes() {
            self.flushed.flush(&path, &self.now);
        }
    }

    fn keep(&mut self, when: &str) {
        let (now, flushed) = (&self.now, &self.flushed);
        for (kind, names, contents) in [
            ("nothing else", flushed, flushed),
            ("contents", flushed, now),
            ("names", now, flushed),
            ("all", now, now),
        ] {
            let tree = tree(&self.root, names, contents, now);
            let mut hasher = DefaultHasher::new();
            (&tree, self.acknowledged).hash(&mut hasher);
            if self.known.insert(hasher.finish()) {
                let when = format!("{when}, {kind} kept");
                self.outcomes.push(Outcome { when, acknowledged: self.acknowledged, tree });
            }
        }
    }
}

/// Does one thing after another, and knows what there was to see after each.
struct Owner {
    scene: Scene,
    recorder: Arc<Mutex<Recorder>>,
    seen: Vec<Holdings>,
}

impl Owner {
    fn new(step: usize) -> Self {
        let scene = Scene::empty();
        fs::create_dir(scene.house.root().join("data")).unwrap();
        let recorder = Arc::new(Mutex::new(Recorder::new(scene.house.root(), step)));
        let mut owner = Self { scene, recorder, seen: Vec::new() };
        owner.start();
        owner.seen.push(owner.scene.holdings());
        owner
    }

    fn start(&mut self) {
        let recorder = Arc::clone(&self.recorder);
        self.scene.start(move |call| {
            recorder.lock().unwrap().note(call);
            None
        });
    }

    fn act(&mut self, act: impl FnOnce(&mut Scene)) {
        act(&mut self.scene);
        self.seen.push(self.scene.holdings());
        self.recorder.lock().unwrap().acknowledged += 1;
    }

    fn day(&mut self) {
        self.act(|scene| {
            let path = scene.picture();
            scene.kept = scene.house.import(&[&path])[0];
        });
        self.act(|scene| scene.make_list(&[scene.kept]));
        self.act(|scene| {
            let path = scene.picture();
            scene.house.import(&[&path]);
        });
        self.act(|scene| {
            let change = json!({ "name": "another", "tags": ["lake"] });
            scene.house.client().patch(&format!("/images/{}", scene.kept), &change).ok();
        });
        self.act(|scene| {
            let change = json!({ "images": [{ "image_id": 1 }, { "image_id": 2 }] });
            scene.house.client().patch(&format!("/playlists/{}", scene.playlist), &change).ok();
        });
        self.act(|scene| {
            let change = json!({ "hooks": { "timeout_seconds": 9 } });
            scene.house.client().patch("/config", &change).ok();
        });
        // In order, which empties the log into the database.
        assert_eq!(self.scene.house.stop(), Some(0));
        self.start();
        self.act(|scene| {
            let body = json!({ "ids": [2] }).to_string();
            scene.house.client().send("DELETE", "/images", "", body.as_bytes()).ok();
        });
        self.act(|scene| {
            let change = json!({ "hooks": { "timeout_seconds": 11 } });
            scene.house.client().patch("/config", &change).ok();
        });
    }
}

/// Puts this on the disk, in the place of all that is there.
fn put(root: &Path, tree: &Tree) {
    for kept in KEPT {
        fs::remove_dir_all(root.join(kept)).ok();
    }
    for (path, bytes) in tree {
        match bytes {
            None => fs::create_dir(root.join(path)).unwrap(),
            Some(content) => {
                fs::hard_link(&content.link, root.join(path)).unwrap();
                fs::write(&content.link, &**content.bytes).unwrap();
                if let Some(modified) = content.modified {
                    let file = fs::File::options().write(true).open(&content.link).unwrap();
                    file.set_modified(modified).unwrap();
                }
            }
        }
    }
}

/// A cache may be lost; what is served from it is whole.
#[track_caller]
fn has_thumbnails(scene: &Scene, when: &str) {
    let page = scene.house.client().get("/images?per_page=200").ok();
    for image in page["data"].as_array().unwrap() {
        let place = format!("/images/{}/thumbnail", image["id"]);
        let answer = scene.house.client().get(&place);
        assert_eq!(answer.status, 200, "{when}: {place}: {}", answer.text());
        let picture = webp::Decoder::new(&answer.body).decode();
        assert!(picture.is_some(), "{when}: {place}: {} bytes", answer.body.len());
    }
}

#[test]
fn acknowledged_changes_survive_a_loss_of_power() {
    let mut owner = Owner::new(every(83));
    owner.day();
    owner.scene.house.kill9();
    let Owner { mut scene, recorder, seen } = owner;
    let (instants, outcomes) = {
        let mut recorder = recorder.lock().unwrap();
        (recorder.instants, std::mem::take(&mut recorder.outcomes))
    };
    assert!(!outcomes.is_empty() && instants > 200, "{instants} instants");
    for outcome in &outcomes {
        let Outcome { when, acknowledged, tree } = outcome;
        put(scene.house.root(), tree);
        eprintln!("{when}");
        scene.house.start();
        scene.agrees_wholly(when);
        let found = scene.holdings();
        // What was in hand is done, or not.
        let fits = seen[*acknowledged..].iter().take(2).any(|seen| *seen == found);
        assert!(fits, "{when}: after {acknowledged}:\n{found:#?}\n{:#?}", seen[*acknowledged]);
        has_thumbnails(&scene, when);
        scene.house.kill9();
    }
    eprintln!("{instants} instants, {} disks", outcomes.len());
}
