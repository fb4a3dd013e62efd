//! Several files with the same content: copies that the user makes, and copies in the library.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::{Walls, checksum, picture};
use crate::desktop::wait_until;

/// Waits until the library has exactly these contents, and each image's file matches its checksum.
#[track_caller]
fn wait_for(walls: &Walls, numbers: &[u32]) {
    let wanted: BTreeSet<String> = numbers.iter().map(|number| checksum(*number)).collect();
    let is_so = || {
        let images = walls.images();
        let has_file = |image: &Value| {
            let number = numbers
                .iter()
                .find(|number| image["checksum"] == checksum(**number));
            let file = fs::read(Path::new(image["path"].as_str().unwrap()));
            number.is_some_and(|number| file.is_ok_and(|file| file == picture(*number)))
        };
        let found = images
            .values()
            .map(|image| image["checksum"].as_str().unwrap().to_owned());
        images.values().all(has_file) && found.collect::<BTreeSet<_>>() == wanted
    };
    wait_until(&format!("{numbers:?}"), is_so);
}

#[test]
fn imported_picture_is_not_overwritten_by_a_watched_duplicate() {
    let mut walls = Walls::prepared("", &[]);
    walls.daemon.start();
    let elsewhere = walls.daemon.root().join("mine.png");
    fs::write(&elsewhere, picture(1)).unwrap();
    walls.daemon.import(&[&elsewhere]);
    walls.draw("holiday.png", 1);
    wait_until("the file is known", || walls.state()["images"] == 1);
    walls.draw("holiday.png", 2);
    wait_for(&walls, &[1, 2]);
    walls.draw("holiday.png", 3);
    wait_for(&walls, &[1, 3]);
}

#[test]
fn duplicate_becomes_an_image_when_the_first_file_is_rewritten() {
    let mut walls = Walls::prepared("", &[("a.png", 1)]);
    walls.daemon.start();
    wait_for(&walls, &[1]);
    walls.draw("b.png", 1);
    walls.draw("c.png", 2);
    wait_for(&walls, &[1, 2]);
    walls.draw("a.png", 3);
    wait_for(&walls, &[1, 2, 3]);
}

#[test]
fn directory_that_loses_only_duplicates_is_not_away() {
    let mut walls = Walls::prepared("", &[]);
    let keep = walls.daemon.root().join("keep");
    fs::create_dir(&keep).unwrap();
    let watched = [&walls.directory, &keep];
    walls
        .daemon
        .configure(&format!("[library]\nwatch = {watched:?}\n"));
    for number in [1, 2] {
        fs::write(keep.join(format!("{number}.png")), picture(number)).unwrap();
    }
    walls.daemon.start();
    wait_for(&walls, &[1, 2]);
    walls.draw("a.png", 1);
    walls.draw("b.png", 2);
    wait_until("the files are known", || walls.state()["images"] == 2);
    for name in ["a.png", "b.png"] {
        fs::remove_file(walls.at(name)).unwrap();
    }
    wait_until("the removal", || {
        walls.state()["images"] == 0 && walls.state()["state"] == "watched"
    });
    wait_for(&walls, &[1, 2]);
}

#[test]
fn picture_keeps_its_other_file_when_one_gets_the_content_of_another_picture() {
    let walls = Walls::with(&[("y.png", 2)]);
    walls.draw("x.png", 1);
    walls.draw("x-backup.png", 1);
    wait_until("the files are known", || walls.state()["images"] == 2);
    wait_for(&walls, &[1, 2]);
    let count = |sql: &str| -> i64 {
        let connection = rusqlite::Connection::open(walls.daemon.database()).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let files = "SELECT count(*) FROM watched_file WHERE image_id IS NOT NULL";
    wait_until("three files", || count(files) == 3);
    walls.draw("x-backup.png", 2);
    let moved = "SELECT count(*) FROM watched_file JOIN image ON image.id = image_id \
                 WHERE watched_file.path LIKE '%/x-backup.png' AND image.path LIKE '%/y.png'";
    wait_until("the other image has it", || count(moved) == 1);
    // More than the ten seconds in which a missing file may be found again.
    std::thread::sleep(std::time::Duration::from_secs(13));
    wait_for(&walls, &[1, 2]);
    let wrong = "SELECT count(*) FROM watched_file JOIN image ON image.id = image_id \
                 WHERE image.checksum <> watched_file.checksum";
    assert_eq!(count(wrong), 0);
    let body = serde_json::json!({ "ids": [walls.id("y.png")], "files": true }).to_string();
    let answer = walls
        .daemon
        .client()
        .send("DELETE", "/images", "", body.as_bytes())
        .ok();
    let removed = [walls.at("x-backup.png"), walls.at("y.png")];
    assert_eq!(answer["files"], serde_json::json!(removed));
    assert!(walls.at("x.png").exists());
}

#[test]
fn picture_keeps_its_other_file_when_a_copy_of_another_is_renamed_over_it() {
    let walls = Walls::with(&[("x.png", 1), ("y.png", 2)]);
    let count = |sql: &str| -> i64 {
        let connection = rusqlite::Connection::open(walls.daemon.database()).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    walls.draw("x-copy.png", 1);
    walls.draw("y-copy.png", 2);
    let files = "SELECT count(*) FROM watched_file WHERE image_id IS NOT NULL";
    wait_until("four files", || count(files) == 4);
    fs::rename(walls.at("y-copy.png"), walls.at("x.png")).unwrap();
    let moved = "SELECT count(*) FROM image WHERE path LIKE '%/x-copy.png'";
    wait_until("the other file", || count(moved) == 1);
    wait_for(&walls, &[1, 2]);
}

#[test]
fn picture_that_is_overwritten_with_another_one_is_removed() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("b.png", 2), ("c.png", 3)]);
    // A file of another size, which cannot be one with a new name.
    let file = fs::OpenOptions::new().append(true).open(walls.at("b.png"));
    file.unwrap().write_all(&[0; 100]).unwrap();
    walls.daemon.start();
    wait_until("the images", || walls.images().len() == 3);
    walls.draw("b.png", 1);
    wait_for(&walls, &[1, 3]);
}

#[test]
fn picture_is_kept_when_its_only_file_is_in_a_directory_that_is_away() {
    let mut walls = Walls::prepared("", &[("a.png", 1), ("b.png", 2)]);
    let [keep, away] = ["keep", "away"].map(|name| walls.daemon.root().join(name));
    fs::create_dir(&keep).unwrap();
    fs::write(keep.join("a.png"), picture(1)).unwrap();
    fs::write(keep.join("c.png"), picture(3)).unwrap();
    let watched = [&keep, &walls.directory];
    walls
        .daemon
        .configure(&format!("[library]\nwatch = {watched:?}\n"));
    walls.daemon.start();
    wait_for(&walls, &[1, 2, 3]);
    wait_until("the duplicate", || walls.state()["images"] == 2);
    let here = keep.join("a.png").to_str().unwrap().to_owned();
    let image = || {
        let images = walls.images().into_values();
        let mut equal = images.filter(|image| image["checksum"] == checksum(1));
        equal.next().unwrap()
    };
    let before = image()["id"].clone();
    fs::rename(&keep, &away).unwrap();
    wait_until("the other file", || image()["path"] != here);
    fs::remove_file(walls.at("a.png")).unwrap();
    wait_until("the file that is away", || image()["path"] == here);
    // A new file takes its place until it is gone, too.
    walls.draw("d.png", 1);
    wait_until("the new file", || image()["path"] != here);
    fs::remove_file(walls.at("d.png")).unwrap();
    wait_until("the file that is away again", || image()["path"] == here);
    let client = walls.daemon.client();
    client.get(&format!("/images/{before}/raw")).fails(404);
    fs::rename(&away, &keep).unwrap();
    walls.wait_for_state("watched");
    wait_for(&walls, &[1, 2, 3]);
    assert_eq!(image()["id"], before);
}

#[test]
fn rewritten_file_keeps_its_image_if_its_new_content_was_dismissed() {
    let walls = Walls::with(&[("a.png", 1), ("b.png", 2)]);
    let (a, b) = (walls.id("a.png"), walls.id("b.png"));
    walls.daemon.client().delete_images(&[a]).ok();
    walls.wait_for(&[("b.png", 2)]);
    walls.draw("b.png", 1);
    walls.wait_for(&[("b.png", 1)]);
    assert_eq!(walls.id("b.png"), b);
}
