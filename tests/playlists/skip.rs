//! Images that the backend cannot show: they are skipped in both directions, or nothing can be shown.

use std::fs;

use serde_json::json;

use super::{active, change, daemon, make, pictures_of, see, start, start_with_warnings, tell};
use crate::desktop::Desktop;
use crate::support::TestDaemon;

const EVENTS: &str =
    "playlist_image_changed,playlist_skipped_incompatible,playlist_no_compatible_item";

/// An HTML wallpaper in the library, which swaybg cannot show.
fn page(daemon: &TestDaemon, name: &str) -> i64 {
    let root = daemon.root().join(name);
    fs::create_dir(&root).unwrap();
    fs::write(root.join("index.html"), "<html><title>page</title></html>").unwrap();
    let answer = daemon
        .client()
        .post("/images/import-web", &json!({ "path": root }));
    answer.ok()["id"].as_i64().unwrap()
}

#[test]
fn incompatible_items_are_skipped_forward_and_backward() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 2);
    let pages = [page(&daemon, "a"), page(&daemon, "b")];
    let list = [ids[0], pages[0], pages[1], ids[1]];
    let id = make(&daemon, "mixed", json!({ "type": "manual" }), &list);
    let mut events = daemon.events(EVENTS);
    start(&daemon, id, &[]);
    assert_eq!(change(&mut events), (id, 0, ids[0]));
    for (action, skipped, applied) in [("next", [1, 2], 3), ("previous", [2, 1], 0)] {
        tell(&daemon, id, action);
        let (kind, event) = events.next();
        assert_eq!(kind, "playlist_skipped_incompatible");
        let item =
            |at: usize| json!({ "image_id": list[at], "media_type": "web", "slot_index": at });
        let expected = json!({
            "playlist_id": id, "playlist_name": "mixed", "backend": "swaybg", "skipped": 2,
            "applied_index": applied, "skipped_items": [item(skipped[0]), item(skipped[1])],
            "timestamp": event["timestamp"],
        });
        assert_eq!(event, expected, "{action}");
        assert_eq!(change(&mut events), (id, applied, list[applied as usize]));
        see(&desktop, "HEADLESS-1", usize::from(applied == 3));
    }
}

#[test]
fn missing_compatible_image_is_reported_and_fixed_by_an_edit() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 1);
    let page = page(&daemon, "page");
    let id = make(&daemon, "pages", json!({ "type": "timer" }), &[page]);
    let mut events = daemon.events(EVENTS);
    let started = start_with_warnings(&daemon, id, &[]);
    let warning = started["warnings"][0].as_str().unwrap_or_default();
    assert!(
        warning.starts_with("swaybg cannot show \"page\""),
        "{started}"
    );
    let (kind, event) = events.next();
    assert_eq!(kind, "playlist_no_compatible_item");
    let expected = json!({
        "playlist_id": id, "playlist_name": "pages", "total_images": 1, "backend": "swaybg",
        "timestamp": event["timestamp"],
    });
    assert_eq!(event, expected);
    // The playlist keeps running, but promises no change. A step fails, too, which publishes no second
    // event.
    assert_eq!(active(&daemon)[0]["playlist_id"], id);
    let why = daemon.client().get("/why").ok();
    let expected = "No change is scheduled: swaybg cannot show any image of playlist \"pages\".";
    assert!(why[0]["text"].as_str().unwrap().contains(expected), "{why}");
    let refused = daemon
        .client()
        .post(&format!("/playlists/{id}/next"), &json!({}))
        .fails(400);
    assert_eq!(refused["error_code"], "incompatible_backend");
    let images = json!({ "images": [{ "image_id": page }, { "image_id": ids[0] }] });
    daemon
        .client()
        .patch(&format!("/playlists/{id}"), &images)
        .ok();
    let (kind, event) = events.next();
    assert_eq!(
        (&*kind, &event["applied_index"]),
        ("playlist_skipped_incompatible", &json!(1))
    );
    assert_eq!(change(&mut events), (id, 1, ids[0]));
    see(&desktop, "HEADLESS-1", 0);
}

#[test]
fn missing_compatible_image_is_fixed_by_another_backend() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.stub("mpvpaper", "#!/bin/sh\nexec sleep 600\n");
    daemon.configure("[backend]\ntype = \"mpvpaper\"\n");
    daemon.start();
    let ids = pictures_of(&daemon, 1);
    let id = make(&daemon, "still", json!({ "type": "manual" }), &ids);
    let mut events = daemon.events(EVENTS);
    let started = daemon
        .murald(&["playlist", "start", "still"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(
        started.status.success() && told.contains("mpvpaper cannot show"),
        "{told}"
    );
    let (kind, event) = events.next();
    assert_eq!(
        (&*kind, &event["backend"]),
        ("playlist_no_compatible_item", &json!("mpvpaper"))
    );
    daemon
        .client()
        .post("/backends/swaybg/activate", &json!({}))
        .ok();
    assert_eq!(change(&mut events), (id, 0, ids[0]));
    see(&desktop, "HEADLESS-1", 0);
}
