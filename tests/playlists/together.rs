//! Two playlists at the same time, each on its own monitor, during an import.
//!
//! How late changes are is not tested here, as other work shares the machine: `cargo bench --bench
//! playlists` measures it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::json;

use super::{COLORS, active, daemon, known, make, middle, see, start, tell};
use crate::desktop::{Desktop, SetOnDrop};
use crate::support::{TestDaemon, photographs};

const OUTPUTS: [&str; 2] = ["HEADLESS-1", "HEADLESS-2"];
/// Number of changes of both playlists together.
const CHANGES: usize = 12;

/// The pictures that an output shows, in order, until `done` is set.
fn watch(desktop: &Desktop, output: &str, done: &AtomicBool) -> Vec<usize> {
    let mut seen = Vec::new();
    loop {
        let last = done.load(Ordering::Acquire);
        if let Some(picture) = known(middle(desktop, output))
            && seen.last() != Some(&picture)
        {
            seen.push(picture);
        }
        if last {
            return seen;
        }
    }
}

/// Shows a picture on both outputs; returns an interval in seconds in which a busy machine makes
/// and sees a change several times.
fn interval_for(desktop: &Desktop, daemon: &TestDaemon, id: i64, picture: usize) -> u64 {
    let begun = Instant::now();
    for output in OUTPUTS {
        let body = json!({ "image_id": id, "monitor": output });
        daemon.client().post("/wallpaper/set", &body).ok();
        see(desktop, output, picture);
    }
    2 + (begun.elapsed() * 2).as_secs()
}

#[test]
fn playlist_events_match_the_screen() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let (daemon, ids) = daemon(&desktop, 7);
    let photos = photographs::take(&daemon.root().join("photos"), 60);
    let paths: Vec<_> = photos.iter().map(|photo| &photo.path).collect();
    daemon
        .client()
        .post("/images", &json!({ "paths": paths }))
        .ok();
    let interval = interval_for(&desktop, &daemon, ids[6], 6);
    let timer = json!({ "type": "timer", "interval": interval });
    let lists = [&ids[..3], &ids[3..6]];
    let one = make(&daemon, "one", timer.clone(), lists[0]);
    let two = make(&daemon, "two", timer, lists[1]);
    let mut events = daemon.events("playlist_image_changed");
    let done = AtomicBool::new(false);
    let (told, seen) = std::thread::scope(|scope| {
        let ends = SetOnDrop(&done);
        let watchers = OUTPUTS.map(|output| scope.spawn(|| watch(&desktop, output, &done)));
        start(&daemon, one, &OUTPUTS[..1]);
        start(&daemon, two, &OUTPUTS[1..]);
        let mut told = [Vec::new(), Vec::new()];
        while told[0].len() + told[1].len() < CHANGES {
            let event = events.wait_for("playlist_image_changed");
            let which = usize::from(event["playlist_id"] == two);
            assert_eq!(event["monitors"], json!([OUTPUTS[which]]));
            // A machine that stops for more than the interval leaves out an image, on the screen, too.
            let image = lists[which][event["image_index"].as_u64().unwrap() as usize];
            assert_eq!(event["image_id"], image, "{event}");
            told[which].push(ids.iter().position(|id| *id == image).unwrap());
        }
        let answer = daemon
            .client()
            .post("/playlists/active/stop", &json!({}))
            .ok();
        assert_eq!(answer["stopped"], 2);
        // A change under way at the stop is shown and published, or not made.
        let hung = daemon.client().get("/wallpaper/current").ok();
        for (which, output) in OUTPUTS.iter().enumerate() {
            let last = hung["monitors"][which]["image_id"].as_i64().unwrap();
            let last = ids.iter().position(|id| *id == last).unwrap();
            if told[which].last() != Some(&last) {
                told[which].push(last);
            }
            see(&desktop, output, last);
        }
        drop(ends);
        (told, watchers.map(|watcher| watcher.join().unwrap()))
    });
    let seen = seen.map(|all| {
        assert_eq!(all[0], 6, "the picture before");
        all[1..].to_vec()
    });
    assert_eq!(seen, told, "the monitors and the events");
    assert!(
        told.iter().all(|list| list.len() > 3),
        "both went on: {told:?}"
    );
    assert!(active(&daemon).is_empty());
}

#[test]
fn monitor_has_one_playlist_and_missing_monitors_join_later() {
    let desktop = Desktop::wayland(&["--pluggable", "640x360"]);
    let (daemon, ids) = daemon(&desktop, 2);
    let by_hand = json!({ "type": "manual" });
    let one = make(&daemon, "one", by_hand.clone(), &ids);
    let two = make(&daemon, "two", by_hand, &ids[1..]);
    let mut events = daemon.events("playlist_started,playlist_stopped,playlist_image_changed");
    start(&daemon, one, &["WL-1", "WL-2"]);
    let begun = events.wait_for("playlist_started");
    let expected = json!({
        "playlist_id": one, "playlist_name": "one", "monitors": ["WL-1", "WL-2"],
        "applied_to": ["WL-1"], "extend": false, "timestamp": begun["timestamp"],
    });
    assert_eq!(begun, expected);
    assert_eq!(
        events.wait_for("playlist_image_changed")["monitors"],
        json!(["WL-1"])
    );
    see(&desktop, "WL-1", 0);
    // The second monitor is plugged in, and gets the playlist at once.
    desktop.run("plug", &[]);
    see(&desktop, "WL-2", 0);
    let running = &active(&daemon)[0];
    assert_eq!(running["applied_to"], json!(["WL-1", "WL-2"]));
    // Starting another playlist on one of its monitors stops the first on both.
    start(&daemon, two, &["WL-2"]);
    assert_eq!(events.wait_for("playlist_stopped")["playlist_id"], one);
    assert_eq!(events.wait_for("playlist_started")["playlist_id"], two);
    see(&desktop, "WL-2", 1);
    see(&desktop, "WL-1", 0);
    let on = |monitor: &str| daemon.client().get(&format!("/playlists/active/{monitor}"));
    assert_eq!(on("WL-2").ok()["playlist_id"], two);
    on("WL-1").fails(404);
}

#[test]
fn extended_playlist_spans_both_monitors() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let (daemon, _) = daemon(&desktop, 0);
    let wide = |name: &str, left: usize, right: usize| {
        let path = daemon.root().join(name);
        let paint = |x, _| image::Rgb(COLORS[if x < 640 { left } else { right }]);
        image::RgbImage::from_fn(1280, 360, paint)
            .save(&path)
            .unwrap();
        daemon.import(&[&path])[0]
    };
    let ids = [wide("one.png", 0, 1), wide("two.png", 2, 3)];
    let id = make(&daemon, "wide", json!({ "type": "manual" }), &ids);
    let mut events = daemon.events("playlist_started,wallpaper_changed");
    let path = format!("/playlists/{id}/start");
    daemon.client().post(&path, &json!({ "extend": true })).ok();
    let hung = events.wait_for("wallpaper_changed");
    assert_eq!(events.wait_for("playlist_started")["extend"], true);
    assert_eq!(
        (&hung["mode"], &hung["source"]),
        (&json!("extend"), &json!("playlist"))
    );
    // The order is the compositor's, which differs between versions of sway.
    let monitors = hung["monitors"].as_array().unwrap();
    assert!(monitors.len() == 2 && OUTPUTS.iter().all(|&name| monitors.contains(&json!(name))));
    for (step, pictures) in [("", [0, 1]), ("next", [2, 3]), ("previous", [0, 1])] {
        if !step.is_empty() {
            tell(&daemon, id, step);
        }
        for (output, picture) in OUTPUTS.iter().zip(pictures) {
            see(&desktop, output, picture);
        }
    }
    let history = daemon.client().get("/images/history?limit=1").ok();
    let source = json!({ "type": "playlist", "playlist_id": id, "playlist_name": "wide" });
    assert_eq!(history[0]["source"], source);
}
