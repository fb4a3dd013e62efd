//! Watched directories: how the library follows what users and programs do to the files in them.

mod changes;
mod crowds;
mod dead_disk;
mod deletes;
mod disks;
mod equals;
mod kills;
mod links;
mod named;
mod packages;
mod quiet;
mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// A daemon that watches a directory.
struct Walls {
    daemon: TestDaemon,
    directory: PathBuf,
}

impl Walls {
    /// Has pictures of these names and numbers in the directory, and waits until they are imported.
    fn with(pictures: &[(&str, u32)]) -> Self {
        let mut walls = Self::prepared("", pictures);
        walls.daemon.start();
        walls.wait_for(pictures);
        walls
    }

    /// The same without starting the daemon, with more lines of `[library]`.
    fn prepared(settings: &str, pictures: &[(&str, u32)]) -> Self {
        Self::new(TestDaemon::new(), settings, pictures)
    }

    /// The same on a desktop.
    fn prepared_on(desktop: &Desktop, pictures: &[(&str, u32)]) -> Self {
        Self::new(TestDaemon::on(desktop), "", pictures)
    }

    fn new(daemon: TestDaemon, settings: &str, pictures: &[(&str, u32)]) -> Self {
        let directory = daemon.root().join("walls");
        fs::create_dir(&directory).unwrap();
        daemon.configure(&format!("[library]\nwatch = [{directory:?}]\n{settings}\n"));
        let walls = Self { daemon, directory };
        pictures
            .iter()
            .for_each(|(name, number)| walls.draw(name, *number));
        walls
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn draw(&self, name: &str, number: u32) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, picture(number)).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::create_dir_all(self.at(to).parent().unwrap()).unwrap();
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    /// All images, by their paths in the directory.
    fn images(&self) -> BTreeMap<String, Value> {
        let mut images = BTreeMap::new();
        for page in 1.. {
            let list = self
                .daemon
                .client()
                .get(&format!("/images?per_page=200&page={page}"))
                .ok();
            for image in list["data"].as_array().unwrap() {
                let path = Path::new(image["path"].as_str().unwrap());
                let name = path.strip_prefix(&self.directory).unwrap_or(path);
                images.insert(name.to_str().unwrap().to_owned(), image.clone());
            }
            if list["pagination"]["total_pages"].as_u64().unwrap() <= page {
                break;
            }
        }
        images
    }

    /// Waits until the library has exactly these pictures, with their content.
    #[track_caller]
    fn wait_for(&self, pictures: &[(&str, u32)]) {
        let wanted: BTreeMap<String, String> = pictures
            .iter()
            .map(|(name, number)| ((*name).to_owned(), checksum(*number)))
            .collect();
        let found = || -> BTreeMap<String, String> {
            let of = |image: &Value| image["checksum"].as_str().unwrap().to_owned();
            self.images()
                .iter()
                .map(|(name, image)| (name.clone(), of(image)))
                .collect()
        };
        wait_until(&format!("{:?}", wanted.keys()), || found() == wanted);
    }

    #[track_caller]
    fn id(&self, name: &str) -> i64 {
        let images = self.images();
        images
            .get(name)
            .unwrap_or_else(|| panic!("no {name}: {images:?}"))["id"]
            .as_i64()
            .unwrap()
    }

    /// Gives an image a tag and puts it into a new playlist: a new row for the file would lose both.
    fn treasure(&self, name: &str) -> i64 {
        let (client, id) = (self.daemon.client(), self.id(name));
        client
            .patch(&format!("/images/{id}"), &json!({ "tags": ["treasure"] }))
            .ok();
        let body = json!({ "name": name, "images": [{ "image_id": id }] });
        client.post("/playlists", &body).ok()["id"]
            .as_i64()
            .unwrap()
    }

    /// The images of a playlist.
    fn in_playlist(&self, playlist: i64) -> Vec<i64> {
        let playlist = self
            .daemon
            .client()
            .get(&format!("/playlists/{playlist}"))
            .ok();
        let items = playlist["images"].as_array().unwrap();
        items
            .iter()
            .map(|item| item["image_id"].as_i64().unwrap())
            .collect()
    }

    fn state(&self) -> Value {
        self.daemon.client().get("/library/watch").ok()["watch"][0].clone()
    }

    #[track_caller]
    fn wait_for_state(&self, state: &str) {
        wait_until(state, || self.state()["state"] == state);
    }
}

/// A picture file that is different for each number.
fn picture(number: u32) -> Vec<u8> {
    let [a, b, c, d] = number.to_le_bytes();
    let pixels = image::RgbImage::from_fn(24, 16, |x, y| {
        image::Rgb([a ^ x as u8, b ^ y as u8, c.wrapping_add(d) ^ (x * y) as u8])
    });
    let mut file = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut file, image::ImageFormat::Png).unwrap();
    file.into_inner()
}

fn checksum(number: u32) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(picture(number));
    format!(
        "sha256:{}",
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    )
}

/// The checksum of every file, by its path in the directory.
fn files(directory: &Path) -> BTreeMap<String, String> {
    use sha2::{Digest, Sha256};
    let mut found = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let digest = Sha256::digest(fs::read(&path).unwrap());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = path
            .strip_prefix(directory)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        found.insert(name, format!("sha256:{hex}"));
    }
    found
}
