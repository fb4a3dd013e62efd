//! Tests the fit and the position of a request: in pixels, as stored, and after a restart.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, RED, Rgb, near, see};
use crate::support::House;

const BLACK: Rgb = [0, 0, 0];

/// A square picture for wide monitors: blue if only its bottom part is visible.
fn square(house: &House) -> i64 {
    let path: PathBuf = house.root().join("square.png");
    let color = |_, y| image::Rgb(if y < 140 { RED } else { BLUE });
    image::RgbImage::from_fn(200, 200, color).save(&path).unwrap();
    house.import(&[&path])[0]
}

/// Waits for this colour at the left edge, half way down: the border, if the whole picture is visible.
fn see_edge(desktop: &Desktop, house: &House, output: &str, color: Rgb) {
    wait_until(&format!("{color:?} at the edge of {output}"), || {
        let path = house.root().join("edge.png");
        desktop.shot(&path, output);
        let picture = image::open(&path).unwrap().into_rgb8();
        near(picture.get_pixel(4, picture.height() / 2).0, color)
    });
}

fn fits(desktop: &Desktop, [one, other]: [&str; 2], backend: &str, shared: bool) {
    let mut house = House::on(desktop);
    house.configure(&format!("backend.type = '{backend}'\n"));
    house.start();
    let id = square(&house);
    let set = |house: &House, body: Value| house.client().post("/wallpaper/set", &body);
    set(&house, json!({ "image_id": id })).ok();
    see_edge(desktop, &house, one, RED);
    set(&house, json!({ "image_id": id, "monitor": one, "position": "10%,100%" })).ok();
    see_edge(desktop, &house, one, BLUE);
    // The image's own position is used at once where none was requested.
    let own = |position: Value| {
        let path = format!("/images/{id}");
        let image = house.client().patch(&path, &json!({ "position": position })).ok();
        assert_eq!(image["position"], position);
    };
    own("bottom-left".into());
    see_edge(desktop, &house, other, BLUE);
    own(Value::Null);
    see_edge(desktop, &house, other, RED);
    see_edge(desktop, &house, one, BLUE);
    let wish = json!({ "image_id": id, "monitor": one, "fit": "contain", "transition": "none",
        "position": "left" });
    set(&house, wish).ok();
    let look = |house: &House| {
        see(desktop, house, one, RED);
        see_edge(desktop, house, one, BLACK);
        // feh has one fit for all monitors.
        see_edge(desktop, house, other, if shared { BLACK } else { RED });
        let current = house.client().get("/wallpaper/current").ok();
        assert_eq!(current["monitors"][0]["fit"], "contain");
        assert_eq!(current["monitors"][0]["position"], "left");
        assert_eq!(current["monitors"][1].get("fit"), None);
    };
    look(&house);
    house.kill9();
    house.start();
    look(&house);
    let word = set(&house, json!({ "image_id": id, "transition": "spiral" }));
    assert_eq!(word.status, 400);
    let text = word.text();
    assert!(text.contains("spiral") && text.contains(backend), "{text}");
    assert_eq!(set(&house, json!({ "image_id": id, "fit": "wide" })).status, 400);
    let refused = set(&house, json!({ "image_id": id, "position": "middle" })).text();
    assert!(refused.contains("position must be center, top, "), "{refused}");
    // A colour, which looks the same with any fit, changes none.
    set(&house, json!({ "color": "#283cc8", "monitor": other })).ok();
    see_edge(desktop, &house, other, BLUE);
    see_edge(desktop, &house, one, BLACK);
    set(&house, json!({ "image_id": id, "monitor": one })).ok();
    see_edge(desktop, &house, one, RED);
    // The wallpaper before had its own fit and position.
    for color in [BLACK, BLUE] {
        house.client().post("/wallpaper/back", &json!({ "monitor": one })).ok();
        see_edge(desktop, &house, one, color);
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
