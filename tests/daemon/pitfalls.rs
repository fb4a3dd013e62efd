//! Tests common mistakes of such programs that no other test would notice: in starting, with the
//! library's disk, in refusals, lists and events.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;
use crate::support::client::Client;

fn plain(daemon: &TestDaemon, name: &str, color: [u8; 3]) -> PathBuf {
    let path = daemon.root().join(name);
    image::RgbImage::from_pixel(64, 36, image::Rgb(color))
        .save(&path)
        .unwrap();
    path
}

fn page(daemon: &TestDaemon) -> i64 {
    let root = daemon.root().join("page");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("index.html"), "<html><title>Rain</title>").unwrap();
    let answer = daemon
        .client()
        .post("/images/import-web", &json!({ "path": root }))
        .ok();
    answer["id"].as_i64().unwrap()
}

fn set(daemon: &TestDaemon, body: &Value) -> crate::support::client::Answer {
    daemon.client().post("/wallpaper/set", body)
}

#[test]
fn only_one_of_many_daemons_started_at_once_keeps_running() {
    let daemon = TestDaemon::new();
    let start = || {
        daemon
            .murald(&["start"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<_> = (0..6).map(|_| start()).collect();
    wait_until("one is left", || {
        let ended = children
            .iter_mut()
            .filter_map(|child| child.try_wait().unwrap());
        let ended: Vec<_> = ended.map(|status| status.code()).collect();
        assert!(ended.iter().all(|code| *code == Some(75)), "{ended:?}");
        ended.len() == 5
    });
    wait_until("it answers", || daemon.socket().exists());
    daemon.client().get("/healthz").ok();
    children.retain_mut(|child| child.try_wait().unwrap().is_none());
    // Neither the socket nor the lock of a killed daemon blocks the next one.
    children[0].kill().unwrap();
    children[0].wait().unwrap();
    assert!(daemon.socket().exists());
    let mut next = start();
    wait_until("the next answers", || {
        std::os::unix::net::UnixStream::connect(daemon.socket()).is_ok()
    });
    daemon.client().get("/healthz").ok();
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn startup_events_reach_early_subscribers() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.only(&[]);
    daemon.configure("[backend.builtin]\nenabled = false\n");
    daemon.start();
    let told = daemon
        .events("backend_unavailable")
        .wait_for("backend_unavailable");
    assert!(
        told["checked"]
            .as_array()
            .unwrap()
            .contains(&json!("swaybg")),
        "{told}"
    );
    assert!(
        told.get("backend").is_none() && told.get("retrying").is_none(),
        "{told}"
    );
}

#[test]
fn no_backend_is_available_without_a_session() {
    let daemon = TestDaemon::started();
    let current = daemon.client().get("/wallpaper/current").fails(503);
    assert_eq!(current["error_code"], "no_backend");
    assert!(
        current["meta"]["checked"]
            .as_array()
            .unwrap()
            .contains(&json!("swaybg")),
        "{current}"
    );
    let image = daemon.import(&[&plain(&daemon, "a.png", [200, 30, 30])])[0];
    let set = set(&daemon, &json!({ "image_id": image })).fails(503);
    assert_eq!(
        (&set["error"], &set["meta"]),
        (&current["error"], &current["meta"])
    );
}

#[test]
fn library_on_a_missing_disk_is_kept() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut daemon = TestDaemon::started_on(&desktop);
    let pictures = [
        plain(&daemon, "a.png", [200, 30, 30]),
        plain(&daemon, "b.png", [30, 180, 60]),
    ];
    let ids = daemon.import(&[&pictures[0], &pictures[1]]);
    set(&daemon, &json!({ "image_id": ids[0] })).ok();
    let items: Vec<Value> = ids.iter().map(|id| json!({ "image_id": id })).collect();
    daemon
        .client()
        .post("/playlists", &json!({ "name": "all", "images": items }))
        .ok();
    let mount = |from: &Path, to: &Path| {
        for entry in fs::read_dir(from).unwrap().flatten() {
            fs::rename(entry.path(), to.join(entry.file_name())).unwrap();
        }
    };
    let away = daemon.root().join("away");
    fs::create_dir(&away).unwrap();
    mount(&daemon.images(), &away);
    for id in &ids {
        set(&daemon, &json!({ "image_id": id })).fails(404);
    }
    daemon
        .client()
        .post("/playlists/1/start", &json!({}))
        .fails(404);
    daemon.kill9();
    daemon.start();
    wait_until("it is missed", || {
        daemon.log().contains("is the disk mounted?")
    });
    assert_eq!(
        daemon.client().get("/playlists/1").ok()["images"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    mount(&away, &daemon.images());
    set(&daemon, &json!({ "image_id": ids[1] })).ok();
    assert_eq!(
        daemon.client().get("/images").ok()["pagination"]["total_items"],
        2
    );
}

#[test]
fn monitor_shows_its_picture_again_once_a_scan_finds_the_file() {
    let desktop = Desktop::wayland(&["640x480"]);
    let daemon = TestDaemon::started_on(&desktop);
    let pictures = [
        plain(&daemon, "a.png", [200, 30, 30]),
        plain(&daemon, "b.png", [30, 180, 60]),
    ];
    let ids = daemon.import(&[&pictures[0], &pictures[1]]);
    for id in &ids {
        set(&daemon, &json!({ "image_id": id })).ok();
    }
    let is_shown = || {
        let current = daemon.client().get("/wallpaper/current").ok();
        current["monitors"][0]["image_id"] == ids[1]
    };
    let scan_after = |from: &Path, to: &Path, is_there: bool| {
        fs::rename(from, to).unwrap();
        daemon.client().post("/library/scan", &json!({}));
        wait_until("the picture of the monitor", || is_shown() == is_there);
    };
    let (file, away) = (daemon.images().join("b.png"), daemon.root().join("away"));
    scan_after(&file, &away, false);
    scan_after(&away, &file, true);
}

#[test]
fn html_wallpaper_without_its_package_is_purged() {
    let daemon = TestDaemon::started();
    let (id, other) = (page(&daemon), plain(&daemon, "other.png", [1, 2, 3]));
    daemon.import(&[&other]);
    let mut events = daemon.events("image_orphan_purged");
    let root =
        daemon.client().get(&format!("/images/{id}")).ok()["web_meta"]["package_root"].clone();
    fs::remove_dir_all(root.as_str().unwrap()).unwrap();
    set(&daemon, &json!({ "image_id": id })).fails(404);
    assert_eq!(events.wait_for("image_orphan_purged")["image_id"], id);
    daemon.client().get(&format!("/images/{id}")).fails(404);
}

#[test]
fn unshowable_image_is_refused_in_every_mode_and_not_picked() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let daemon = TestDaemon::started_on(&desktop);
    let (page, picture) = (page(&daemon), plain(&daemon, "a.png", [200, 30, 30]));
    for mode in ["individual", "clone", "extend"] {
        for monitors in [json!([]), json!(["HEADLESS-2"])] {
            let body = json!({ "image_id": page, "mode": mode, "monitors": monitors });
            let refused = set(&daemon, &body).fails(400);
            assert_eq!(refused["error_code"], "incompatible_backend");
            let meta = json!({ "backend": "swaybg", "media_type": "web", "image_id": page,
                "image_name": "page" });
            assert_eq!(refused["meta"], meta);
        }
    }
    let picture = daemon.import(&[&picture])[0];
    for _ in 0..8 {
        let answer = daemon.client().post("/wallpaper/random", &json!({})).ok();
        assert_eq!(answer["image_id"], picture);
    }
}

#[test]
fn empty_lists_are_arrays_not_null() {
    let daemon = TestDaemon::started();
    let client = daemon.client();
    for path in [
        "/playlists",
        "/playlists/active",
        "/monitors",
        "/images/history",
        "/api/themes",
    ] {
        assert_eq!(client.get(path).ok(), json!([]), "{path}");
    }
    assert_eq!(client.get("/folders").ok(), json!({ "data": [] }));
    assert_eq!(client.get("/images/tags").ok(), json!({ "tags": [] }));
    assert_eq!(client.get("/images?page=9").ok()["data"], json!([]));
    let image = daemon.import(&[&plain(&daemon, "a.png", [9, 9, 9])])[0];
    let image = client.get(&format!("/images/{image}")).ok();
    assert_eq!(
        (&image["tags"], &image["colors"]),
        (&json!([]), &json!(["#090909"]))
    );
    check_methods(&client);
}

/// An unknown path, and a known one with an unsupported method, both get JSON errors.
fn check_methods(client: &Client) {
    client.get("/nothing").fails(404);
    client.get("/playlists/").fails(404);
    let refused = client.send("PUT", "/images/history", "", b"{}");
    refused.fails(405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD, DELETE"));
}

#[test]
fn event_fields_keep_their_order() {
    let desktop = Desktop::wayland(&["640x480"]);
    let daemon = TestDaemon::started_on(&desktop);
    let picture = daemon.import(&[&plain(&daemon, "a.png", [200, 30, 30])])[0];
    let body = json!({ "name": "one", "images": [{ "image_id": picture }] });
    let mut events = daemon.events("");
    daemon.client().post("/playlists", &body).ok();
    daemon.client().post("/playlists/1/start", &json!({})).ok();
    events.wait_for("gallery_changed");
    let mut check = |kind: &str, fields: &[&str]| {
        let event = events.wait_for(kind);
        let found: Vec<_> = event
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(found, [fields, &["timestamp"]].concat(), "{kind}");
        let time = event["timestamp"].as_str().unwrap();
        assert!(time.contains('.') && time.ends_with("+00:00"), "{time}");
        event
    };
    let changed = [
        "image_id",
        "media_type",
        "path",
        "tags",
        "monitors",
        "mode",
        "source",
        "backend",
        "colors",
        "image_name",
    ];
    let event = check("wallpaper_changed", &changed);
    assert_eq!(
        (&event["tags"], &event["source"]),
        (&json!([]), &json!("playlist"))
    );
    check("gallery_changed", &["domain"]);
    // The event follows when the image is shown.
    let playlist = [
        "playlist_id",
        "playlist_name",
        "monitors",
        "applied_to",
        "extend",
    ];
    check("playlist_started", &playlist);
    let change = ["playlist_id", "image_index", "image_id", "monitors"];
    check("playlist_image_changed", &change);
    daemon.client().post("/playlists/1/pause", &json!({})).ok();
    check("playlist_paused", &["playlist_id"]);
    daemon
        .client()
        .post("/playlists/active/resume", &json!({}))
        .ok();
    check("playlist_resumed", &["action", "resumed"]);
    daemon
        .client()
        .post("/playlists/active/stop", &json!({}))
        .ok();
    check("playlist_stopped", &["action", "stopped"]);
    daemon
        .client()
        .patch("/config/app", &json!({ "theme": "light" }))
        .ok();
    check("config_changed", &["sections"]);
    daemon.client().post("/config/reset", &json!({})).ok();
    assert_eq!(
        check("config_changed", &["sections", "source"])["source"],
        "api_reset_all"
    );
    fs::remove_file(daemon.images().join("a.png")).unwrap();
    set(&daemon, &json!({ "image_id": picture })).fails(404);
    let purged = [
        "image_id",
        "reason",
        "monitor_states_purged",
        "history_entries_purged",
        "playlists_affected",
    ];
    let event = check("image_orphan_purged", &purged);
    let counts = [
        &event["monitor_states_purged"],
        &event["history_entries_purged"],
        &event["playlists_affected"],
    ];
    assert_eq!(counts, [1, 1, 1]);
}
