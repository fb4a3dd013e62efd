//! Tests the explanation of what a monitor shows: its source, the next change, and failures.

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::scene::{plain, set, three};
use crate::support::TestDaemon;

#[test]
fn why_reports_the_source_the_next_change_and_failures() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let mut daemon = TestDaemon::started_on(&desktop);
    let [red, green, blue] = three(&daemon);
    let why = |daemon: &TestDaemon, monitor: &str| {
        daemon.client().get(&format!("/why?monitor={monitor}")).ok()[0].clone()
    };
    let text = |daemon: &TestDaemon, monitor: &str| {
        why(daemon, monitor)["text"].as_str().unwrap().to_owned()
    };
    assert!(text(&daemon, "HEADLESS-1").starts_with("HEADLESS-1: no wallpaper is set."));
    assert_eq!(why(&daemon, "HEADLESS-1")["image_id"], json!(null));
    assert_eq!(daemon.client().get("/why?monitor=DP-9").status, 404);

    set(&daemon, red, "HEADLESS-1").ok();
    let body = json!({ "monitor": "HEADLESS-2" });
    let random = daemon.client().post("/wallpaper/random", &body).ok()["image_id"].clone();
    let one = why(&daemon, "HEADLESS-1");
    assert_eq!(
        (&one["image_id"], &one["source"]["type"]),
        (&json!(red), &json!("manual"))
    );
    let said = text(&daemon, "HEADLESS-1");
    let start = format!("HEADLESS-1: red ({red}), set manually, ");
    assert!(
        said.starts_with(&start) && said.ends_with("drawn by swaybg. No change is scheduled."),
        "{said}"
    );
    assert!(text(&daemon, "HEADLESS-2").contains(&format!("({random}), set at random, ")));
    daemon
        .client()
        .patch(
            &format!("/images/{red}"),
            &json!({ "description": "All red." }),
        )
        .ok();
    assert!(text(&daemon, "HEADLESS-1").contains("drawn by swaybg. It shows: All red. No change"));
    let shown = daemon.client().get("/wallpaper/current").ok()["monitors"][0].clone();
    assert_eq!(shown["description"], "All red.");

    let items: Vec<_> = [blue, green].map(|id| json!({ "image_id": id })).into();
    let timer = json!({ "type": "timer", "interval": 3600 });
    let body = json!({ "name": "Sea", "configuration": timer, "images": items });
    let id = daemon.client().post("/playlists", &body).ok()["id"].clone();
    let body = json!({ "monitors": ["HEADLESS-2"] });
    daemon
        .client()
        .post(&format!("/playlists/{id}/start"), &body)
        .ok();
    let said = text(&daemon, "HEADLESS-2");
    assert!(said.contains("set by playlist \"Sea\", "), "{said}");
    assert!(said.contains("Next change: playlist \"Sea\" in "), "{said}");
    assert_eq!(why(&daemon, "HEADLESS-2")["next"]["playlist_id"], id);
    daemon
        .client()
        .post(&format!("/playlists/{id}/pause"), &json!({}))
        .ok();
    assert!(text(&daemon, "HEADLESS-2").ends_with(". Playlist \"Sea\" is paused."));
    let step = json!({ "configuration": { "type": "manual" } });
    daemon
        .client()
        .patch(&format!("/playlists/{id}"), &step)
        .ok();
    daemon
        .client()
        .post(&format!("/playlists/{id}/resume"), &json!({}))
        .ok();
    assert!(text(&daemon, "HEADLESS-2").ends_with(". Playlist \"Sea\" changes only on request."));
    daemon
        .client()
        .patch("/config/power", &json!({ "pause_when_locked": true }))
        .ok();
    daemon
        .client()
        .send("PUT", "/power", "", br#"{"locked":true}"#)
        .ok();
    assert!(text(&daemon, "HEADLESS-2").ends_with(" is paused: the session is locked."));
    daemon
        .client()
        .send("PUT", "/power", "", br#"{"locked":false}"#)
        .ok();
    daemon
        .client()
        .post(&format!("/playlists/{id}/stop"), &json!({}))
        .ok();

    // A failure is reported until another picture is shown.
    let white = daemon.import(&[&plain(&daemon, "white.png", [250, 250, 250])])[0];
    let path = daemon.client().get(&format!("/images/{white}")).ok()["path"].clone();
    std::fs::write(path.as_str().unwrap(), b"no picture").unwrap();
    assert_eq!(set(&daemon, white, "HEADLESS-1").status, 500);
    let failure = why(&daemon, "HEADLESS-1")["last_failure"].clone();
    assert_eq!(
        (&failure["image_name"], &failure["backend"]),
        (&json!("white"), &json!("swaybg"))
    );
    assert!(
        text(&daemon, "HEADLESS-1").contains(&format!("Last failure: white ({white}) by swaybg, "))
    );
    set(&daemon, green, "HEADLESS-1").ok();
    assert_eq!(why(&daemon, "HEADLESS-1")["last_failure"], json!(null));

    set(&daemon, red, "HEADLESS-2").ok();
    daemon.kill9();
    daemon.start();
    wait_until("it is said to be there again", || {
        text(&daemon, "HEADLESS-1").contains(&format!("green ({green}), restored at startup, "))
    });
    let told = daemon.murald(&["why", "HEADLESS-1"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(
        told.starts_with(&format!(
            "HEADLESS-1: green ({green}), restored at startup,"
        )),
        "{told}"
    );
}
