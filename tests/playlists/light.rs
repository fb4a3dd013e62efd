//! Playlists that follow light and dark mode or the sun, on a real desktop.

use serde_json::json;

use super::{daemon, see};
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

#[test]
fn light_and_dark_mode_change_the_wallpaper() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (mut daemon, all) = daemon(&desktop, 2);
    let put = |daemon: &TestDaemon, mode: &str| {
        let answer = daemon.client().send(
            "PUT",
            "/appearance",
            "Content-Type: application/json\r\n",
            json!({ "mode": mode }).to_string().as_bytes(),
        );
        answer.ok()
    };
    assert_eq!(
        put(&daemon, "light"),
        json!({ "mode": "light", "now": "light" })
    );
    let items = json!([
        { "image_id": all[0], "when": "light" },
        { "image_id": all[1], "when": "dark" },
    ]);
    let kind = json!({ "type": "appearance" });
    let body = json!({ "name": "sky", "configuration": kind, "images": items });
    let id = daemon.client().post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    let mut events = daemon.events("appearance_changed");
    super::start(&daemon, id, &["HEADLESS-1"]);
    see(&desktop, "HEADLESS-1", 0);
    let why = daemon.client().get("/why").ok()[0]["text"].to_string();
    assert!(why.contains("changes with light and dark"), "{why}");
    assert_eq!(
        put(&daemon, "dark"),
        json!({ "mode": "dark", "now": "dark" })
    );
    // No waiting: the answer comes after the change.
    let current = daemon.client().get("/wallpaper/current").ok();
    assert_eq!(current["image_id"].as_i64(), Some(all[1]), "{current}");
    let event = events.wait_for("appearance_changed");
    assert_eq!(
        (&event["mode"], &event["now"]),
        (&json!("dark"), &json!("dark"))
    );
    see(&desktop, "HEADLESS-1", 1);
    daemon.kill9();
    daemon.start();
    let kept = daemon.client().get("/appearance").ok();
    assert_eq!(
        kept,
        json!({ "mode": "dark", "now": "dark" }),
        "kept over a kill"
    );
    assert!(
        daemon
            .murald(&["appearance", "light"])
            .output()
            .unwrap()
            .status
            .success()
    );
    see(&desktop, "HEADLESS-1", 0);
    let shown = daemon.murald(&["appearance"]).output().unwrap().stdout;
    assert!(String::from_utf8(shown).unwrap().contains("light"));
    assert_eq!(
        daemon
            .murald(&["appearance", "grey"])
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
    // Such a playlist has no next image: the mode decides.
    assert_eq!(
        daemon.murald(&["next"]).output().unwrap().status.code(),
        Some(1)
    );
}

#[test]
fn sun_times_need_latitude_and_longitude() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, all) = daemon(&desktop, 2);
    let items = json!([
        { "image_id": all[0], "at": "sunrise-30m" },
        { "image_id": all[1], "at": "dusk" },
    ]);
    let kind = json!({ "type": "time_of_day" });
    let body = json!({ "name": "sun", "configuration": kind, "images": items });
    let refused = daemon
        .client()
        .post("/playlists", &body)
        .fails(400)
        .to_string();
    assert!(refused.contains("location"), "{refused}");
    let place = |body| daemon.client().patch("/config/location", &body);
    place(json!({ "latitude": 91 })).fails(400);
    place(json!({ "longitude": "east" })).fails(400);
    place(json!({ "latitude": 52.52, "longitude": 13.4 })).ok();
    let id = daemon.client().post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    super::start(&daemon, id, &["HEADLESS-1"]);
    let shown =
        || daemon.client().get("/wallpaper/current").ok()["monitors"][0]["image_id"].clone();
    wait_until("one of the images", || {
        shown().as_i64().is_some_and(|shown| all.contains(&shown))
    });
    let why = daemon.client().get("/why").ok()[0].clone();
    assert!(
        why["next"]["at"].is_string(),
        "the sun will rise or set: {why}"
    );
    // A missing location is logged once, and again when it is removed again.
    let said = || daemon.log().matches("06:00 and 18:00").count();
    assert_eq!(said(), 0);
    for times in 1..=2 {
        place(json!({ "latitude": null, "longitude": null })).ok();
        wait_until("a warning", || said() == times);
        let now = daemon.client().get("/why").ok()[0].clone();
        assert!(now["next"]["at"].is_string(), "{now}");
        place(json!({ "latitude": 52.52, "longitude": 13.4 })).ok();
        // The player checks the location between two answers.
        for _ in 0..2 {
            daemon.client().get("/playlists/active").ok();
        }
    }
    assert_eq!(said(), 2);
}
