//! The library guard, and a start that finds files missing while clients send requests.

use std::collections::BTreeSet;
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
fn guard_keeps_rows_when_most_files_are_missing() {
    let mut daemon = TestDaemon::new();
    fill(&daemon, 50, |number| number < 2);
    daemon.start();
    let client = daemon.client();
    let info = || client.get("/info").ok();
    wait_until("the guard", || {
        info()["library"] == json!({ "missing": 48, "guarded": true })
    });
    let said = "48 of 50 pictures are missing";
    assert!(
        info()["warnings"][0].as_str().unwrap().contains(said),
        "{}",
        info()
    );
    assert!(
        client.get("/config").ok()["warnings"][0]
            .as_str()
            .unwrap()
            .contains(said)
    );
    assert!(status(&daemon).contains(said), "{}", status(&daemon));
    // Requests for a missing file purge nothing.
    client.get("/images/30").ok();
    client.get("/images/30/raw").fails(404);
    client.get("/images/30/thumbnail").fails(404);
    assert_eq!(total(&daemon), 50);

    // Most of the files return; the guard stays until the others do.
    let images = daemon.images();
    let back = |number| picture(&images.join(format!("{number:05}.png")), number);
    (2..45).for_each(back);
    let five = json!({ "missing": 5, "guarded": true });
    assert_eq!(info()["library"], five);
    assert_eq!(daemon.stop(), Some(0));
    daemon.start();
    wait_until("the guard", || info()["library"] == five);
    (45..50).for_each(back);
    assert_eq!(info()["library"], json!({ "missing": 0, "guarded": false }));
    assert!(info().get("warnings").is_none(), "{}", info());
    assert_eq!(total(&daemon), 50);
}

#[test]
fn purge_missing_removes_the_guarded_rows() {
    let mut daemon = TestDaemon::new();
    fill(&daemon, 50, |number| number < 2);
    daemon.start();
    let client = daemon.client();
    let guarded = || client.get("/info").ok()["library"]["guarded"] == true;
    wait_until("the guard", guarded);
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
    assert!(!guarded());
    assert_eq!(total(&daemon), 2);
    let again = client.post("/library/purge-missing", &json!({}));
    assert_eq!(again.ok(), json!({ "purged": 0 }));
}

#[test]
fn guarded_images_keep_their_cached_thumbnails() {
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
    wait_until("the guard", || {
        client.get("/info").ok()["library"]["guarded"] == true
    });
    for id in ids {
        let thumbnail = client.get(&format!("/images/{id}/thumbnail"));
        assert_eq!(thumbnail.status, 200);
    }
}

/// Fewer than a fifth are missing: they are purged in one step, while clients rename and delete.
#[test]
fn clients_are_served_while_missing_files_are_purged() {
    let mut daemon = TestDaemon::new();
    fill(&daemon, 7000, |number| {
        (1200..1300).contains(&number) || number >= 6900
    });
    // Empty files for the others: they only need to exist, and this is quicker.
    (1300..6900).for_each(|n| fs::write(daemon.images().join(format!("{n:05}.png")), "").unwrap());
    daemon.start();
    let client = daemon.client();
    let renamed: Vec<_> = (1..=4)
        .map(|number| {
            let (id, name) = (1200 + number, format!("lake {number}"));
            client
                .patch(&format!("/images/{id}"), &json!({ "name": name }))
                .ok()
        })
        .collect();
    let ids = json!({ "ids": [1206, 1207] }).to_string();
    client
        .send(
            "DELETE",
            "/images",
            "Content-Type: application/json\r\n",
            ids.as_bytes(),
        )
        .ok();
    wait_until("the missing images are purged", || total(&daemon) == 5798);
    for (image, number) in renamed.iter().zip(1..) {
        assert_eq!(image["name"], format!("lake {number}"));
        assert!(daemon.images().join(format!("lake {number}.png")).is_file());
        assert_eq!(
            client.get(&format!("/images/{}", image["id"])).ok()["name"],
            image["name"]
        );
    }
    let gone: BTreeSet<_> = ["01205.png", "01206.png"].into();
    assert!(gone.iter().all(|name| !daemon.images().join(name).exists()));
    assert_eq!(daemon.stop(), Some(0));
    let store = Store::open(&daemon.database()).unwrap();
    let files = store
        .read(images::files)
        .map_err(|e: store::Error| e)
        .unwrap();
    assert!(files.iter().all(|(_, path, _)| path.is_file()));
}
