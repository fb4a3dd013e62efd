//! Tests plain colours: on the screen, reported without an image, restored, and reached by going back.

use std::fs;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, Rgb, near, see, set, three};
use crate::support::TestDaemon;

pub(crate) const NIGHT: Rgb = [0x1e, 0x1e, 0x2e];

/// Waits until every pixel of an output has this colour.
#[track_caller]
pub(crate) fn see_everywhere(desktop: &Desktop, daemon: &TestDaemon, output: &str, color: Rgb) {
    wait_until(&format!("{color:?} all over {output}"), || {
        let path = daemon.root().join("whole.png");
        desktop.shot(&path, output);
        image::open(&path)
            .unwrap()
            .into_rgb8()
            .pixels()
            .all(|pixel| near(pixel.0, color))
    });
}

fn is_night(record: &Value, path: &str) {
    let found = ["image_id", "image_name", "color", path].map(|field| record.get(field));
    let night = json!("#1e1e2e");
    assert_eq!(
        found,
        [
            Some(&Value::Null),
            Some(&night),
            Some(&night),
            Some(&Value::Null)
        ]
    );
}

#[test]
fn colour_is_shown_by_each_backend_restored_and_gone_back_to() {
    let desktop = Desktop::wayland(&["--pluggable", "640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure(
        "backend.type = 'swaybg'\nbackend.swaybg.fit_mode = 'center'\n\
         backend.builtin.fit_mode = 'center'\n",
    );
    daemon.start();
    let [red, _, blue] = three(&daemon);
    set(&daemon, red, "*").ok();
    let client = daemon.client();
    let mut events = daemon.events("wallpaper_changed");
    is_night(
        &client
            .post("/wallpaper/set", &json!({ "color": "#1E1E2E" }))
            .ok(),
        "image_path",
    );
    see_everywhere(&desktop, &daemon, "WL-1", NIGHT);
    let changed = events.wait_for("wallpaper_changed");
    is_night(&changed, "path");
    assert_eq!(changed["colors"], json!(["#1e1e2e"]));
    let entry = client.get("/images/history").ok()[0].clone();
    assert_eq!(
        (&entry["color"], &entry["image_id"]),
        (&changed["color"], &Value::Null)
    );
    let current = client.get("/wallpaper/current").ok();
    is_night(&current, "image_path");
    is_night(&current["monitors"][0], "image_path");
    assert_eq!(current["monitors"][0].get("deleted"), None);
    let state = daemon.root().join(".local/state/murald");
    let palette: Value =
        serde_json::from_slice(&fs::read(state.join("palette.json")).unwrap()).unwrap();
    is_night(&palette["newest"], "path");
    let link = fs::canonicalize(state.join("current/WL-1")).unwrap();
    let link = image::open(link).unwrap().into_rgb8();
    assert!(link.pixels().all(|pixel| pixel.0 == NIGHT));
    assert_eq!(client.get("/images").ok()["pagination"]["total_items"], 3);
    // Going back reaches a colour, once for assignments that look the same.
    client
        .post(
            "/wallpaper/set",
            &json!({ "color": "#1e1e2e", "fit": "contain" }),
        )
        .ok();
    set(&daemon, blue, "*").ok();
    let back = || client.post("/wallpaper/back", &json!({})).ok();
    assert_eq!(back()["images"], json!({ "WL-1": "#1e1e2e" }));
    see_everywhere(&desktop, &daemon, "WL-1", NIGHT);
    assert_eq!(back()["image_id"], red);
    // A restart without the cache, and a new monitor.
    let told = daemon.murald(&["set", "Navy"]).output().unwrap();
    assert_eq!(
        String::from_utf8(told.stdout).unwrap(),
        "#000080 is on WL-1\n"
    );
    client
        .post(
            "/wallpaper/set",
            &json!({ "color": "#fff", "default": true }),
        )
        .ok();
    daemon.kill9();
    fs::remove_dir_all(daemon.root().join("cache/murald")).unwrap();
    daemon.start();
    assert_eq!(
        client.get("/wallpaper/current").ok()["default_color"],
        "#ffffff"
    );
    see_everywhere(&desktop, &daemon, "WL-1", [0, 0, 128]);
    let second = desktop.run("plug", &["800x600"]);
    see_everywhere(&desktop, &daemon, &second, [255; 3]);
    client.post("/backends/builtin/activate", &json!({})).ok();
    see_everywhere(&desktop, &daemon, "WL-1", [0, 0, 128]);
    see_everywhere(&desktop, &daemon, &second, [255; 3]);
    let why = client.get("/why?monitor=WL-1").ok()[0].clone();
    let text = why["text"].as_str().unwrap();
    assert!(
        text.starts_with("WL-1: #000080, restored at startup"),
        "{text}"
    );
    set(&daemon, blue, &second).ok();
    see(&desktop, &daemon, &second, BLUE);
    assert!(
        daemon
            .root()
            .join("cache/murald/colors/000080.png")
            .exists()
    );
}

#[test]
fn colour_whose_file_cannot_be_written_is_refused_with_the_cause() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.start();
    let colors = daemon.root().join("cache/murald/colors");
    fs::remove_dir_all(&colors).ok();
    fs::create_dir_all(colors.parent().unwrap()).unwrap();
    fs::write(&colors, "").unwrap();
    let body = json!({ "color": "#445566" });
    let refused = daemon.client().post("/wallpaper/set", &body).fails(500);
    let expected = format!("cannot write {}/445566.png: File exists", colors.display());
    assert_eq!(refused["details"], expected);
}
