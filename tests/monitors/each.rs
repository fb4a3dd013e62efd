//! Tests the mode `each` with real backends and one upright monitor.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, GREEN, RED, Rgb, see};
use crate::support::TestDaemon;

const WHITE: Rgb = [240, 240, 240];

fn picture(daemon: &TestDaemon, name: &str, size: (u32, u32), color: Rgb) -> PathBuf {
    let path = daemon.root().join(format!("{name}.png"));
    image::RgbImage::from_pixel(size.0, size.1, image::Rgb(color))
        .save(&path)
        .unwrap();
    path
}

/// Two wide pictures and an upright one.
fn gallery(daemon: &TestDaemon) -> [(i64, Rgb); 3] {
    let of = |name, size, color| {
        (
            daemon.import(&[&picture(daemon, name, size, color)])[0],
            color,
        )
    };
    [
        of("red", (640, 360), RED),
        of("green", (640, 360), GREEN),
        of("blue", (360, 640), BLUE),
    ]
}

/// Checks on the screen what the answer says.
fn look(desktop: &Desktop, daemon: &TestDaemon, images: &Value, gallery: &[(i64, Rgb)]) {
    for (monitor, id) in images.as_object().unwrap() {
        let color = gallery
            .iter()
            .find(|(known, _)| json!(known) == *id)
            .unwrap()
            .1;
        see(desktop, daemon, monitor, color);
    }
}

/// The second of the monitors is upright.
fn random_each(desktop: &Desktop, monitors: [&str; 3], backend: &str) {
    let daemon = TestDaemon::started_on(desktop);
    let gallery = gallery(&daemon);
    let mut events = daemon.events("wallpaper_changed");
    for _ in 0..2 {
        let answer = daemon
            .client()
            .post("/wallpaper/random", &json!({ "mode": "each" }))
            .ok();
        assert_eq!(
            (&answer["mode"], &answer["backend"]),
            (&json!("each"), &json!(backend))
        );
        let images = &answer["images"];
        assert_eq!(images[monitors[1]], gallery[2].0, "{answer}");
        assert_ne!(images[monitors[0]], images[monitors[2]], "{answer}");
        assert_eq!(
            images[monitors[0]], answer["image_id"],
            "that of the first by name"
        );
        look(desktop, &daemon, images, &gallery);
        for _ in 0..3 {
            let event = events.wait_for("wallpaper_changed");
            assert_eq!((&event["images"], &event["mode"]), (images, &json!("each")));
            assert_eq!(event["monitors"].as_array().unwrap().len(), 1);
            let of = event["monitors"][0].as_str().unwrap();
            assert_eq!(images[of], event["image_id"]);
        }
        let history = daemon.client().get("/images/history?limit=3").ok();
        assert!(
            history
                .as_array()
                .unwrap()
                .iter()
                .all(|entry| entry["images"] == *images)
        );
    }
    // With two wide pictures only, both are shown, one of them twice.
    let filter = json!({ "mode": "each", "filter": { "orientation": "landscape" } });
    let answer = daemon.client().post("/wallpaper/random", &filter).ok();
    let mut ids: Vec<i64> = answer["images"]
        .as_object()
        .unwrap()
        .values()
        .map(|id| id.as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids, [gallery[0].0, gallery[1].0]);
    look(desktop, &daemon, &answer["images"], &gallery);
    let white = daemon.import(&[&picture(&daemon, "white", (640, 360), WHITE)])[0];
    let set = json!({ "image_id": white, "mode": "each" });
    assert_eq!(daemon.client().post("/wallpaper/set", &set).status, 400);
}

/// The same with a playlist, forwards and backwards.
fn playlist_each(desktop: &Desktop, monitors: [&str; 3]) {
    let daemon = TestDaemon::started_on(desktop);
    let gallery = gallery(&daemon);
    let [red, green, blue] = gallery.map(|(id, _)| id);
    let client = daemon.client();
    let items: Vec<Value> = [red, blue, green]
        .map(|id| json!({ "image_id": id }))
        .into();
    let body = json!({ "name": "own", "configuration": { "type": "manual" }, "images": items });
    let id = client.post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    let path = |action: &str| format!("/playlists/{id}/{action}");
    for wrong in [
        json!({ "mode": "each", "extend": true }),
        json!({ "mode": "own" }),
    ] {
        assert_eq!(client.post(&path("start"), &wrong).status, 400);
    }
    let mut events = daemon.events("playlist_image_changed");
    client.post(&path("start"), &json!({ "mode": "each" })).ok();
    let dealt = |first, second, third| json!({ monitors[0]: first, monitors[1]: second, monitors[2]: third });
    let active = client.get("/playlists/active").ok();
    assert_eq!(
        (&active[0]["mode"], &active[0]["extend"]),
        (&json!("each"), &json!(false))
    );
    let first = events.wait_for("playlist_image_changed")["images"].clone();
    assert_eq!(first, dealt(red, blue, green));
    look(desktop, &daemon, &first, &gallery);
    // Without the upright picture, two are left for three monitors.
    let items = json!({ "images": [{ "image_id": red }, { "image_id": green }] });
    client
        .send(
            "PATCH",
            &format!("/playlists/{id}"),
            "",
            items.to_string().as_bytes(),
        )
        .ok();
    let mut shown = || {
        let images = events.wait_for("playlist_image_changed")["images"].clone();
        let values: Vec<&Value> = images.as_object().unwrap().values().collect();
        assert!(
            values.contains(&&json!(red)) && values.contains(&&json!(green)),
            "{images}"
        );
        look(desktop, &daemon, &images, &gallery);
        images
    };
    // The upright monitor shows one of these at once.
    let fewer = shown();
    client.post(&path("next"), &json!({})).ok();
    let next = shown();
    assert_ne!(next, fewer);
    client.post(&path("previous"), &json!({})).ok();
    assert_ne!(shown(), next);
}

/// Three monitors of sway, of which the second is upright.
fn one_upright() -> Desktop {
    let desktop = Desktop::wayland(&["640x360", "640x360", "640x360"]);
    desktop.output("swaymsg", &["-q", "output HEADLESS-2 transform 90"]);
    // Newer versions of sway answer before the change is done.
    wait_until("it stands", || {
        let all = desktop.output("swaymsg", &["-r", "-t", "get_outputs"]);
        let all: Vec<Value> = serde_json::from_str(&all).unwrap();
        all.iter().any(|output| output["transform"] == "90")
    });
    desktop
}

#[test]
fn playlist_gives_each_monitor_of_sway_its_own() {
    let desktop = one_upright();
    playlist_each(&desktop, ["HEADLESS-1", "HEADLESS-2", "HEADLESS-3"]);
}

#[test]
fn playlist_gives_each_monitor_of_x_its_own() {
    let desktop = Desktop::x11(&["640x360", "360x640", "640x360"]);
    playlist_each(&desktop, ["VIRTUAL-1", "VIRTUAL-2", "VIRTUAL-3"]);
}

#[test]
fn random_gives_each_monitor_of_sway_its_own() {
    let desktop = one_upright();
    random_each(
        &desktop,
        ["HEADLESS-1", "HEADLESS-2", "HEADLESS-3"],
        "swaybg",
    );
}

#[test]
fn random_gives_each_monitor_of_x_its_own() {
    let desktop = Desktop::x11(&["640x360", "360x640", "640x360"]);
    random_each(&desktop, ["VIRTUAL-1", "VIRTUAL-2", "VIRTUAL-3"], "feh");
}
