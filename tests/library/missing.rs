//! Images whose files are missing: they are kept, counted, skipped and removed on request.

use std::fs;
use std::path::Path;

use murald::internals::store::images::{self, NewImage};
use murald::internals::store::{self, Store};
use murald::internals::wire::Format;
use serde_json::json;

use crate::desktop::wait_until;
use crate::support::TestDaemon;

/// Inserts rows of pictures in the library's directory, and writes files for those with `is_there`.
fn fill(daemon: &TestDaemon, total: u64, is_there: impl Fn(u64) -> bool) {
    let store = Store::open(&daemon.database()).unwrap();
    fs::create_dir_all(daemon.images()).unwrap();
    let insert = |c: &store::Connection| -> Result<(), store::Error> {
        (0..total).try_for_each(|number| {
            let path = daemon.images().join(format!("{number:05}.png"));
            if is_there(number) {
                picture(&path, number);
            }
            images::insert(c, &row(&path, number)).map(drop)
        })
    };
    store.write(|c| insert(c)).unwrap();
    store.checkpoint().unwrap();
}

/// A picture that is different for each number, so that none is a duplicate.
fn picture(path: &Path, number: u64) {
    let [a, b, c, ..] = number.to_le_bytes();
    image::RgbImage::from_pixel(4, 3, image::Rgb([a, b, c]))
        .save(path)
        .unwrap();
}

fn row(path: &Path, number: u64) -> NewImage {
    let mut checksum = [7; 32];
    checksum[..8].copy_from_slice(&number.to_le_bytes());
    NewImage {
        name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
        path: path.to_owned(),
        format: Format::Png,
        width: 4,
        height: 3,
        duration: 0.0,
        animated: false,
        audio_enabled: false,
        file_size: 90,
        checksum,
        colors: vec![[1, 2, 3]],
        hue_group: 99,
        folder_id: None,
        source_path: path.to_owned(),
        in_place: false,
        web: None,
    }
}

fn total(daemon: &TestDaemon) -> u64 {
    let page = daemon.client().get("/images?per_page=1").ok();
    page["pagination"]["total_items"].as_u64().unwrap()
}

fn status(daemon: &TestDaemon) -> String {
    let output = daemon.murald(&["status"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn rows_of_missing_files_are_kept() {
    let mut daemon = TestDaemon::new();
    fill(&daemon, 50, |number| number < 2);
    daemon.start();
    let client = daemon.client();
    let info = || client.get("/info").ok();
    let counted = |missing: u32| {
        wait_until("the count", || {
            info()["library"] == json!({ "missing": missing })
        });
    };
    counted(48);
    let said = "48 of 50 pictures are missing";
    assert!(
        info()["warnings"][0].as_str().unwrap().contains(said),
        "{}",
        info()
    );
    assert!(status(&daemon).contains(said), "{}", status(&daemon));
    // Requests for a missing file remove nothing.
    client.get("/images/30").ok();
    client.get("/images/30/raw").fails(404);
    client.get("/images/30/thumbnail").fails(404);
    assert_eq!(total(&daemon), 50);
    let images = daemon.images();
    let back = |number| picture(&images.join(format!("{number:05}.png")), number);
    (2..45).for_each(back);
    client.post("/library/scan", &json!({}));
    counted(5);
    assert_eq!(daemon.stop(), Some(0));
    (45..50).for_each(back);
    daemon.start();
    counted(0);
    assert!(info().get("warnings").is_none(), "{}", info());
    assert_eq!(total(&daemon), 50);
}

#[test]
fn purge_missing_removes_rows_of_missing_files() {
    let mut daemon = TestDaemon::new();
    fill(&daemon, 50, |number| number < 2);
    daemon.start();
    let client = daemon.client();
    let missing = || client.get("/info").ok()["library"]["missing"].clone();
    wait_until("the count", || missing() == 48);
    let mut events = daemon.events("gallery_changed,image_orphan_purged");
    let output = daemon
        .murald(&["library", "purge-missing", "--json"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"purged\":48}\n");
    assert_eq!(
        events.wait_for("image_orphan_purged")["reason"],
        "file_missing"
    );
    assert_eq!(missing(), 0);
    assert_eq!(total(&daemon), 2);
    let again = client.post("/library/purge-missing", &json!({}));
    assert_eq!(again.ok(), json!({ "purged": 0 }));
}

#[test]
fn missing_images_keep_their_thumbnails() {
    let mut daemon = TestDaemon::started();
    let sources: Vec<_> = (0..30)
        .map(|number| daemon.root().join(format!("{number}.png")))
        .collect();
    sources
        .iter()
        .zip(0..)
        .for_each(|(path, number)| picture(path, number));
    let paths: Vec<&Path> = sources.iter().map(AsRef::as_ref).collect();
    let ids = daemon.import(&paths);
    assert_eq!(daemon.stop(), Some(0));
    fs::remove_dir_all(daemon.images()).unwrap();
    fs::create_dir(daemon.images()).unwrap();
    daemon.start();
    let client = daemon.client();
    wait_until("the count", || {
        client.get("/info").ok()["library"]["missing"] == 30
    });
    for id in ids {
        let thumbnail = client.get(&format!("/images/{id}/thumbnail"));
        assert_eq!(thumbnail.status, 200);
    }
}
