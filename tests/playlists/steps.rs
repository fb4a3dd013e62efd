//! Steps and starts that clients wait for: each has its picture, event and answer. If the backend fails,
//! nothing changes.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::{active, change, daemon, make, pictures_of, see, see_on_x11, start, tell};
use crate::desktop::Desktop;
use crate::support::TestDaemon;

/// Number of simultaneous requests.
const STEPS: usize = 3;

/// The image that `current` reports for each monitor.
fn current(daemon: &TestDaemon) -> Vec<(String, i64)> {
    let hung = daemon.client().get("/wallpaper/current").ok();
    let of = |entry: &Value| {
        (
            entry["monitor_name"].as_str().unwrap().to_owned(),
            entry["image_id"].as_i64().unwrap(),
        )
    };
    hung["monitors"]
        .as_array()
        .unwrap()
        .iter()
        .map(of)
        .collect()
}

/// Sends simultaneous steps of all playlists, on two monitors.
fn quick_steps(desktop: &Desktop, outputs: [&str; 2]) -> TestDaemon {
    let (daemon, ids) = daemon(desktop, 2 * (STEPS + 1));
    let by_hand = json!({ "type": "manual" });
    let lists = [&ids[..STEPS + 1], &ids[STEPS + 1..]];
    let playlists = [
        make(&daemon, "one", by_hand.clone(), lists[0]),
        make(&daemon, "two", by_hand, lists[1]),
    ];
    let mut events = daemon.events("playlist_image_changed,playlist_paused");
    for (id, output) in playlists.iter().zip(outputs) {
        start(&daemon, *id, &[output]);
        assert_eq!(change(&mut events).1, 0);
    }
    std::thread::scope(|scope| {
        for _ in 0..STEPS {
            scope.spawn(|| {
                let answer = daemon
                    .client()
                    .post("/playlists/active/next", &json!({}))
                    .ok();
                assert_eq!(answer["advanced"], 2);
            });
        }
    });
    let mut told = [Vec::new(), Vec::new()];
    for _ in 0..2 * STEPS {
        let event = events.wait_for("playlist_image_changed");
        let which = usize::from(event["playlist_id"] == playlists[1]);
        assert_eq!(event["monitors"], json!([outputs[which]]));
        let index = event["image_index"].as_u64().unwrap() as usize;
        assert_eq!(event["image_id"], lists[which][index]);
        told[which].push(index);
    }
    assert_eq!(told, [[1, 2, 3], [1, 2, 3]]);
    daemon
        .client()
        .post("/playlists/active/pause", &json!({}))
        .ok();
    assert_eq!(
        events.next().0,
        "playlist_paused",
        "a change has two events"
    );
    let last = [lists[0][STEPS], lists[1][STEPS]];
    let mut hung = current(&daemon);
    hung.sort_by_key(|(monitor, _)| outputs.iter().position(|output| output == monitor));
    let expected: Vec<_> = outputs
        .iter()
        .map(|name| (*name).to_owned())
        .zip(last)
        .collect();
    assert_eq!(hung, expected);
    let history = daemon.client().get("/images/history?limit=100").ok();
    let noted = history.as_array().unwrap().iter();
    let noted: Vec<i64> = noted
        .map(|entry| entry["image_id"].as_i64().unwrap())
        .collect();
    let once: BTreeSet<i64> = noted.iter().copied().collect();
    assert_eq!(noted.len(), once.len(), "a picture twice: {history}");
    assert!(last.iter().all(|id| once.contains(id)), "{history}");
    let places: Vec<Value> = active(&daemon)
        .iter()
        .map(|one| one["current_index"].clone())
        .collect();
    assert_eq!(places, [STEPS, STEPS]);
    daemon
}

#[test]
fn simultaneous_steps_each_show_their_picture_on_wayland() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let _daemon = quick_steps(&desktop, ["HEADLESS-1", "HEADLESS-2"]);
    see(&desktop, "HEADLESS-1", STEPS);
    see(&desktop, "HEADLESS-2", 2 * STEPS + 1);
}

#[test]
fn simultaneous_steps_each_show_their_picture_on_x11() {
    let desktop = Desktop::x11(&["640x360", "640x360"]);
    let outputs = test_outputs(&desktop);
    let _daemon = quick_steps(&desktop, [&outputs[0], &outputs[1]]);
    for (output, picture) in outputs.iter().zip([STEPS, 2 * STEPS + 1]) {
        see_on_x11(&desktop, output, picture);
    }
}

/// Whether the database has another place of the running playlist than its monitor's row, and which.
fn disagreement(database: &rusqlite::Connection) -> Option<(i64, i64)> {
    let sql = "SELECT image_id, state ->> '$.image_id' FROM assignments, playback WHERE running \
               AND image_id <> state ->> '$.image_id'";
    let found = database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
    rusqlite::OptionalExtension::optional(found).unwrap()
}

/// The daemon may be killed at each of these instants.
#[test]
fn place_of_a_playlist_is_written_together_with_its_picture() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 4);
    let id = make(&daemon, "one", json!({ "type": "manual" }), &ids);
    start(&daemon, id, &["HEADLESS-1"]);
    let database = rusqlite::Connection::open(daemon.database()).unwrap();
    std::thread::scope(|scope| {
        let steps = scope.spawn(|| (0..12).for_each(|_| drop(tell(&daemon, id, "next"))));
        while !steps.is_finished() {
            assert_eq!(disagreement(&database), None, "row and place");
        }
    });
    assert_eq!(active(&daemon)[0]["current_image_id"], ids[0]);
}

#[test]
fn start_of_a_playlist_is_written_together_with_its_picture() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 4);
    let by_hand = json!({ "type": "manual" });
    let [one, two] = [("one", 0), ("two", 2)]
        .map(|(name, at)| make(&daemon, name, by_hand.clone(), &ids[at..at + 2]));
    start(&daemon, one, &[]);
    let database = rusqlite::Connection::open(daemon.database()).unwrap();
    std::thread::scope(|scope| {
        let starts = scope.spawn(|| {
            for id in [two, one].into_iter().cycle().take(12) {
                start(&daemon, id, &[]);
            }
        });
        while !starts.is_finished() {
            assert_eq!(disagreement(&database), None, "row and place");
        }
    });
    assert_eq!(active(&daemon)[0]["playlist_id"], one);
}

fn test_outputs(desktop: &Desktop) -> Vec<String> {
    let daemon = TestDaemon::started_on(desktop);
    let monitors = daemon.client().get("/monitors").ok();
    let monitors = monitors.as_array().unwrap().iter();
    monitors
        .map(|monitor| monitor["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Runs a command that the daemon must refuse.
fn refused(daemon: &TestDaemon, line: &str) {
    let output = daemon
        .murald(&line.split(' ').collect::<Vec<_>>())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}: {errors}");
    assert!(errors.contains("swaybg"), "{line}: {errors}");
}

#[test]
fn failing_backend_leaves_steps_and_starts_undone() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    let fails = daemon.root().join("fails");
    let real = desktop.output("which", &["swaybg"]);
    let script = format!(
        "#!/bin/sh\n[ -e '{}' ] || exec '{real}' \"$@\"\necho 'out of order' >&2\nexit 1\n",
        fails.display()
    );
    daemon.stub("swaybg", &script);
    daemon.configure("[backend]\ntype = 'swaybg'\n");
    daemon.start();
    let ids = pictures_of(&daemon, 3);
    let by_hand = json!({ "type": "manual" });
    let one = make(&daemon, "one", by_hand.clone(), &ids[..2]);
    let two = make(&daemon, "two", by_hand, &ids[2..]);
    let mut events = daemon.events("playlist_image_changed,playlist_started,playlist_stopped");
    start(&daemon, one, &[]);
    assert_eq!(events.wait_for("playlist_started")["playlist_id"], one);
    assert_eq!(change(&mut events), (one, 0, ids[0]));

    fs::write(&fails, "").unwrap();
    for path in [
        format!("/playlists/{one}/next"),
        format!("/playlists/{one}/previous"),
        "/playlists/active/next".to_owned(),
        format!("/playlists/{two}/start"),
    ] {
        let answer = daemon.client().post(&path, &json!({})).fails(500);
        assert!(
            answer["details"].to_string().contains("out of order"),
            "{path}: {answer}"
        );
    }
    for line in [
        format!("playlist next {one}"),
        "playlist next".to_owned(),
        "next".to_owned(),
        format!("playlist start {two}"),
    ] {
        refused(&daemon, &line);
    }
    let running = active(&daemon);
    assert_eq!(running.len(), 1, "{running:?}");
    assert_eq!(
        (&running[0]["playlist_id"], &running[0]["current_index"]),
        (&json!(one), &json!(0))
    );
    assert_eq!(current(&daemon), [("HEADLESS-1".to_owned(), ids[0])]);
    see(&desktop, "HEADLESS-1", 0);

    fs::remove_file(&fails).unwrap();
    tell(&daemon, one, "next");
    // No failed step has published an event.
    let (kind, event) = events.next();
    assert_eq!(
        (&*kind, &event["image_index"]),
        ("playlist_image_changed", &json!(1))
    );
    see(&desktop, "HEADLESS-1", 1);
    start(&daemon, two, &[]);
    assert_eq!(events.next().0, "playlist_stopped");
    see(&desktop, "HEADLESS-1", 2);
}
