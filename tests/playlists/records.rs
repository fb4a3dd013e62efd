//! Playlists over the socket: invalid ones, and edits of a running one.

use std::time::Duration;

use serde_json::{Value, json};

use super::{active, change, daemon, make, pictures_of, start, tell};
use crate::desktop::Desktop;
use crate::support::TestDaemon;

#[test]
fn invalid_playlists_are_refused_and_change_nothing() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 1);
    let id = make(&daemon, "kept", json!({}), &ids);
    let before = daemon.client().get(&format!("/playlists/{id}")).ok();
    let image = ids[0];
    let at = |time: Value| json!({ "image_id": image, "time": time });
    let check = |body: Value, status: u16, says: &str| {
        let refused = daemon
            .client()
            .post("/playlists", &body)
            .fails(status)
            .to_string();
        assert!(refused.contains(says), "{body}: {refused}");
        daemon
            .client()
            .patch(&format!("/playlists/{id}"), &body)
            .fails(status);
    };
    make(&daemon, "other", json!({}), &[]);
    let configured =
        |configuration: Value| json!({ "name": "new", "configuration": configuration });
    daemon.client().post("/playlists", &json!({})).fails(400);
    check(json!({ "name": "other" }), 409, "other");
    check(json!({ "name": " " }), 400, "name");
    check(json!({ "name": 7 }), 400, "name");
    check(configured(json!({ "interval": 0 })), 400, "interval");
    check(
        configured(json!({ "interval": 31_536_001 })),
        400,
        "interval",
    );
    check(configured(json!({ "interval": 1.5 })), 400, "interval");
    check(configured(json!({ "type": "hourly" })), 400, "type");
    check(configured(json!({ "order": "up" })), 400, "order");
    check(
        json!({ "name": "new", "images": [{ "image_id": 777 }] }),
        400,
        "777",
    );
    let many = vec![json!({ "image_id": image }); 10_001];
    check(json!({ "name": "new", "images": many }), 400, "10000");
    let day = json!({ "type": "time_of_day" });
    let with = |images: Value| json!({ "name": "new", "configuration": day, "images": images });
    check(with(json!([{ "image_id": image }])), 400, "time");
    check(with(json!([at(json!(5)), at(json!(5))])), 400, "time");
    check(with(json!([at(json!(1440))])), 400, "1440");
    let colour = json!({ "configuration": { "colour": 1 } });
    daemon
        .client()
        .patch(&format!("/playlists/{id}"), &colour)
        .fails(400);
    let all = daemon.client().get("/playlists").ok();
    assert_eq!((&all[0], all.as_array().unwrap().len()), (&before, 2));
    daemon.client().get("/playlists/77").fails(404);
    daemon.client().get("/playlists/x").fails(400);
    // A patch that changes nothing publishes no event.
    let mut events = daemon.events("gallery_changed,playlist_stopped");
    let patch = |body: Value| {
        daemon
            .client()
            .patch(&format!("/playlists/{id}"), &body)
            .ok()
    };
    let again = json!({ "name": "kept", "configuration": { "interval": 300 },
        "images": [{ "image_id": image }] });
    let unchangeable = json!({ "id": 77 });
    for body in [
        json!({}),
        again,
        unchangeable,
        json!({ "configuration": {} }),
    ] {
        assert_eq!(patch(body), before);
    }
    assert_eq!(patch(json!({ "images": [] }))["images"], json!([]));
    daemon.client().delete(&format!("/playlists/{id}")).ok();
    daemon
        .client()
        .post("/images/select-all", &json!({ "selected": true }))
        .ok();
    let heard: Vec<_> = (0..3).map(|_| events.next().1["domain"].clone()).collect();
    assert_eq!(heard, ["playlists", "playlists", "images"]);
}

#[test]
fn unused_item_times_are_kept() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 2);
    let id = make(&daemon, "kept", json!({ "type": "manual" }), &ids);
    let path = format!("/playlists/{id}");
    let images = json!([{ "image_id": ids[0], "time": 1444 }, { "image_id": ids[1], "time": -5 }]);
    let patched = daemon
        .client()
        .patch(&path, &json!({ "images": images }))
        .ok();
    assert_eq!(patched["images"][0]["time"], 1444);
    assert_eq!(daemon.client().get(&path).ok()["images"][1]["time"], -5);
    start(&daemon, id, &[]);
    // The same items are invalid for a playlist by time of day.
    let day = json!({ "configuration": { "type": "time_of_day" } });
    let refused = daemon.client().patch(&path, &day).fails(400).to_string();
    assert!(refused.contains("1444"), "{refused}");
    assert_eq!(
        daemon.client().get(&path).ok()["configuration"]["type"],
        "manual"
    );
}

#[test]
fn impossible_playlist_actions_are_refused() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 1);
    let post = |path: &str, body: Value| daemon.client().post(path, &body);
    let empty = make(&daemon, "empty", json!({}), &[]);
    let week = make(&daemon, "week", json!({ "type": "day_of_week" }), &ids);
    post(&format!("/playlists/{empty}/start"), json!({})).fails(400);
    post("/playlists/77/start", json!({})).fails(404);
    post("/playlists/77/next", json!({})).fails(404);
    let lost = json!({ "name": "lost", "source": { "folder_id": 77 } });
    let refused = post("/playlists", lost).fails(400);
    assert_eq!(refused["error"], "source.folder_id: no folder with ID 77");
    let change = json!({ "source": { "folder_id": 77 } });
    daemon
        .client()
        .patch(&format!("/playlists/{empty}"), &change)
        .fails(400);
    let nowhere = post(
        &format!("/playlists/{week}/start"),
        json!({ "monitors": ["DP-9"] }),
    );
    assert!(nowhere.fails(400).to_string().contains("HEADLESS-1"));
    for action in ["stop", "pause", "resume", "next", "previous"] {
        post(&format!("/playlists/{week}/{action}"), json!({})).fails(409);
    }
    assert_eq!(
        post("/playlists/active/next", json!({})).ok()["advanced"],
        0
    );
    // Null is like a missing field, as in `set`.
    let nothing = json!({ "monitors": null, "extend": null });
    post(&format!("/playlists/{week}/start"), nothing).ok();
    for action in ["next", "previous"] {
        post(&format!("/playlists/{week}/{action}"), json!({})).fails(400);
    }
    for _ in 0..2 {
        assert_eq!(tell(&daemon, week, "pause"), json!({ "status": "paused" }));
    }
    for action in ["next", "previous"] {
        let refused = post(&format!("/playlists/active/{action}"), json!({})).fails(400);
        assert!(
            refused["error"]
                .as_str()
                .unwrap()
                .contains("next and previous do not apply"),
            "{refused}"
        );
    }
    // An unknown field could be meant to exclude a monitor.
    for path in [
        "active/stop".to_owned(),
        format!("{week}/stop"),
        format!("{week}/start"),
    ] {
        let refused = post(&format!("/playlists/{path}"), json!({ "monitor": "DP-1" })).fails(400);
        assert!(
            refused["error"].as_str().unwrap().contains("`monitor`"),
            "{refused}"
        );
    }
    assert_eq!(active(&daemon).len(), 1);
    // Deleting a running playlist stops it.
    let mut events = daemon.events("playlist_stopped,gallery_changed");
    assert_eq!(
        daemon.client().delete(&format!("/playlists/{week}")).ok()["status"],
        "deleted"
    );
    assert_eq!(events.wait_for("playlist_stopped")["playlist_id"], week);
    assert_eq!(events.wait_for("gallery_changed")["domain"], "playlists");
    assert!(active(&daemon).is_empty());
}

#[test]
fn edit_applies_to_the_running_playlist() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 4);
    let id = make(&daemon, "edited", json!({ "interval": 3600 }), &ids);
    let place = format!("/playlists/{id}");
    let mut events = daemon.events("playlist_image_changed,playlist_stopped");
    start(&daemon, id, &[]);
    change(&mut events);
    let shown = tell(&daemon, id, "next");
    assert_eq!(change(&mut events), (id, 1, ids[1]));
    let image = daemon.client().get(&format!("/images/{}", ids[1])).ok();
    assert_eq!(
        shown,
        json!({
            "status": "advanced", "image_id": ids[1], "image_name": image["name"],
            "image_path": image["path"], "images": { "HEADLESS-1": ids[1] },
        })
    );
    // The step can be limited to a monitor.
    let next = |on: &str| {
        let body = json!({ "monitors": [on] });
        daemon.client().post("/playlists/active/next", &body)
    };
    assert!(next("DP-9").fails(400).to_string().contains("HEADLESS-1"));
    let said = daemon
        .murald(&["next", "--monitor", "HEADLESS-1"])
        .output()
        .unwrap();
    let name = daemon.client().get(&format!("/images/{}", ids[2])).ok()["name"].clone();
    let expected = format!("{} ({}) is on HEADLESS-1\n", name.as_str().unwrap(), ids[2]);
    assert_eq!(String::from_utf8_lossy(&said.stdout), expected, "{said:?}");
    change(&mut events);
    assert_eq!(tell(&daemon, id, "previous")["status"], "rewound");
    change(&mut events);
    // The playlist keeps its place by image, and its timer.
    let items = |ids: &[i64]| {
        let items: Vec<Value> = ids.iter().map(|id| json!({ "image_id": id })).collect();
        json!({ "images": items })
    };
    let before = active(&daemon)[0]["slot_started_at"].clone();
    assert_eq!(
        active(&daemon),
        active(&daemon),
        "also when the next change is due"
    );
    daemon
        .client()
        .patch(&place, &items(&[ids[3], ids[2], ids[1], ids[0]]))
        .ok();
    let now = &active(&daemon)[0];
    let expected = (&json!(2), &json!(ids[1]), &json!(ids[0]), &before);
    let found = (
        &now["current_index"],
        &now["current_image_id"],
        &now["next_image_id"],
        &now["slot_started_at"],
    );
    assert_eq!(found, expected);
    // A shorter interval counts from the last change.
    daemon
        .client()
        .patch(&place, &json!({ "configuration": { "interval": 1 } }))
        .ok();
    assert_eq!(change(&mut events), (id, 3, ids[0]));
    daemon
        .client()
        .patch(&place, &json!({ "configuration": { "type": "manual" } }))
        .ok();
    delete(&daemon, &ids[1..2]);
    let record = daemon.client().get(&place).ok();
    assert_eq!(record["images"].as_array().unwrap().len(), 3);
    // An empty playlist stops.
    delete(&daemon, &ids);
    assert_eq!(events.wait_for("playlist_stopped")["playlist_id"], id);
    assert!(active(&daemon).is_empty());
    assert_eq!(daemon.client().get(&place).ok()["images"], json!([]));
}

fn delete(daemon: &TestDaemon, ids: &[i64]) {
    let body = json!({ "ids": ids }).to_string();
    daemon
        .client()
        .send("DELETE", "/images", "", body.as_bytes())
        .ok();
}

/// The daemon uses its own time zone.
#[test]
fn playlist_starts_with_the_image_of_the_current_time() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.env("TZ", "Asia/Kathmandu");
    daemon.start();
    let ids = pictures_of(&daemon, 3);
    let now = jiff::Zoned::now().in_tz("Asia/Kathmandu").unwrap();
    let minute = i64::from(now.hour()) * 60 + i64::from(now.minute());
    // Half an hour ago, in half an hour, and in half a day.
    let times = [-30, 30, 720].map(|offset| (minute + offset).rem_euclid(1440));
    let items = |times: [i64; 3]| -> Vec<Value> {
        let item = |(id, time)| json!({ "image_id": id, "time": time });
        ids.iter().zip(times).map(item).collect()
    };
    let configuration = json!({ "type": "time_of_day" });
    let day = json!({ "name": "day", "configuration": configuration, "images": items(times) });
    let id = daemon.client().post("/playlists", &day).ok()["id"]
        .as_i64()
        .unwrap();
    let mut events = daemon.events("playlist_image_changed");
    start(&daemon, id, &[]);
    assert_eq!(change(&mut events), (id, 0, ids[0]));
    let next = || -> jiff::Timestamp {
        active(&daemon)[0]["next_change_at"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    let this_minute = now
        .with()
        .second(0)
        .subsec_nanosecond(0)
        .build()
        .unwrap()
        .timestamp();
    assert_eq!(next(), this_minute + Duration::from_secs(30 * 60));
    // After an edit of the times another item is due.
    let place = format!("/playlists/{id}");
    let body = json!({ "images": items([times[1], times[0], times[2]]) });
    daemon.client().patch(&place, &body).ok();
    assert_eq!(change(&mut events), (id, 1, ids[1]));
    daemon
        .client()
        .patch(
            &place,
            &json!({ "configuration": { "type": "day_of_week" } }),
        )
        .ok();
    let tomorrow = now.tomorrow().unwrap().start_of_day().unwrap();
    let image = |day: &jiff::Zoned| day.weekday().to_sunday_zero_offset().min(2);
    assert_eq!(active(&daemon)[0]["current_index"], image(&now));
    // Several weekdays have the last image.
    assert!(image(&now) == image(&tomorrow) || next() == tomorrow.timestamp());
}
