//! Loss of power at any instant: data that was written but not flushed may be lost in whole or in part.
//! After the next start rows and files must agree, and acknowledged changes must be there.
//!
//! The test records the daemon's calls at the gate, and from them what the disk holds: only what a file
//! or directory held at its last flush is certain. It tries four outcomes for each instant: names and
//! contents each as flushed, or as they are now. Files keep their inode and time, by which the daemon
//! recognises them.

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

/// The daemon's directories; all else in the test's directory belongs to the test.
const KEPT: [&str; 3] = ["data", "config", "cache"];

/// A file or directory by inode and birth time, as inode numbers are used again.
type Node = (u64, Option<SystemTime>);
type Names = BTreeMap<OsString, Node>;
/// The files of a disk with their contents; `None` for directories.
type Tree = BTreeMap<PathBuf, Option<Content>>;

/// The content and modification time of a file.
#[derive(Clone, Default, PartialEq)]
struct Content {
    bytes: Arc<Vec<u8>>,
    modified: Option<SystemTime>,
    /// A hard link of the test to the file, which stays when the daemon has removed its last name.
    link: PathBuf,
}

impl Hash for Content {
    /// Ignores the time: two disks that differ only in times need not both be tried.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.bytes.hash(hasher);
    }
}

#[derive(Clone, Default)]
struct Disk {
    directories: HashMap<Node, Names>,
    /// Includes files without a name.
    contents: HashMap<Node, Content>,
    links: PathBuf,
}

impl Disk {
    fn new(root: &Path) -> Self {
        let links = root.join("links");
        fs::create_dir(&links).unwrap();
        Self {
            links,
            ..Self::default()
        }
    }

    /// Records the current state of the disk.
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
            // Not part of the outcome: the log file, and what SQLite creates at each start.
            if !is_ours || text.starts_with("daemon.log") || text.ends_with("-shm") {
                continue;
            }
            let found = if entry.file_type().ok()?.is_dir() {
                self.look_at(&path, false)
            } else {
                self.read(&path)
            };
            // The entry is gone again.
            let Some(found) = found else { continue };
            names.insert(name, found);
        }
        self.directories.insert(node, names);
        Some(node)
    }

    fn read(&mut self, path: &Path) -> Option<Node> {
        let seen = node(path)?;
        // The link keeps the inode number from being used again.
        let link = self.links.join(seen.0.to_string());
        if !self.contents.contains_key(&seen) {
            fs::hard_link(path, &link).ok()?;
            // Another file may have got the name in between.
            if node(&link) != Some(seen) {
                fs::remove_file(&link).unwrap();
                return None;
            }
        }
        let bytes = Arc::new(fs::read(&link).ok()?);
        let modified = link.metadata().ok()?.modified().ok();
        let content = Content {
            bytes,
            modified,
            link,
        };
        if self.contents.get(&seen) != Some(&content) {
            self.contents.insert(seen, content);
        }
        Some(seen)
    }

    /// Marks the state of `path` in `now` as flushed.
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

/// A disk with the names of one state and the contents of another; `now` tells directories from files.
fn tree(root: &Path, names: &Disk, contents: &Disk, now: &Disk) -> Tree {
    let mut tree = Tree::new();
    let mut left: Vec<(PathBuf, Node)> = node(root)
        .map(|node| (PathBuf::new(), node))
        .into_iter()
        .collect();
    while let Some((at, node)) = left.pop() {
        for (name, inner) in names.directories.get(&node).into_iter().flatten() {
            let path = at.join(name);
            if let Some(Content { link, .. }) = now.contents.get(inner) {
                // A file whose content was never flushed is empty.
                let empty = || Content {
                    link: link.clone(),
                    ..Content::default()
                };
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

/// A disk as the next start may find it after a loss of power.
struct Outcome {
    when: String,
    /// Number of actions that were acknowledged by then.
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
    /// The current state counts as flushed. `step` is the distance of the instants that are tried.
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

    /// Called before each call is carried out.
    fn note(&mut self, call: &Call) {
        if !call.changes() {
            return;
        }
        let Some(path) = call.path() else { return };
        let is_ours = KEPT
            .iter()
            .any(|kept| path.starts_with(self.root.join(kept)));
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
                self.outcomes.push(Outcome {
                    when,
                    acknowledged: self.acknowledged,
                    tree,
                });
            }
        }
    }
}

/// Performs one action after another, and records what clients see after each.
struct Owner {
    scene: Scene,
    recorder: Arc<Mutex<Recorder>>,
    seen: Vec<Holdings>,
}

impl Owner {
    fn new(step: usize) -> Self {
        let scene = Scene::empty();
        fs::create_dir(scene.daemon.root().join("data")).unwrap();
        let recorder = Arc::new(Mutex::new(Recorder::new(scene.daemon.root(), step)));
        let mut owner = Self {
            scene,
            recorder,
            seen: Vec::new(),
        };
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
            scene.kept = scene.daemon.import(&[&path])[0];
        });
        self.act(|scene| scene.make_list(&[scene.kept]));
        self.act(|scene| {
            let path = scene.picture();
            scene.daemon.import(&[&path]);
        });
        self.act(|scene| {
            let change = json!({ "name": "another", "tags": ["lake"] });
            scene
                .daemon
                .client()
                .patch(&format!("/images/{}", scene.kept), &change)
                .ok();
        });
        self.act(|scene| {
            let change = json!({ "images": [{ "image_id": 1 }, { "image_id": 2 }] });
            scene
                .daemon
                .client()
                .patch(&format!("/playlists/{}", scene.playlist), &change)
                .ok();
        });
        self.act(|scene| {
            let change = json!({ "hooks": { "timeout_seconds": 9 } });
            scene.daemon.client().patch("/config", &change).ok();
        });
        // A clean stop, which empties the log into the database.
        assert_eq!(self.scene.daemon.stop(), Some(0));
        self.start();
        self.act(|scene| {
            scene.daemon.client().delete_images(&[2]).ok();
        });
        self.act(|scene| {
            let change = json!({ "hooks": { "timeout_seconds": 11 } });
            scene.daemon.client().patch("/config", &change).ok();
        });
    }
}

/// Replaces the content of the daemon's directories by this tree.
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

/// Checks all thumbnails: the cache may be lost, but a thumbnail that is served must be intact.
#[track_caller]
fn has_thumbnails(scene: &Scene, when: &str) {
    let page = scene.daemon.client().get("/images?per_page=200").ok();
    for image in page["data"].as_array().unwrap() {
        let place = format!("/images/{}/thumbnail", image["id"]);
        let answer = scene.daemon.client().get(&place);
        assert_eq!(answer.status, 200, "{when}: {place}: {}", answer.text());
        let picture = webp::Decoder::new(&answer.body).decode();
        assert!(
            picture.is_some(),
            "{when}: {place}: {} bytes",
            answer.body.len()
        );
    }
}

#[test]
fn acknowledged_changes_survive_a_power_loss() {
    let mut owner = Owner::new(every(83));
    owner.day();
    owner.scene.daemon.kill9();
    let Owner {
        mut scene,
        recorder,
        seen,
    } = owner;
    let (instants, outcomes) = {
        let mut recorder = recorder.lock().unwrap();
        (recorder.instants, std::mem::take(&mut recorder.outcomes))
    };
    assert!(
        !outcomes.is_empty() && instants > 200,
        "{instants} instants"
    );
    for outcome in &outcomes {
        let Outcome {
            when,
            acknowledged,
            tree,
        } = outcome;
        put(scene.daemon.root(), tree);
        eprintln!("{when}");
        scene.daemon.start();
        scene.keeps_its_files(when);
        let found = scene.holdings();
        // The action that was under way is done, or not.
        let fits = seen[*acknowledged..]
            .iter()
            .take(2)
            .any(|seen| *seen == found);
        assert!(
            fits,
            "{when}: after {acknowledged}:\n{found:#?}\n{:#?}",
            seen[*acknowledged]
        );
        has_thumbnails(&scene, when);
        scene.daemon.kill9();
    }
    eprintln!("{instants} instants, {} disks", outcomes.len());
}
