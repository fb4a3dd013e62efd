//! Tests going back through the history: after manual changes, random ones and playlists, and after a
//! kill.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, RED, plain, see, set, three};
use crate::support::TestDaemon;

const MONITORS: [&str; 2] = ["HEADLESS-1", "HEADLESS-2"];

/// The image that each monitor shows.
fn shown(daemon: &TestDaemon) -> BTreeMap<String, i64> {
    let current = daemon.client().get("/wallpaper/current").ok();
    let monitors = current["monitors"].as_array().unwrap().iter();
    let one = |one: &Value| {
        (
            one["monitor_name"].as_str().unwrap().to_owned(),
            one["image_id"].as_i64().unwrap(),
        )
    };
    monitors.map(one).collect()
}

fn back(daemon: &TestDaemon, body: &Value) -> crate::support::client::Answer {
    daemon.client().post("/wallpaper/back", body)
}

#[test]
fn back_goes_through_fifty_changes_and_survives_a_kill() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let mut daemon = TestDaemon::started_on(&desktop);
    let pictures = three(&daemon);
    let client = daemon.client();
    let items: Vec<Value> = pictures
        .iter()
        .map(|id| json!({ "image_id": id }))
        .collect();
    let body = json!({ "name": "all", "configuration": { "type": "manual" }, "images": items });
    let playlist = client.post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    // The past images of each monitor, without repeats.
    let mut past: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for round in 0..50 {
        let monitor = MONITORS[round / 5 % 2];
        match round % 5 {
            0 => drop(set(&daemon, pictures[round / 5 % 3], monitor).ok()),
            1 => drop(
                client
                    .post("/wallpaper/random", &json!({ "monitor": monitor }))
                    .ok(),
            ),
            2 => {
                let body = json!({ "monitors": [monitor] });
                client
                    .post(&format!("/playlists/{playlist}/start"), &body)
                    .ok();
            }
            3 => drop(
                client
                    .post(&format!("/playlists/{playlist}/next"), &json!({}))
                    .ok(),
            ),
            _ => drop(set(&daemon, pictures[round % 3], "*").ok()),
        }
        for (monitor, image) in shown(&daemon) {
            let past = past.entry(monitor).or_default();
            if past.last() != Some(&image) {
                past.push(image);
            }
        }
    }
    client
        .post(&format!("/playlists/{playlist}/stop"), &json!({}))
        .ok();
    assert!(past.values().all(|past| past.len() > 15), "{past:?}");
    for step in 0.. {
        if step == 7 {
            daemon.kill9();
            daemon.start();
            let before: BTreeMap<_, _> = past
                .iter()
                .map(|(name, past)| (name.clone(), past[past.len() - 1]))
                .collect();
            wait_until("it is shown again", || shown(&daemon) == before);
        }
        for past in past.values_mut() {
            past.pop();
        }
        let expected: BTreeMap<String, i64> = past
            .iter()
            .filter_map(|(name, past)| Some((name.clone(), *past.last()?)))
            .collect();
        let answer = back(&daemon, &json!({}));
        if expected.is_empty() {
            assert_eq!(answer.status, 409, "{}", answer.text());
            break;
        }
        let answer = answer.ok();
        assert_eq!(answer["images"], json!(expected), "step {step}");
        let skipped: Vec<&String> = past
            .iter()
            .filter(|(_, past)| past.is_empty())
            .map(|(name, _)| name)
            .collect();
        assert_eq!(answer.get("skipped").is_some(), !skipped.is_empty());
        let shown = shown(&daemon);
        assert!(
            expected.iter().all(|(name, image)| shown[name] == *image),
            "step {step}"
        );
    }
}

#[test]
fn back_skips_missing_images_and_ends_with_any_other_change() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, blue] = three(&daemon);
    let all = json!({});
    assert_eq!(back(&daemon, &all).status, 409);
    assert_eq!(back(&daemon, &json!({ "monitor": "DP-9" })).status, 400);
    for id in [red, green, blue] {
        set(&daemon, id, "*").ok();
    }
    daemon.client().send(
        "DELETE",
        "/images",
        "",
        json!({ "ids": [green] }).to_string().as_bytes(),
    );
    let answer = back(&daemon, &all).ok();
    assert_eq!(answer["images"], json!({ "HEADLESS-1": red }));
    see(&desktop, &daemon, "HEADLESS-1", RED);
    let newest = &daemon.client().get("/images/history?limit=1").ok()[0];
    assert_eq!(
        (&newest["image_id"], &newest["source"]["type"]),
        (&json!(red), &json!("manual"))
    );
    assert_eq!(back(&daemon, &all).status, 409);
    // After a manual change, the previous picture is the one that `back` led to.
    let white = daemon.import(&[&plain(&daemon, "white.png", [250, 250, 250])])[0];
    set(&daemon, white, "*").ok();
    assert_eq!(back(&daemon, &all).ok()["image_id"], red);
    assert_eq!(back(&daemon, &all).ok()["image_id"], blue);
    see(&desktop, &daemon, "HEADLESS-1", BLUE);
    // Without a history there is no way back.
    daemon.client().send("DELETE", "/images/history", "", b"");
    assert_eq!(back(&daemon, &all).status, 409);
}
