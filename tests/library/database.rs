//! Backups of the database, damage to it, and restoring it.

use std::fs;
use std::path::Path;
use std::process::Output;

use murald::internals::store::{self, Store};
use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::support::TestDaemon;

/// A test daemon with two pictures, a backup and no running daemon, and the pictures' ids.
fn daemon() -> (TestDaemon, Vec<i64>) {
    let mut daemon = TestDaemon::started();
    let paths = [1, 2].map(|number| daemon.root().join(format!("{number}.png")));
    for (path, shade) in paths.iter().zip([9, 200]) {
        image::RgbImage::from_pixel(40, 30, image::Rgb([shade, 9, 9]))
            .save(path)
            .unwrap();
    }
    let mut ids = daemon.import(&[&paths[0], &paths[1]]);
    // Ids follow the order of the paths, but the events come in the order in which the files are done.
    ids.sort_unstable();
    // A stop would interrupt the backup, and the next comes only with another write.
    wait_until("the backup", || {
        let report = library(&daemon, &["check"]).1;
        !report["backups"].as_array().unwrap().is_empty()
    });
    assert_eq!(daemon.stop(), Some(0));
    (daemon, ids)
}

fn library(daemon: &TestDaemon, words: &[&str]) -> (Option<i32>, Value, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = daemon
        .murald(&[&["library"], words, &["--json"]].concat())
        .output()
        .unwrap();
    let told = String::from_utf8(stderr).unwrap();
    (
        status.code(),
        serde_json::from_slice(&stdout).unwrap_or_default(),
        told,
    )
}

fn ids(daemon: &TestDaemon) -> Vec<i64> {
    let page = daemon
        .client()
        .get("/images?sort_by=imported_at&sort_order=asc")
        .ok();
    let data = page["data"].as_array().unwrap();
    assert_eq!(page["pagination"]["total_items"], data.len());
    data.iter()
        .map(|image| image["id"].as_i64().unwrap())
        .collect()
}

#[test]
fn damaged_database_is_reported_and_restored() {
    let (mut daemon, before) = daemon();
    let (code, ..) = library(&daemon, &["check"]);
    assert_eq!(code, Some(0));
    // An earlier backup has less than the database has now.
    let backups = daemon.database().with_file_name("backup");
    fs::remove_dir_all(&backups).ok();
    daemon.start();
    daemon
        .client()
        .patch(
            &format!("/images/{}", before[0]),
            &json!({ "tags": ["lake"] }),
        )
        .ok();
    wait_until("the backup", || {
        let (code, report, told) = library(&daemon, &["check"]);
        assert_eq!((code, &report["problems"]), (Some(0), &json!([])), "{told}");
        assert_eq!(
            (&report["images"], &report["missing"]),
            (&json!(2), &json!(0))
        );
        report["backups"].as_array().unwrap().len() == 1
    });
    let (code, _, told) = library(&daemon, &["restore"]);
    assert_eq!(code, Some(75), "{told}");
    assert_eq!(ids(&daemon), before);
    assert_eq!(daemon.stop(), Some(0));

    fs::write(daemon.database(), "no database").unwrap();
    let output = daemon.murald(&["start"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(70), "{told}");
    assert!(told.contains("file is not a database"), "{told}");
    assert!(told.contains("`murald library restore`"), "{told}");
    let (code, report, told) = library(&daemon, &["check"]);
    assert_eq!(
        (code, report["problems"].as_array().unwrap().len()),
        (Some(1), 1),
        "{told}"
    );
    assert!(told.contains("library restore"), "{told}");

    let (code, _, told) = library(&daemon, &["restore", "/nowhere"]);
    assert_eq!(code, Some(1), "{told}");
    let (code, restored, told) = library(&daemon, &["restore"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(Path::new(restored["from"].as_str().unwrap()).starts_with(&backups));
    assert_eq!(
        fs::read(restored["aside"].as_str().unwrap()).unwrap(),
        b"no database"
    );
    daemon.start();
    assert_eq!(ids(&daemon), before);
    daemon.kill9();
    daemon.start();
    assert_eq!(ids(&daemon), before);
}

#[test]
fn database_is_checked_after_an_unclean_shutdown() {
    let (mut daemon, ids) = daemon();
    daemon.start();
    daemon
        .client()
        .patch(&format!("/images/{}", ids[0]), &json!({ "tags": ["lake"] }))
        .ok();
    daemon.kill9();
    daemon.start();
    wait_until("the check", || {
        daemon.log().contains("the database is intact")
    });
    assert_eq!(
        daemon.client().get(&format!("/images/{}", ids[0])).ok()["tags"],
        json!(["lake"])
    );
}

#[test]
fn row_that_cannot_be_read_is_reported_as_damage() {
    let (mut daemon, before) = daemon();
    let store = Store::open(&daemon.database()).unwrap();
    let spoil = |c: &store::Connection| -> Result<usize, store::Error> {
        Ok(c.execute("UPDATE image SET web_meta = '{' WHERE id = ?1", [before[0]])?)
    };
    store.write(|c| spoil(c)).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    daemon.start();
    let client = daemon.client();
    for path in ["/images".to_owned(), format!("/images/{}", before[0])] {
        let told = client.get(&path).fails(500);
        assert_eq!(told["error"], "the database is damaged", "{path}");
        assert!(
            told.to_string().contains("`murald library restore`"),
            "{path}: {told}"
        );
    }
    client.get(&format!("/images/{}", before[1])).ok();
    client.get("/healthz").ok();
    // The way back: the backup of before.
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(library(&daemon, &["restore"]).0, Some(0));
    daemon.start();
    daemon.client().get("/images").ok();
}
