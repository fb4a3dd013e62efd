//! Tests one picture over several monitors: every pixel must be where the layout says, with mixed sizes,
//! scales, rotations and gaps, on real desktops.

use image::{Rgb, RgbImage};
use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// A monitor in the layout.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Place {
    fn from_json(monitor: &Value) -> Self {
        let number = |name: &str| monitor[name].as_f64().unwrap();
        // Rounded down to whole units, as the compositor does.
        let logical = |name| (number(name) / number("scale")).floor();
        let (width, height) = match monitor["transform"].as_u64().unwrap() % 2 {
            0 => (logical("width"), logical("height")),
            _ => (logical("height"), logical("width")),
        };
        let name = monitor["name"].as_str().unwrap().to_owned();
        Self {
            name,
            x: number("x"),
            y: number("y"),
            width,
            height,
        }
    }
}

/// A level that rises and falls by two per pixel, so that an offset of two pixels is a difference of
/// four levels.
fn wave(at: f64) -> f64 {
    let place = at.rem_euclid(256.0);
    2.0 * place.min(256.0 - place).min(127.0)
}

/// The colour of the picture at a place, counted from its upper left corner.
fn color(x: f64, y: f64, width: f64) -> [f64; 3] {
    [wave(x), wave(y), 255.0 * x / width]
}

/// Sets a picture that just covers the layout, and compares every monitor with it, mainly at the edges.
fn compare(desktop: &Desktop, daemon: &TestDaemon, round: usize) {
    let all = daemon.client().get("/monitors").ok();
    let places: Vec<Place> = all
        .as_array()
        .unwrap()
        .iter()
        .map(Place::from_json)
        .collect();
    let least = |of: fn(&Place) -> f64| places.iter().map(of).fold(f64::MAX, f64::min);
    let most = |of: fn(&Place) -> f64| places.iter().map(of).fold(f64::MIN, f64::max);
    let (left, top) = (least(|p| p.x), least(|p| p.y));
    let (width, height) = (
        most(|p| p.x + p.width) - left,
        most(|p| p.y + p.height) - top,
    );
    let picture = RgbImage::from_fn(width as u32, height as u32, |x, y| {
        Rgb(color(x.into(), y.into(), width).map(|level| level as u8))
    });
    let path = daemon.root().join(format!("round-{round}.png"));
    picture.save(&path).unwrap();
    let id = daemon.import(&[&path])[0];
    let body = json!({ "image_id": id, "mode": "extend" });
    assert_eq!(
        daemon.client().post("/wallpaper/set", &body).ok()["mode"],
        "extend"
    );
    for place in &places {
        let shot = daemon.root().join("shot.png");
        desktop.shot(&shot, &place.name);
        let seen = image::open(&shot).unwrap().into_rgb8();
        let (across, down) = (spots(seen.width()), spots(seen.height()));
        let pairs = across
            .iter()
            .flat_map(|&x| down.iter().map(move |&y| (x, y)));
        for (x, y) in pairs {
            let at = |pixel: u32, pixels: u32, length: f64| {
                (f64::from(pixel) + 0.5) / f64::from(pixels) * length - 0.5
            };
            let across = place.x - left + at(x, seen.width(), place.width);
            let down = place.y - top + at(y, seen.height(), place.height);
            let (found, wanted) = (seen.get_pixel(x, y).0, color(across, down, width));
            let off = found
                .iter()
                .zip(wanted)
                .map(|(&f, w)| (f64::from(f) - w).abs());
            let off = off.fold(0.0, f64::max);
            assert!(
                off <= 6.0,
                "{place:?} at {x},{y}: {found:?}, not {wanted:?}; round {round}"
            );
        }
    }
}

/// Positions two pixels from either edge, and some between.
fn spots(length: u32) -> Vec<u32> {
    let between = (1..8).map(|part| length * part / 8);
    [2].into_iter().chain(between).chain([length - 3]).collect()
}

fn settle(daemon: &TestDaemon, holds: impl Fn(&Value) -> bool) {
    wait_until("the layout", || {
        holds(&daemon.client().get("/monitors").ok())
    });
}

#[test]
fn picture_spans_monitors_of_sway_of_all_kinds() {
    let desktop = Desktop::wayland(&["640x360", "512x384", "800x600"]);
    let daemon = TestDaemon::started_on(&desktop);
    settle(&daemon, |all| all.as_array().unwrap().len() == 3);
    compare(&desktop, &daemon, 0);
    // The scale, the rotation in sway's terms and in Wayland's, and the position of each monitor.
    let layouts = [
        // Side by side with gaps: one rotated, one with scale 2.
        [
            (1.0, "normal", 0, 0, 0),
            (1.0, "90", 3, 700, -50),
            (2.0, "normal", 0, 1150, 250),
        ],
        // One above the other: upside down, mirrored and rotated, with fractional scales.
        [
            (1.5, "180", 2, -150, 450),
            (1.0, "flipped-270", 5, 25, -550),
            (1.25, "normal", 0, 300, 400),
        ],
    ];
    for (round, layout) in layouts.iter().enumerate() {
        for (number, (scale, turn, _, x, y)) in (1..).zip(layout) {
            let how = format!("scale {scale} transform {turn} position {x} {y}");
            desktop.output(
                "swaymsg",
                &["-q", &format!("output HEADLESS-{number} {how}")],
            );
        }
        // Newer versions of sway answer before the change is done, and report it in parts.
        settle(&daemon, |all| {
            (1..).zip(layout).all(|(number, (scale, _, turned, x, y))| {
                let is = |m: &&Value| m["name"] == format!("HEADLESS-{number}");
                all.as_array().unwrap().iter().find(is).is_some_and(|m| {
                    m["scale"] == *scale
                        && m["transform"] == *turned
                        && m["x"] == *x
                        && m["y"] == *y
                })
            })
        });
        compare(&desktop, &daemon, round + 1);
    }
}

#[test]
fn picture_spans_monitors_of_x_of_all_sizes() {
    let desktop = Desktop::x11(&["640x360", "400x300", "512x384"]);
    let daemon = TestDaemon::started_on(&desktop);
    settle(&daemon, |all| all.as_array().unwrap().len() == 3);
    compare(&desktop, &daemon, 0);
}

/// The colours of three bands, from left to right.
const BANDS: [[u8; 3]; 3] = [[200, 30, 30], [30, 180, 60], [40, 60, 200]];
const BAND: f64 = 640.0;

/// A picture of three monitors' width, in the library.
fn bands(daemon: &TestDaemon) -> i64 {
    let path = daemon.root().join("bands.png");
    let band = |x: u32, _| Rgb(BANDS[x as usize / 640]);
    RgbImage::from_fn(1920, 480, band).save(&path).unwrap();
    daemon.import(&[&path])[0]
}

/// Waits until the connected monitors show the picture as cut for them alone.
#[track_caller]
fn see_bands(desktop: &Desktop, daemon: &TestDaemon, names: &[&str]) {
    let mut places = Vec::new();
    settle(daemon, |all| {
        let all = all.as_array().unwrap();
        all.len() == names.len()
            && all
                .iter()
                .all(|m| names.contains(&m["name"].as_str().unwrap()))
    });
    wait_until(&format!("the bands on {names:?}"), || {
        // Compositors may move the others a moment later.
        let all = daemon.client().get("/monitors").ok();
        places = all
            .as_array()
            .unwrap()
            .iter()
            .map(Place::from_json)
            .collect();
        let left = places.iter().map(|place| place.x).fold(f64::MAX, f64::min);
        let right = places
            .iter()
            .map(|place| place.x + place.width)
            .fold(f64::MIN, f64::max);
        // All monitors have the picture's height, so it is enlarged only if they are wider than the
        // picture.
        let band = BAND.max((right - left) / 3.0);
        let cut = (3.0 * band - (right - left)) / 2.0;
        places.iter().all(|place| {
            let shot = daemon.root().join("bands-shot.png");
            desktop.shot(&shot, &place.name);
            let seen = image::open(&shot).unwrap().into_rgb8();
            [0.25, 0.75].iter().all(|part| {
                let x = f64::from(seen.width()) * part;
                let found = seen.get_pixel(x as u32, seen.height() / 2).0;
                // A monitor is another size before it has its mode.
                let band = BANDS.get(((cut + place.x - left + x) / band) as usize);
                let near =
                    |band: &[u8; 3]| found.iter().zip(band).all(|(a, b)| a.abs_diff(*b) <= 4);
                band.is_some_and(near)
            })
        })
    });
}

#[test]
fn remaining_layout_is_cut_at_once() {
    let desktop = Desktop::x11(&["--pluggable", "640x480", "640x480", "640x480"]);
    let daemon = TestDaemon::started_on(&desktop);
    let id = bands(&daemon);
    daemon
        .client()
        .post(
            "/wallpaper/set",
            &json!({ "image_id": id, "mode": "extend" }),
        )
        .ok();
    let all = ["DUMMY0", "DUMMY1", "DUMMY2"];
    see_bands(&desktop, &daemon, &all);
    desktop.run("unplug", &["DUMMY2"]);
    see_bands(&desktop, &daemon, &all[..2]);
    assert_eq!(desktop.run("plug", &["640x480"]), "DUMMY2");
    see_bands(&desktop, &daemon, &all);
}

#[test]
fn picture_of_a_playlist_is_cut_for_the_connected_monitors() {
    let desktop = Desktop::wayland(&["--pluggable", "640x480", "640x480", "640x480"]);
    let daemon = TestDaemon::started_on(&desktop);
    let id = bands(&daemon);
    let playlist = json!({
        "name": "wide", "configuration": { "type": "manual" }, "images": [{ "image_id": id }],
    });
    let playlist = daemon.client().post("/playlists", &playlist).ok()["id"].clone();
    let body = json!({ "monitors": ["WL-1", "WL-2", "WL-3", "WL-4"], "extend": true });
    daemon
        .client()
        .post(&format!("/playlists/{playlist}/start"), &body)
        .ok();
    see_bands(&desktop, &daemon, &["WL-1", "WL-2", "WL-3"]);
    desktop.run("unplug", &["WL-2"]);
    see_bands(&desktop, &daemon, &["WL-1", "WL-3"]);
    assert_eq!(desktop.run("plug", &["640x480"]), "WL-4");
    see_bands(&desktop, &daemon, &["WL-1", "WL-3", "WL-4"]);
    desktop.run("unplug", &["WL-1"]);
    see_bands(&desktop, &daemon, &["WL-3", "WL-4"]);
    let slices = daemon.root().join("cache/murald/backends/swaybg/slices");
    wait_until("only what is shown is kept", || {
        std::fs::read_dir(&slices).unwrap().count() == 2
    });
}
