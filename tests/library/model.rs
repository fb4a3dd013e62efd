//! Random changes in a watched directory, compared with a model: the content of each file, and the tags
//! of each content that was never without a file.
//!
//! After each round every content has one image with a file of this content, every file belongs to the
//! image of its content, and no tag is lost. `MURALD_EVERY=N` runs N rounds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::desktop::wait_until;
use crate::support::TestDaemon;

const OPERATIONS: u32 = 14;

struct Model {
    daemon: TestDaemon,
    directory: PathBuf,
    state: u64,
    serial: u32,
    /// The tags that the image of each content has at least.
    tags: BTreeMap<String, BTreeSet<String>>,
    /// Contents of files that were rewritten, and what they became. A rewritten file keeps its row, so
    /// the tags of its old content stay with the row, even if another file still has this content.
    rewritten: BTreeMap<String, BTreeSet<String>>,
}

fn checksum(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

impl Model {
    fn random(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % below as u64) as usize
    }

    fn picture(&mut self) -> Vec<u8> {
        self.serial += 1;
        let [a, b, ..] = self.serial.to_le_bytes();
        let paint = |x: u32, y: u32| image::Rgb([a ^ x as u8, b ^ y as u8, (x * y) as u8]);
        let mut file = std::io::Cursor::new(Vec::new());
        image::RgbImage::from_fn(24, 16, paint)
            .write_to(&mut file, image::ImageFormat::Png)
            .unwrap();
        file.into_inner()
    }

    fn new_path(&mut self) -> PathBuf {
        self.serial += 1;
        let directories = ["", "one/", "one/two/", "three/"];
        let directory = directories[self.random(directories.len())];
        let path = self
            .directory
            .join(format!("{directory}{}.png", self.serial));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// The content of all files.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let (mut found, mut pending) = (BTreeMap::new(), vec![self.directory.clone()]);
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    pending.push(entry.path());
                } else {
                    found.insert(entry.path(), checksum(&fs::read(entry.path()).unwrap()));
                }
            }
        }
        found
    }

    fn some_file(&mut self) -> Option<PathBuf> {
        let files: Vec<PathBuf> = self.files().into_keys().collect();
        let at = self.random(files.len().max(1));
        files.get(at).cloned()
    }

    fn change(&mut self) {
        let Some(file) = self.some_file() else {
            let path = self.new_path();
            return fs::write(path, self.picture()).unwrap();
        };
        let Some(other) = self.some_file() else {
            return;
        };
        let new = self.new_path();
        match self.random(12) {
            0 | 1 => fs::write(new, self.picture()).unwrap(),
            2 | 3 => fs::rename(file, new).unwrap(),
            4 => fs::rename(file, other).unwrap(),
            5 => fs::write(file, self.picture()).unwrap(),
            6 => drop(fs::copy(file, new).unwrap()),
            7 => fs::write(&other, fs::read(&file).unwrap()).unwrap(),
            8 => {
                let saved = file.with_extension("tmp");
                fs::write(&saved, self.picture()).unwrap();
                fs::rename(saved, file).unwrap();
            }
            9 if file != other => {
                let between = self.directory.join("between.png");
                fs::rename(&file, &between).unwrap();
                fs::rename(&other, &file).unwrap();
                fs::rename(&between, &other).unwrap();
            }
            10 => fs::remove_file(file).unwrap(),
            11 => {
                let [from, to] = [self.directory.join("one"), self.directory.join("four")];
                if from.is_dir() && !to.exists() {
                    fs::rename(from, to).unwrap();
                } else if to.is_dir() && !from.exists() {
                    fs::rename(to, from).unwrap();
                }
            }
            _ => {}
        }
    }

    /// Waits until rows and files agree.
    fn settle(&self, when: &str) {
        let files = self.files();
        let contents: BTreeSet<&String> = files.values().collect();
        wait_until(&format!("{when}: rows and files agree"), || {
            let images = self.images();
            let known: BTreeSet<&String> = images.keys().collect();
            let has_file =
                |(content, (path, _)): (&String, &(PathBuf, _))| files.get(path) == Some(content);
            known == contents && images.iter().all(has_file) && self.rows() == files
        });
    }

    /// The path and the tags of each image.
    fn images(&self) -> BTreeMap<String, (PathBuf, BTreeSet<String>)> {
        let list = self.daemon.client().get("/images?per_page=200").ok();
        let images = list["data"].as_array().unwrap().iter().map(|image| {
            let text = |key: &str| image[key].as_str().unwrap().to_owned();
            let tags = image["tags"].as_array().unwrap().iter();
            let tags = tags.map(|tag| tag.as_str().unwrap().to_owned()).collect();
            (text("checksum"), (text("path").into(), tags))
        });
        images.collect()
    }

    fn query(&self, sql: &str) -> Vec<(String, String)> {
        let connection = rusqlite::Connection::open(self.daemon.database()).unwrap();
        connection.busy_timeout(crate::support::PATIENCE).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// The content of the image to which each file belongs.
    fn rows(&self) -> BTreeMap<PathBuf, String> {
        let sql = "SELECT file.path, 'sha256:' || lower(hex(image.checksum)) FROM watched_file AS file \
                   JOIN image ON image.id = file.image_id";
        let rows = self.query(sql).into_iter();
        rows.map(|(path, content)| (path.into(), content)).collect()
    }

    /// The files of an image have its content, at every instant.
    fn check_rows(&self, when: &str) {
        let wrong = "SELECT file.path, image.path FROM watched_file AS file \
                     JOIN image ON image.id = file.image_id WHERE image.checksum <> file.checksum";
        assert_eq!(self.query(wrong), [], "{when}");
    }

    /// Tags each image that has no tag of its own.
    fn tag(&mut self) {
        let list = self.daemon.client().get("/images?per_page=200").ok();
        for image in list["data"].as_array().unwrap() {
            let content = image["checksum"].as_str().unwrap().to_owned();
            if self.tags.contains_key(&content) {
                continue;
            }
            let mut tags: BTreeSet<String> = self.images()[&content].1.clone();
            tags.insert(content[7..15].to_owned());
            let path = format!("/images/{}", image["id"]);
            let patch = json!({ "tags": tags });
            self.daemon.client().patch(&path, &patch).ok();
            self.tags.insert(content, tags);
        }
    }

    /// Makes a random change, and notes which contents it rewrote. Forgets the tags of contents that
    /// have no file now.
    fn change_and_note(&mut self) {
        let before = self.files();
        self.change();
        let after = self.files();
        let contents: BTreeSet<&String> = after.values().collect();
        self.tags.retain(|content, _| contents.contains(content));
        let mut removed = Vec::new();
        for (path, content) in &before {
            match after.get(path).filter(|now| *now != content) {
                Some(now) => {
                    println!("{} {} is {}", path.display(), &content[7..15], &now[7..15]);
                    let became = self.rewritten.entry(content.clone()).or_default();
                    became.insert(now.clone());
                }
                None if !contents.contains(content) => removed.push(content.clone()),
                None => {}
            }
        }
        // With a removed file, the tags go that its row had from contents before.
        while let Some(content) = removed.pop() {
            println!("{} is removed", &content[7..15]);
            self.tags.remove(&content);
            self.rewritten.retain(|before, became| {
                if became.contains(&content) {
                    removed.push(before.clone());
                }
                !became.contains(&content)
            });
        }
    }

    fn check_tags(&mut self, when: &str) {
        let images = self.images();
        for content in std::mem::take(&mut self.rewritten).into_keys() {
            let Some(tags) = self.tags.remove(&content) else {
                continue;
            };
            let mut all = images.values();
            let is_kept = all.any(|(_, found)| found.is_superset(&tags));
            assert!(is_kept, "{when}: {content}: no image has {tags:?}");
        }
        for (content, tags) in &self.tags {
            let (path, found) = &images[content];
            assert!(
                found.is_superset(tags),
                "{when}: {path:?}: {found:?}, not {tags:?}"
            );
        }
    }
}

#[test]
fn files_belong_to_the_image_of_their_content_after_random_changes() {
    let daemon = TestDaemon::new();
    let directory = daemon.root().join("walls");
    fs::create_dir(&directory).unwrap();
    daemon.configure(&format!("[library]\nwatch = [{directory:?}]\n"));
    let seed = std::env::var("MURALD_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap().as_nanos() as u64 | 1
    });
    println!("MURALD_SEED={seed}");
    let mut model = Model {
        daemon,
        directory,
        state: seed,
        serial: 0,
        tags: BTreeMap::new(),
        rewritten: BTreeMap::new(),
    };
    for _ in 0..10 {
        let path = model.new_path();
        fs::write(path, model.picture()).unwrap();
    }
    model.daemon.start();
    let rounds = std::env::var("MURALD_EVERY").ok();
    let rounds: u32 = rounds.and_then(|text| text.parse().ok()).unwrap_or(4);
    for round in 0..rounds {
        let when = format!("seed {seed}, round {round}");
        model.settle(&when);
        model.check_tags(&when);
        model.tag();
        for _ in 0..OPERATIONS {
            model.change_and_note();
            if model.random(3) == 0 {
                sleep(Duration::from_millis(model.random(900) as u64));
                model.check_rows(&when);
            }
        }
        if model.random(2) == 0 {
            model.daemon.kill9();
            model.daemon.start();
        }
    }
    let when = format!("seed {seed}, in the end");
    model.settle(&when);
    model.check_tags(&when);
    model.check_rows(&when);
    assert!(!model.daemon.log().contains("panicked"), "{when}");
}
