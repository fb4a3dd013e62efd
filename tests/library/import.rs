//! Imports over the socket: every event, every kind of bad file, and the rows and files afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::support::TestDaemon;

/// A picture that is different for each number.
fn picture(directory: &Path, name: &str, number: u32) -> PathBuf {
    let path = directory.join(name);
    let pixel = |x: u32, y: u32| {
        let wave = ((x * (number + 3) / 40 + y / 30) % 200) as u8;
        image::Rgb([wave, (number * 37 % 256) as u8, 255 - wave])
    };
    image::RgbImage::from_fn(800, 500, pixel)
        .save(&path)
        .unwrap();
    path
}

fn source(daemon: &TestDaemon, number: u32) -> PathBuf {
    let directory = daemon.root().join("source");
    fs::create_dir_all(&directory).unwrap();
    (0..number).for_each(|n| drop(picture(&directory, &format!("{n:02}.jpg"), n)));
    directory
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// Checks that rows and files agree and that no temporary file is left; returns their number.
fn check_agreement(daemon: &TestDaemon) -> usize {
    let page = daemon.client().get("/images?per_page=200").ok();
    let rows: BTreeSet<PathBuf> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|image| image["path"].as_str().unwrap().into())
        .collect();
    let files: BTreeSet<PathBuf> = fs::read_dir(daemon.images())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(rows, files);
    assert_eq!(page["pagination"]["total_items"], rows.len());
    rows.len()
}

#[test]
fn batch_publishes_an_event_for_each_picture() {
    let daemon = TestDaemon::started();
    let source = source(&daemon, 30);
    let mut events = daemon.events("");
    let started = daemon
        .client()
        .post("/images", &json!({ "paths": [source] }));
    assert_eq!(started.status, 202);
    let started = started.ok();
    assert_eq!(keys(&started), ["status", "total", "batch_id"]);
    assert_eq!(
        (&started["status"], &started["total"]),
        (&json!("processing"), &json!(30))
    );

    let (kind, begun) = events.next();
    assert_eq!(
        (kind.as_str(), &begun["total"]),
        ("processing_started", &json!(30))
    );
    assert_eq!(keys(&begun), ["batch_id", "total", "timestamp"]);
    let mut numbers = Vec::new();
    let complete = loop {
        let (kind, data) = events.next();
        match kind.as_str() {
            "image_processed" => {
                let fields = [
                    "batch_id",
                    "image",
                    "current",
                    "total",
                    "elapsed_ms",
                    "path",
                    "timestamp",
                ];
                assert_eq!(keys(&data), fields);
                // The image can be read as soon as its event is published.
                let id = &data["image"]["id"];
                let image = daemon.client().get(&format!("/images/{id}")).ok();
                assert_eq!(image, data["image"]);
                numbers.push(data["current"].as_u64().unwrap());
            }
            "gallery_changed" => assert_eq!(data["domain"], "images"),
            "processing_complete" => break data,
            other => panic!("{other}: {data}"),
        }
    };
    assert_eq!(numbers, (1..=30).collect::<Vec<_>>());
    let fields = [
        "batch_id",
        "total",
        "succeeded",
        "failed",
        "elapsed_ms",
        "skipped",
        "timestamp",
    ];
    assert_eq!(keys(&complete), fields);
    assert_eq!(
        (&complete["succeeded"], &complete["failed"]),
        (&json!(30), &json!(0))
    );
    assert_eq!(complete["batch_id"], started["batch_id"]);
    assert_eq!(check_agreement(&daemon), 30);

    // A second import finds only duplicates.
    let mut events = daemon.events("image_processed,processing_complete");
    daemon
        .client()
        .post("/images", &json!({ "paths": [source] }))
        .ok();
    for _ in 0..30 {
        assert_eq!(events.wait_for("image_processed")["duplicate"], true);
    }
    assert_eq!(events.wait_for("processing_complete")["succeeded"], 30);
    assert_eq!(check_agreement(&daemon), 30);
}

#[test]
fn record_describes_the_picture() {
    let daemon = TestDaemon::started();
    let path = picture(daemon.root(), "Some picture.png", 7);
    let id = daemon.import(&[&path])[0];
    let client = daemon.client();
    let image = client.get(&format!("/images/{id}")).ok();
    let expected = json!({
        "name": "Some picture", "media_type": "image", "format": "png", "width": 800,
        "height": 500, "duration": 0.0, "animated": false, "audio_enabled": false, "tags": [],
        "folder_id": null, "is_selected": false, "source_path": path, "description": "",
        "file_size": fs::metadata(&path).unwrap().len(),
        "path": daemon.images().join("Some picture.png"),
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(image[field], *value, "{field}");
    }
    let sum = Command::new("sha256sum").arg(&path).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let checksum = image["checksum"].as_str().unwrap();
    assert_eq!(checksum.strip_prefix("sha256:"), sum.split(' ').next());
    assert!(!image["colors"].as_array().unwrap().is_empty());
    assert!(Path::new(image["thumbnails"]["default"].as_str().unwrap()).is_file());

    let raw = client.get(&format!("/images/{id}/raw"));
    assert_eq!(
        (raw.status, raw.header("content-type")),
        (200, Some("image/png"))
    );
    assert_eq!(raw.body, fs::read(&path).unwrap());
    let tag = raw.header("etag").unwrap();
    let headers = format!("If-None-Match: {tag}\r\n");
    assert_eq!(
        client
            .send("GET", &format!("/images/{id}/raw"), &headers, b"")
            .status,
        304
    );
    let part = client.send(
        "GET",
        &format!("/images/{id}/raw"),
        "Range: bytes=1-3\r\n",
        b"",
    );
    assert_eq!(
        (part.status, part.body.as_slice()),
        (206, b"PNG".as_slice())
    );
    for (resolution, width) in [("default", 500), ("720p", 800), ("4k", 800)] {
        let answer = client.get(&format!("/images/{id}/thumbnail?resolution={resolution}"));
        assert_eq!(answer.header("content-type"), Some("image/webp"));
        // VP8 has the width at a fixed place of the first frame.
        let seen = u16::from_le_bytes([answer.body[26], answer.body[27]]) & 0x3fff;
        assert_eq!(seen, width, "{resolution}");
    }
    client
        .get(&format!("/images/{id}/thumbnail?resolution=8k"))
        .fails(400);
    client.get("/images/999").fails(404);
    client.get("/images/one").fails(400);

    let gone = client.delete_images(&[id, 999]);
    assert_eq!(gone.ok()["deleted"], 1);
    assert_eq!(check_agreement(&daemon), 0);
    client.delete_images(&[]).fails(400);
}

/// A directory with one file of each bad kind, and one good JPEG with the wrong extension.
fn hostile(daemon: &TestDaemon) -> PathBuf {
    let directory = daemon.root().join("hostile");
    fs::create_dir(&directory).unwrap();
    let good = fs::read(picture(daemon.root(), "good.jpg", 1)).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(directory.join(name), bytes).unwrap();
    write("truncated.jpg", &good[..good.len() / 2]);
    write("zero.png", b"");
    write("text.jpg", b"this is no picture");
    write("really-a-jpeg.png", &good);
    fs::create_dir(directory.join("folder.png")).unwrap();
    let invalid = std::ffi::OsStr::from_bytes(b"bad\xff.jpg");
    fs::write(directory.join(invalid), &good[..good.len() - 7]).unwrap();
    let status = Command::new("mkfifo")
        .arg(directory.join("fifo.png"))
        .status();
    assert!(status.unwrap().success());
    write("bomb.png", &bomb());
    std::os::unix::fs::symlink("nowhere.png", directory.join("dangling.png")).unwrap();
    directory
}

/// A PNG of 30,000 × 30,000 white one-bit pixels: 110 kB that decode to 900 million pixels.
fn bomb() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 30_000, 30_000);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header().unwrap();
    writer
        .write_image_data(&vec![0xff; 30_000 / 8 * 30_000])
        .unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn hostile_files_are_reported_and_the_batch_continues() {
    let daemon = TestDaemon::started();
    let directory = hostile(&daemon);
    let last = picture(daemon.root(), "zz-last.png", 5);
    let mut events = daemon.events("image_processed,image_error,processing_complete");
    let paths = json!({ "paths": [directory, "/no/such/file.png", last] });
    let total = daemon.client().post("/images", &paths).ok()["total"]
        .as_u64()
        .unwrap();
    let (mut bad, mut good) = (Vec::new(), Vec::new());
    let complete = loop {
        let (kind, data) = events.next();
        match kind.as_str() {
            "image_error" => {
                assert!(!data["error"].as_str().unwrap().is_empty());
                let path = data["path"].as_str().unwrap();
                bad.push(path.rsplit('/').next().unwrap().to_owned());
            }
            "image_processed" => good.push(data["image"]["name"].as_str().unwrap().to_owned()),
            _ => break data,
        }
    };
    bad.sort();
    good.sort();
    let expected = [
        "bad\u{fffd}.jpg",
        "bomb.png",
        "dangling.png",
        "fifo.png",
        "file.png",
        "folder.png",
        "text.jpg",
        "truncated.jpg",
        "zero.png",
    ];
    assert_eq!(bad, expected);
    assert_eq!(good, ["really-a-jpeg", "zz-last"]);
    assert_eq!(complete["failed"].as_u64().unwrap() + 2, total);
    assert_eq!(check_agreement(&daemon), 2);
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak < 300 << 10, "{peak} kB at the peak");
}

#[test]
fn file_with_a_time_before_1970_is_served() {
    let daemon = TestDaemon::started();
    let path = picture(daemon.root(), "old.png", 7);
    let time = std::time::UNIX_EPOCH - std::time::Duration::from_secs(86_400);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(time).unwrap();
    let client = daemon.client();
    let body = json!({ "paths": [path], "in_place": true, "wait": true });
    let id = client.post("/images", &body).ok()["images"][0].clone();
    let raw = client.get(&format!("/images/{id}/raw"));
    assert_eq!((raw.status, raw.body), (200, fs::read(&path).unwrap()));
}

#[test]
fn unknown_files_in_a_directory_are_skipped() {
    let daemon = TestDaemon::started();
    let directory = daemon.root().join("mixed");
    fs::create_dir_all(&directory).unwrap();
    picture(&directory, "a.png", 3);
    for name in ["notes.txt", "Makefile", "called.png"] {
        fs::write(directory.join(name), "no picture").unwrap();
    }
    fs::write(directory.join("Makefile"), "").unwrap();
    let named = daemon.root().join("named.txt");
    fs::write(&named, "no picture").unwrap();
    let mut events = daemon.events("image_error,processing_complete");
    daemon
        .client()
        .post("/images", &json!({ "paths": [directory, named] }))
        .ok();
    let mut told = Vec::new();
    let complete = loop {
        let (kind, data) = events.next();
        if kind == "processing_complete" {
            break data;
        }
        let name = data["path"]
            .as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned();
        told.push((name, data.get("skipped").cloned()));
    };
    told.sort_by(|one, other| one.0.cmp(&other.0));
    let skipped = || Some(json!(true));
    let expected = [
        ("Makefile".to_owned(), skipped()),
        ("called.png".to_owned(), None),
        ("named.txt".to_owned(), None),
        ("notes.txt".to_owned(), skipped()),
    ];
    assert_eq!(told, expected);
    let counts = ["total", "succeeded", "failed", "skipped"].map(|name| complete[name].clone());
    assert_eq!(counts, [json!(5), json!(1), json!(2), json!(2)]);
}

#[test]
fn bad_requests_start_nothing() {
    let daemon = TestDaemon::started();
    let client = daemon.client();
    let post = |body: Value| client.post("/images", &body);
    post(json!({})).fails(400);
    post(json!({ "paths": "one" })).fails(400);
    post(json!({ "paths": ["relative.png"] })).fails(400);
    post(json!({ "paths": ["/tmp"], "folder_id": 99 })).fails(404);
    client
        .post("/images/cancel-import", &json!({ "batch_id": "none" }))
        .fails(404);
    client.get("/images?sort_by=size").fails(400);
    client.get("/images?page=0").fails(400);
    client.get("/images?page=9999999999999999999x").fails(400);
    assert_eq!(
        client.get("/images?page=99999999999999999999").ok()["data"],
        json!([])
    );
    client.get("/images?colors_near=red").fails(400);
    let page = client.get("/images?page=7&per_page=1000").ok();
    let pagination = json!({ "page": 7, "per_page": 200, "total_items": 0, "total_pages": 0 });
    assert_eq!(
        (&page["data"], &page["pagination"]),
        (&json!([]), &pagination)
    );
}

#[test]
fn cancelled_batch_keeps_what_it_has_imported() {
    let daemon = TestDaemon::started();
    let source = source(&daemon, 60);
    let mut events = daemon.events("image_processed,processing_complete,processing_cancelled");
    let batch = daemon
        .client()
        .post("/images", &json!({ "paths": [source] }))
        .ok()["batch_id"]
        .clone();
    events.wait_for("image_processed");
    let cancelled = daemon
        .client()
        .post("/images/cancel-import", &json!({ "batch_id": batch }));
    assert_eq!(
        cancelled.ok(),
        json!({ "status": "cancelled", "batch_id": batch })
    );
    let mut taken = 1;
    let last = loop {
        let (kind, data) = events.next();
        match kind.as_str() {
            "image_processed" => taken += 1,
            "processing_cancelled" => break data,
            other => panic!("{other}: {data}"),
        }
    };
    assert_eq!(
        (&last["batch_id"], &last["succeeded"]),
        (&batch, &json!(taken))
    );
    assert!(taken < 60);
    assert_eq!(check_agreement(&daemon), taken);
    daemon
        .client()
        .post("/images/cancel-import", &json!({ "batch_id": batch }))
        .fails(404);
}

#[test]
fn rows_and_files_agree_after_the_daemon_is_killed() {
    let mut daemon = TestDaemon::started();
    let source = source(&daemon, 40);
    for round in 0..5 {
        let mut events = daemon.events("image_processed,processing_complete");
        daemon
            .client()
            .post("/images", &json!({ "paths": [source] }))
            .ok();
        for _ in 0..=round * 6 {
            events.next();
        }
        daemon.kill9();
        daemon.start();
        // Files are reconciled in the background after the start.
        let temporary = || {
            let entries = fs::read_dir(daemon.images()).unwrap();
            entries
                .flatten()
                .any(|entry| entry.file_name().to_string_lossy().starts_with('.'))
        };
        wait_until("no temporary file", || !temporary());
        wait_until("agreement", || {
            let page = daemon.client().get("/images?per_page=200").ok();
            let files = fs::read_dir(daemon.images()).unwrap().count();
            page["pagination"]["total_items"] == files
        });
        check_agreement(&daemon);
    }
    daemon.import(&[&source]);
    assert_eq!(check_agreement(&daemon), 40);
}
