//! A test daemon with known content: pictures, a playlist, a setting.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use murald::internals::digest;
use murald::internals::store::images::Checksum;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::gate::{Call, Gate};
use crate::desktop::wait_until;
use crate::support::TestDaemon;
use crate::support::client::Answer;

pub struct Scene {
    pub daemon: TestDaemon,
    pub gate: Gate,
    /// The id of the picture that is renamed and never deleted.
    pub kept: i64,
    pub playlist: i64,
    serial: u32,
}

/// The data that clients see: two of them are equal if nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holdings {
    /// Names by checksum.
    pub images: BTreeMap<String, String>,
    pub playlist: String,
    pub setting: Value,
}

impl Scene {
    /// Two pictures, a playlist of them, and a daemon without work.
    pub fn new() -> Self {
        let mut scene = Self::empty();
        scene.start(|_| None);
        let paths = [scene.picture(), scene.picture()];
        let ids = scene.daemon.import(&[&paths[0], &paths[1]]);
        scene.kept = ids[0];
        scene.make_list(&ids);
        let backups = scene.daemon.database().with_file_name("backup");
        wait_until("the day's backup", || {
            let entries = fs::read_dir(&backups).into_iter().flatten().flatten();
            entries
                .into_iter()
                .any(|e| e.file_name().to_string_lossy().starts_with("murald-"))
        });
        scene
    }

    /// Settings, and no daemon yet.
    pub fn empty() -> Self {
        let daemon = TestDaemon::new();
        daemon.configure("# kept\n[hooks]\ntimeout_seconds = 7\n");
        Self {
            daemon,
            gate: Gate::default(),
            kept: 0,
            playlist: 0,
            serial: 0,
        }
    }

    /// Starts the daemon behind a gate with this keeper.
    pub fn start(&mut self, keeper: impl FnMut(&Call) -> Option<i32> + Send + 'static) {
        let mut command = self.daemon.murald(&["start"]);
        self.gate = Gate::put_before(&mut command);
        self.gate.keep(keeper);
        self.daemon.start_by(command);
    }

    pub fn make_list(&mut self, images: &[i64]) {
        let items: Vec<Value> = images.iter().map(|id| json!({ "image_id": id })).collect();
        let body = json!({ "name": "list", "images": items });
        let list = self.daemon.client().post("/playlists", &body).ok();
        self.playlist = list["id"].as_i64().unwrap();
    }

    /// Makes a picture that is different from all others.
    pub fn picture(&mut self) -> PathBuf {
        self.serial += 1;
        let path = self.daemon.root().join(format!("{}.png", self.serial));
        let [a, b, c, d] = self.serial.to_le_bytes();
        let paint = |x: u32, y: u32| image::Rgb([x as u8 ^ a ^ d, y as u8 ^ b, (x + y) as u8 ^ c]);
        image::RgbImage::from_fn(48, 32, paint).save(&path).unwrap();
        path
    }

    pub fn holdings(&self) -> Holdings {
        let client = self.daemon.client();
        let named = self.rows().into_iter().map(|image| {
            (
                text(&image["checksum"]).to_owned(),
                text(&image["name"]).to_owned(),
            )
        });
        let list = client.get("/playlists").ok()[0].clone();
        Holdings {
            images: named.collect(),
            playlist: format!("{} {}", list["name"], list["images"]),
            setting: client.get("/config").ok()["hooks"]["timeout_seconds"].clone(),
        }
    }

    /// Checks that each row has its file with the right content, and that the settings file is intact.
    #[track_caller]
    pub fn agrees(&self, when: &str) {
        let mut owned = BTreeSet::new();
        for image in self.rows() {
            let path = PathBuf::from(text(&image["path"]));
            let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{when}: {path:?}: {e}"));
            let content: Checksum = Sha256::digest(&bytes).into();
            let expected = format!("sha256:{}", digest::hex(&content));
            assert_eq!(image["checksum"], expected, "{when}: {path:?}");
            assert_eq!(
                path.file_stem().unwrap().to_str(),
                image["name"].as_str(),
                "{when}"
            );
            owned.insert(path);
        }
        let settings = fs::read_to_string(self.daemon.config_file()).unwrap();
        let parsed: toml::Table = settings.parse().unwrap_or_else(|e| panic!("{when}: {e}"));
        assert!(settings.starts_with("# kept\n"), "{when}: {settings}");
        let kept = parsed["hooks"]["timeout_seconds"]
            .as_integer()
            .map(Value::from);
        let told = self.daemon.client().get("/config").ok()["hooks"]["timeout_seconds"].clone();
        assert_eq!(kept.unwrap(), told, "{when}");
    }

    /// The same, and that each file has its row; waits for the daemon's check of the library.
    #[track_caller]
    pub fn agrees_wholly(&self, when: &str) {
        wait_until(&format!("{when}: rows and files agree"), || {
            self.files() == self.owned()
        });
        self.agrees(when);
    }

    /// Like [`Scene::agrees`], once each row has its file. After a power loss, a copy may stay without a
    /// row: the note that it is pending does not wait for the disk.
    #[track_caller]
    pub fn keeps_its_files(&self, when: &str) {
        wait_until(&format!("{when}: each row has its file"), || {
            self.owned().is_subset(&self.files())
        });
        self.agrees(when);
    }

    /// Kills the daemon (`kill -9`) and starts it again.
    pub fn again(&mut self) {
        self.daemon.kill9();
        self.start(|_| None);
    }

    fn rows(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        for page in 1.. {
            let path = format!("/images?per_page=200&page={page}");
            let page = self.daemon.client().get(&path).ok();
            let (data, total) = (&page["data"], &page["pagination"]["total_items"]);
            rows.extend_from_slice(data.as_array().unwrap());
            if rows.len() as u64 >= total.as_u64().unwrap() {
                break;
            }
            assert_ne!(*data, json!([]), "{} of {total}", rows.len());
        }
        rows
    }

    fn owned(&self) -> BTreeSet<PathBuf> {
        self.rows()
            .iter()
            .map(|image| PathBuf::from(text(&image["path"])))
            .collect()
    }

    fn files(&self) -> BTreeSet<PathBuf> {
        let entries = fs::read_dir(self.daemon.images()).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// Whether the operation was done; a refusal must be well-formed.
#[track_caller]
pub fn is_done(answer: &Answer, when: &str) -> bool {
    if (200..300).contains(&answer.status) {
        return true;
    }
    assert!(
        [500, 503].contains(&answer.status),
        "{when}: {} {}",
        answer.status,
        answer.text()
    );
    let body = answer.fails(answer.status);
    assert_ne!(body["error"], "internal error", "{when}: {body}");
    false
}
