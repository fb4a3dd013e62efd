//! Tests monitors that are connected for the first time: what they show, and in which order it is
//! chosen.

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, GREEN, RED, near, see, set, three};
use crate::support::TestDaemon;

#[test]
fn new_monitor_shows_the_default_and_nothing_else_changes() {
    new_monitor_shows_the_default("swaybg");
}

#[test]
fn builtin_shows_a_default_that_is_set_while_it_runs() {
    new_monitor_shows_the_default("builtin");
}

fn new_monitor_shows_the_default(backend: &str) {
    let desktop = Desktop::wayland(&["--pluggable", "640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure(&format!("backend.type = '{backend}'\n"));
    daemon.start();
    let [red, green, blue] = three(&daemon);
    set(&daemon, red, "*").ok();
    let body = json!({ "image_id": green, "default": true, "fit": "contain" });
    let answer = daemon.client().post("/wallpaper/set", &body).ok();
    assert_eq!(
        (&answer["status"], &answer["monitors"]),
        (&json!("set"), &json!([]))
    );
    let current = daemon.client().get("/wallpaper/current").ok();
    assert_eq!(
        (&current["default_image_id"], &current["image_id"]),
        (&json!(green), &json!(red))
    );
    assert_eq!(
        daemon
            .client()
            .get("/images/history")
            .ok()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // The default survives a restart.
    daemon.kill9();
    daemon.start();
    let second = desktop.run("plug", &["800x600"]);
    see(&desktop, &daemon, &second, GREEN);
    wait_until("all of it, so that the monitor is bare above", || {
        let path = daemon.root().join("whole.png");
        desktop.shot(&path, &second);
        let picture = image::open(&path).unwrap().into_rgb8();
        near(
            picture
                .get_pixel(picture.width() / 2, picture.height() / 30)
                .0,
            [0, 0, 0],
        )
    });
    see(&desktop, &daemon, "WL-1", RED);
    let named = json!({ "image_id": blue, "default": true, "monitor": "WL-1" });
    assert_eq!(daemon.client().post("/wallpaper/set", &named).status, 400);
    let unknown = json!({ "image_id": 999, "default": true });
    assert_eq!(daemon.client().post("/wallpaper/set", &unknown).status, 404);
}

#[test]
fn new_monitor_shows_the_newest_picture_if_there_is_no_default() {
    let desktop = Desktop::wayland(&["--pluggable", "640x360", "640x360"]);
    let mut daemon = TestDaemon::started_on(&desktop);
    let [red, _, blue] = three(&daemon);
    set(&daemon, blue, "WL-1").ok();
    set(&daemon, red, "WL-1").ok();
    let third = desktop.run("plug", &["800x600"]);
    see(&desktop, &daemon, &third, RED);
    // A monitor that was connected and not named stays empty, also after a restart.
    daemon.kill9();
    daemon.start();
    let shown = || {
        let current = daemon.client().get("/wallpaper/current").ok();
        let monitors = current["monitors"].as_array().unwrap().iter();
        monitors
            .map(|one| one["monitor_name"].clone())
            .collect::<Vec<_>>()
    };
    wait_until("both are shown again", || {
        shown() == [json!("WL-1"), json!(third)]
    });
    set(&daemon, blue, &third).ok();
    see(&desktop, &daemon, &third, BLUE);
    see(&desktop, &daemon, "WL-1", RED);
    assert_eq!(shown(), [json!("WL-1"), json!(third)]);
}

#[test]
fn new_monitor_shows_the_picture_of_the_running_playlist_once() {
    let desktop = Desktop::wayland(&["--pluggable", "640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, blue] = three(&daemon);
    set(&daemon, red, "*").ok();
    let client = daemon.client();
    let body = json!({ "name": "evening", "type": "manual", "images": [{ "image_id": green }] });
    let playlist = client.post("/playlists", &body).ok()["id"].clone();
    client
        .post(&format!("/playlists/{playlist}/start"), &json!({}))
        .ok();
    let stretched = json!({ "image_id": blue, "mode": "extend" });
    client.post("/wallpaper/set", &stretched).ok();
    let mut events = daemon.events("wallpaper_changed");
    let second = desktop.run("plug", &["800x600"]);
    let changed = events.wait_for("wallpaper_changed");
    assert_eq!(
        (
            &changed["source"],
            &changed["image_id"],
            &changed["monitors"]
        ),
        (&json!("playlist"), &json!(green), &json!([second]))
    );
    see(&desktop, &daemon, &second, GREEN);
    see(&desktop, &daemon, "WL-1", BLUE);
    // Nothing else was shown in the meantime on either monitor.
    set(&daemon, red, "WL-1").ok();
    assert_eq!(events.wait_for("wallpaper_changed")["image_id"], red);
    let history = daemon.client().get("/images/history").ok();
    let shown = history
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["image_id"].clone());
    assert_eq!(shown.collect::<Vec<_>>(), [red, green, blue, green, red]);
}
