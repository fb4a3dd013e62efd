//! Tests the fit and the position of a request: in pixels, as stored, and after a restart.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, RED, Rgb, near, see};
use crate::support::TestDaemon;

const BLACK: Rgb = [0, 0, 0];

/// A square picture for wide monitors: blue if only its bottom part is visible.
fn square(daemon: &TestDaemon) -> i64 {
    let path: PathBuf = daemon.root().join("square.png");
    let color = |_, y| image::Rgb(if y < 140 { RED } else { BLUE });
    image::RgbImage::from_fn(200, 200, color)
        .save(&path)
        .unwrap();
    daemon.import(&[&path])[0]
}

/// Waits for this colour at the left edge, half way down: the border, if the whole picture is visible.
fn see_edge(desktop: &Desktop, daemon: &TestDaemon, output: &str, color: Rgb) {
    wait_until(&format!("{color:?} at the edge of {output}"), || {
        let path = daemon.root().join("edge.png");
        desktop.shot(&path, output);
        let picture = image::open(&path).unwrap().into_rgb8();
        near(picture.get_pixel(4, picture.height() / 2).0, color)
    });
}

fn fits(desktop: &Desktop, [one, other]: [&str; 2], backend: &str, shared: bool) {
    let mut daemon = TestDaemon::on(desktop);
    daemon.configure(&format!("backend.type = '{backend}'\n"));
    daemon.start();
    let id = square(&daemon);
    let set = |daemon: &TestDaemon, body: Value| daemon.client().post("/wallpaper/set", &body);
    set(&daemon, json!({ "image_id": id })).ok();
    see_edge(desktop, &daemon, one, RED);
    set(
        &daemon,
        json!({ "image_id": id, "monitor": one, "position": "10%,100%" }),
    )
    .ok();
    see_edge(desktop, &daemon, one, BLUE);
    // The image's own position is used at once where none was requested.
    let own = |position: Value| {
        let path = format!("/images/{id}");
        let image = daemon
            .client()
            .patch(&path, &json!({ "position": position }))
            .ok();
        assert_eq!(image["position"], position);
    };
    own("bottom-left".into());
    see_edge(desktop, &daemon, other, BLUE);
    own(Value::Null);
    see_edge(desktop, &daemon, other, RED);
    see_edge(desktop, &daemon, one, BLUE);
    let wish = json!({ "image_id": id, "monitor": one, "fit": "contain", "transition": "none",
        "position": "left" });
    set(&daemon, wish).ok();
    let look = |daemon: &TestDaemon| {
        see(desktop, daemon, one, RED);
        see_edge(desktop, daemon, one, BLACK);
        // feh has one fit for all monitors.
        see_edge(desktop, daemon, other, if shared { BLACK } else { RED });
        let current = daemon.client().get("/wallpaper/current").ok();
        assert_eq!(current["monitors"][0]["fit"], "contain");
        assert_eq!(current["monitors"][0]["position"], "left");
        assert_eq!(current["monitors"][1].get("fit"), None);
    };
    look(&daemon);
    daemon.kill9();
    daemon.start();
    look(&daemon);
    let word = set(&daemon, json!({ "image_id": id, "transition": "spiral" }));
    assert_eq!(word.status, 400);
    let text = word.text();
    assert!(text.contains("spiral") && text.contains(backend), "{text}");
    assert_eq!(
        set(&daemon, json!({ "image_id": id, "fit": "wide" })).status,
        400
    );
    let refused = set(&daemon, json!({ "image_id": id, "position": "middle" })).text();
    assert!(
        refused.contains("expected center, top, bottom, left, right, top-left, "),
        "{refused}"
    );
    // A colour, which looks the same with any fit, changes none.
    set(&daemon, json!({ "color": "#283cc8", "monitor": other })).ok();
    see_edge(desktop, &daemon, other, BLUE);
    see_edge(desktop, &daemon, one, BLACK);
    set(&daemon, json!({ "image_id": id, "monitor": one })).ok();
    see_edge(desktop, &daemon, one, RED);
    // The wallpaper before had its own fit and position.
    for color in [BLACK, BLUE] {
        daemon
            .client()
            .post("/wallpaper/back", &json!({ "monitor": one }))
            .ok();
        see_edge(desktop, &daemon, one, color);
    }
}

#[test]
fn swaybg_uses_the_requested_fit_on_each_monitor() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    fits(&desktop, ["HEADLESS-1", "HEADLESS-2"], "swaybg", false);
}

#[test]
fn builtin_uses_the_requested_fit_on_each_monitor() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    fits(&desktop, ["HEADLESS-1", "HEADLESS-2"], "builtin", false);
}

#[test]
fn feh_uses_the_last_requested_fit_on_all_monitors() {
    let desktop = Desktop::x11(&["640x360", "640x360"]);
    fits(&desktop, ["VIRTUAL-1", "VIRTUAL-2"], "feh", true);
}
