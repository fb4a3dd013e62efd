//! Packages in watched directories: a page is copied as one image, and copied again when it has changed;
//! a video is used in place under its title.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Walls, checksum};
use crate::desktop::wait_until;

impl Walls {
    fn names(&self) -> Vec<String> {
        let images = self.images().into_values();
        let mut names: Vec<_> = images
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Writes a file as rsync does.
    fn put(&self, name: &str, content: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let temporary = path.with_file_name(".unfinished.x8Kq2a");
        fs::write(&temporary, content).unwrap();
        fs::rename(temporary, path).unwrap();
    }

    fn put_manifest(&self, package: &str, manifest: &Value) {
        self.put(&format!("{package}/project.json"), &manifest.to_string());
    }
}

/// The files of a package, by their paths in it, without its manifest. An error if it is renamed just now.
fn content(package: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut pending = vec![package.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if entry.file_name() != "project.json" {
                let inside = path.strip_prefix(package).unwrap().to_owned();
                found.push((inside, fs::read_to_string(path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[test]
fn package_in_a_watched_directory_is_one_image() {
    let walls = Walls::with(&[("a.png", 1)]);
    let package = walls.at("workshop/123");
    fs::create_dir_all(package.join("sprites")).unwrap();
    walls.draw("workshop/123/sprites/drop.png", 2);
    walls.draw("workshop/123/preview.png", 3);
    wait_until("its pictures, as the manifest comes last", || {
        walls.names() == ["a", "drop", "preview"]
    });
    fs::write(package.join("rain.html"), "<p>rain</p>").unwrap();
    let manifest =
        json!({ "title": "Rain", "type": "web", "file": "rain.html", "preview": "preview.png" });
    fs::write(package.join("project.json"), manifest.to_string()).unwrap();
    wait_until("the package", || walls.names() == ["Rain", "a"]);
    // It is a copy, which stays when the package goes.
    walls.draw("b.png", 4);
    fs::remove_dir_all(&package).unwrap();
    wait_until("another picture", || walls.names() == ["Rain", "a", "b"]);
    walls.wait_for_state("watched");
}

#[test]
fn package_is_imported_when_its_page_follows_its_manifest() {
    let walls = Walls::with(&[("a.png", 1)]);
    fs::create_dir(walls.at("pack")).unwrap();
    fs::write(walls.at("pack/waypaper.json"), r#"{"title": "Rain"}"#).unwrap();
    // A later file of the same batch, or of the next one.
    walls.draw("z.png", 2);
    walls.wait_for(&[("a.png", 1), ("z.png", 2)]);
    fs::write(walls.at("pack/index.html"), "<p>rain</p>").unwrap();
    let is_package = |image: &Value| image["name"] == "Rain";
    wait_until("the package", || walls.images().values().any(is_package));
}

#[test]
fn page_that_is_copied_slowly_is_one_image_and_follows_its_package() {
    let walls = Walls::with(&[("a.png", 1)]);
    let manifest = |title: &str, file: &str| json!({ "title": title, "type": "web", "file": file });
    walls.put_manifest("pack", &manifest("Rain", "index.html"));
    walls.put("pack/index.html", "<p>rain</p>");
    let mut ids = BTreeSet::new();
    let pages = || {
        let mut pages = walls.images();
        pages.retain(|_, image| image["media_type"] == "web");
        pages.into_values()
    };
    for number in 0..100 {
        walls.put(
            &format!("pack/parts/{}/{number}.js", number % 7),
            &number.to_string(),
        );
        // The speed of the copy.
        sleep(Duration::from_millis(50));
        ids.extend(pages().map(|image| image["id"].as_i64().unwrap()));
    }
    let copy = |image: &Value| PathBuf::from(image["web_meta"]["package_root"].as_str().unwrap());
    let is_whole = || {
        let whole = content(&walls.at("pack")).unwrap();
        let same = |image: Value| content(&copy(&image)).is_ok_and(|files| files == whole);
        pages().next().is_some_and(same)
    };
    wait_until("the whole package", is_whole);
    ids.extend(pages().map(|image| image["id"].as_i64().unwrap()));
    assert_eq!(ids.len(), 1);
    let id = *ids.first().unwrap();
    let client = walls.daemon.client();
    let patch = |change: Value| client.patch(&format!("/images/{id}"), &change).ok();
    patch(json!({ "tags": ["treasure"], "web_capabilities": { "network": true } }));
    // A file deep inside, then the title, the page, and a title after the user has chosen a name.
    // While it is copied to its name, the image has another one.
    let image = || client.get(&format!("/images/{id}")).ok();
    walls.put("pack/parts/3/3.js", "new");
    wait_until("the changed file", is_whole);
    walls.put_manifest("pack", &manifest("Storm", "index.html"));
    wait_until("the new title", || walls.names() == ["Storm", "a"]);
    walls.put("pack/other.html", "<p>storm</p>");
    walls.put_manifest("pack", &manifest("Storm", "other.html"));
    let entry = |image: &Value| image["path"].as_str().unwrap().ends_with("/other.html");
    wait_until("the new page", || entry(&image()));
    wait_until("the name", || image()["name"] == "Storm");
    patch(json!({ "name": "mine" }));
    walls.put_manifest("pack", &manifest("Gale", "index.html"));
    let title = || image()["web_meta"]["title"].clone();
    wait_until("the last title", || title() == "Gale");
    wait_until("the chosen name", || image()["name"] == "mine");
    let image = image();
    assert_eq!(
        (&image["id"], &image["tags"]),
        (&json!(id), &json!(["treasure"]))
    );
    assert_eq!(image["web_meta"]["capabilities"]["network"], true);
    let written = fs::read_to_string(copy(&image).join("project.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["capabilities"]["network"], true);
    wait_until("no copy of before is left", || {
        fs::read_dir(walls.daemon.images()).unwrap().count() == 1
    });
    assert!(is_whole());
}

#[test]
fn video_of_a_package_is_used_in_place_under_its_title() {
    let mut walls = Walls::with(&[("a.png", 1)]);
    // A picture is quicker to make than a video, and an animated one may be named, too.
    walls.draw("pack/film.png", 2);
    walls.draw("pack/preview.png", 3);
    wait_until("its pictures, as the manifest comes last", || {
        walls.names() == ["a", "film", "preview"]
    });
    let manifest = |title: &str, file: &str| json!({ "title": title, "type": "video", "file": file, "preview": "preview.png" });
    let id = walls.id("pack/film.png");
    walls.put_manifest("pack", &manifest("Ocean", "Film.png"));
    wait_until("the title", || walls.names() == ["Ocean", "a"]);
    walls.wait_for(&[("a.png", 1), ("pack/film.png", 2)]);
    assert_eq!(walls.images()["pack/film.png"]["in_place"], true);
    let playlist = walls.treasure("pack/film.png");
    walls.put_manifest("pack", &manifest("Sea", "film.png"));
    wait_until("the corrected title", || walls.names() == ["Sea", "a"]);
    walls.draw("pack/film.png", 4);
    walls.wait_for(&[("a.png", 1), ("pack/film.png", 4)]);
    walls.draw("pack/other.png", 5);
    walls.put_manifest("pack", &manifest("Sea", "other.png"));
    walls.wait_for(&[("a.png", 1), ("pack/other.png", 5)]);
    assert_eq!(walls.id("pack/other.png"), id);
    let client = walls.daemon.client();
    client
        .patch(&format!("/images/{id}"), &json!({ "name": "mine" }))
        .ok();
    walls.put_manifest("pack", &manifest("Pond", "other.png"));
    // One that is complete when it is found has its title from the start.
    walls.draw("new/film.png", 6);
    walls.rename("new/film.png", ".new/parts/film.png");
    let other = json!({ "title": "Lake", "type": "video", "file": "parts/film.png" });
    walls.put_manifest(".new", &other);
    walls.rename(".new", "full");
    wait_until("the complete package", || {
        walls.names() == ["Lake", "a", "mine"]
    });
    let all = [
        ("a.png", 1),
        ("full/parts/film.png", 7),
        ("pack/other.png", 5),
    ];
    walls.draw("full/parts/film.png", 7);
    walls.wait_for(&all);
    assert!(walls.daemon.stop().is_some());
    walls.daemon.start();
    walls.wait_for(&all);
    wait_until("the scan", || walls.state()["message"].is_null());
    walls.wait_for(&all);
    assert_eq!(walls.names(), ["Lake", "a", "mine"]);
    assert_eq!(
        (walls.id("pack/other.png"), walls.in_playlist(playlist)),
        (id, vec![id])
    );
    assert_eq!(
        walls.images()["pack/other.png"]["checksum"],
        json!(checksum(5))
    );
    let copies = fs::read_dir(walls.daemon.images());
    assert_eq!(copies.map_or(0, Iterator::count), 0);
    // Only the video is removed with its image.
    let client = walls.daemon.client();
    let body = json!({ "ids": [id], "files": true }).to_string();
    let deleted = client.send("DELETE", "/images", "", body.as_bytes());
    assert_eq!(deleted.ok()["deleted"], 1);
    assert!(!walls.at("pack/other.png").exists() && walls.at("pack/preview.png").exists());
}
