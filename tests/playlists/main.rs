//! Tests of playlists on real monitors: the events and the screen, change by change.

#![allow(unreachable_pub, clippy::disallowed_methods, clippy::unwrap_used)]

#[path = "../desktop/mod.rs"]
mod desktop;

#[path = "../support/mod.rs"]
mod support;

mod dynamic;
mod endure;
mod light;
mod moved;
mod power;
mod records;
mod skip;
mod slideshow;
mod steps;
mod together;
mod verbs;

use std::path::PathBuf;
use std::process::Stdio;

use desktop::{Desktop, wait_until};
use serde_json::{Value, json};
use support::TestDaemon;
use support::client::Events;

pub type Rgb = [u8; 3];

/// Far apart, so that rounding by a backend does not matter.
pub const COLORS: [Rgb; 8] = [
    [200, 30, 30],
    [30, 180, 60],
    [40, 60, 200],
    [220, 220, 40],
    [200, 40, 200],
    [40, 200, 210],
    [120, 80, 40],
    [130, 130, 220],
];

/// A started daemon on a desktop, and the ids of plain pictures in the first colours.
pub fn daemon(desktop: &Desktop, pictures: usize) -> (TestDaemon, Vec<i64>) {
    let daemon = TestDaemon::started_on(desktop);
    let ids = pictures_of(&daemon, pictures);
    (daemon, ids)
}

pub fn pictures_of(daemon: &TestDaemon, number: usize) -> Vec<i64> {
    (0..number)
        .map(|at| daemon.import(&[&plain(daemon, at)])[0])
        .collect()
}

fn plain(daemon: &TestDaemon, at: usize) -> PathBuf {
    let path = daemon.root().join(format!("plain-{at}.png"));
    image::RgbImage::from_pixel(640, 360, image::Rgb(COLORS[at]))
        .save(&path)
        .unwrap();
    path
}

/// Makes a playlist and returns its id.
#[track_caller]
pub fn make(daemon: &TestDaemon, name: &str, configuration: Value, images: &[i64]) -> i64 {
    let images: Vec<Value> = images.iter().map(|id| json!({ "image_id": id })).collect();
    let body = json!({ "name": name, "configuration": configuration, "images": images });
    daemon.client().post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap()
}

/// Sends an action to a playlist.
#[track_caller]
pub fn tell(daemon: &TestDaemon, id: i64, action: &str) -> Value {
    daemon
        .client()
        .post(&format!("/playlists/{id}/{action}"), &json!({}))
        .ok()
}

#[track_caller]
pub fn start(daemon: &TestDaemon, id: i64, monitors: &[&str]) {
    let answer = start_with_warnings(daemon, id, monitors);
    assert_eq!(answer, json!({ "status": "started" }));
}

#[track_caller]
pub fn start_with_warnings(daemon: &TestDaemon, id: i64, monitors: &[&str]) -> Value {
    let path = format!("/playlists/{id}/start");
    daemon
        .client()
        .post(&path, &json!({ "monitors": monitors }))
        .ok()
}

#[track_caller]
pub fn active(daemon: &TestDaemon) -> Vec<Value> {
    daemon
        .client()
        .get("/playlists/active")
        .ok()
        .as_array()
        .unwrap()
        .clone()
}

/// Playlist, index and image of the next change.
#[track_caller]
pub fn change(events: &mut Events) -> (i64, i64, i64) {
    let event = events.wait_for("playlist_image_changed");
    let number = |name: &str| event[name].as_i64().unwrap();
    (
        number("playlist_id"),
        number("image_index"),
        number("image_id"),
    )
}

/// The colour in the middle of an output, as grim captures it.
pub fn middle(desktop: &Desktop, output: &str) -> Rgb {
    let mut grim = desktop.command("grim");
    let shot = grim
        .args(["-t", "ppm", "-o", output, "-"])
        .stderr(Stdio::inherit())
        .output();
    let shot = shot.unwrap();
    assert!(shot.status.success(), "grim failed on {output}");
    // A header of three lines, then the pixels, row by row.
    let mut lines = shot.stdout.splitn(4, |&byte| byte == b'\n').skip(1);
    let size = String::from_utf8(lines.next().unwrap().to_vec()).unwrap();
    let (width, height) = size.split_once(' ').unwrap();
    let (width, height): (usize, usize) = (width.parse().unwrap(), height.parse().unwrap());
    let pixels = lines.nth(1).unwrap();
    pixels[(height / 2 * width + width / 2) * 3..][..3]
        .try_into()
        .unwrap()
}

/// The index of this colour.
pub fn known(color: Rgb) -> Option<usize> {
    let near = |one: &Rgb| one.iter().zip(color).all(|(&a, b)| a.abs_diff(b) <= 4);
    COLORS.iter().position(near)
}

/// Waits until an output shows this picture.
#[track_caller]
pub fn see(desktop: &Desktop, output: &str, picture: usize) {
    wait_until(&format!("picture {picture} on {output}"), || {
        known(middle(desktop, output)) == Some(picture)
    });
}

/// The same on X11.
#[track_caller]
pub fn see_on_x11(desktop: &Desktop, output: &str, picture: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shot.png");
    wait_until(&format!("picture {picture} on {output}"), || {
        desktop.shot(&path, output);
        let shot = image::open(&path).unwrap().to_rgb8();
        known(shot.get_pixel(shot.width() / 2, shot.height() / 2).0) == Some(picture)
    });
}
