//! The commands for playlists, with a real daemon.

use serde_json::{Value, json};

use super::{daemon, middle};
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// The JSON output of a command.
#[track_caller]
fn run(daemon: &TestDaemon, line: &str) -> Value {
    let args: Vec<&str> = line.split(' ').chain(["--json"]).collect();
    let output = daemon.murald(&args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

#[test]
fn playlist_commands_change_and_control_playlists() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 3);
    let run = |line: &str| run(&daemon, line);
    let [a, b, c] = ids[..] else {
        panic!("{ids:?}")
    };
    let made = run(&format!(
        "playlist create evening {a} {b} --interval 10m --order random"
    ));
    let configuration = json!({
        "type": "timer", "interval": 600, "order": "random", "always_start_on_first_image": false,
    });
    assert_eq!(
        (&made["name"], &made["configuration"]),
        (&json!("evening"), &configuration)
    );
    let id = made["id"].as_i64().unwrap();
    let edited = run(&format!(
        "playlist edit {id} --name dusk --type manual --order ordered"
    ));
    assert_eq!(
        (&edited["name"], &edited["configuration"]["type"]),
        (&json!("dusk"), &json!("manual"))
    );
    let images = |record: &Value| -> Vec<i64> {
        let items = record["images"].as_array().unwrap().iter();
        items
            .map(|item| item["image_id"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(images(&run(&format!("playlist add {id} {c}"))), [a, b, c]);
    assert_eq!(images(&run(&format!("playlist remove {id} {b}"))), [a, c]);
    assert_eq!(run("playlist list")[0]["id"], id);
    assert_eq!(images(&run(&format!("playlist show {id}"))), [a, c]);
    assert_eq!(run("playlist active"), json!([]));
    assert_eq!(
        run(&format!("playlist start {id} --monitor HEADLESS-1"))["status"],
        "started"
    );
    assert_eq!(run("playlist active HEADLESS-1")["current_image_id"], a);
    let current = || run("playlist active")[0]["current_image_id"].clone();
    for (line, shown) in [("next", c), ("previous", a)] {
        run(&format!("playlist {line} {id}"));
        assert_eq!(current(), shown, "playlist {line}");
        run(line);
        assert_eq!(current(), if shown == a { c } else { a }, "{line}");
        run(&format!("playlist {line}"));
        assert_eq!(current(), shown, "playlist {line}, all");
    }
    let paused = || run("playlist active")[0]["paused"] == true;
    for form in [
        format!("playlist %s {id}"),
        "playlist %s".into(),
        "%s".into(),
    ] {
        run(&form.replace("%s", "pause"));
        assert!(paused(), "{form}");
        run(&form.replace("%s", "resume"));
        assert!(!paused(), "{form}");
    }
    assert_eq!(run(&format!("playlist stop {id}"))["status"], "stopped");
    run(&format!("playlist start {id}"));
    assert_eq!(run("playlist stop")["stopped"], 1);
    let refused = daemon
        .murald(&["playlist", "next", &id.to_string()])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not running"));
    assert_eq!(run(&format!("playlist delete {id}"))["status"], "deleted");
    assert_eq!(run("playlist list"), json!([]));
}

#[test]
fn impossible_step_fails_with_a_reason() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (daemon, ids) = daemon(&desktop, 1);
    let day = format!("{}@00:00", ids[0]);
    run(
        &daemon,
        &format!("playlist create day {day} --type time_of_day"),
    );
    let refused = |line: &str, why: &str| {
        let output = daemon
            .murald(&line.split(' ').collect::<Vec<_>>())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {told}");
        assert!(
            output.stdout.is_empty() && told.contains(why),
            "{line}: {told}"
        );
    };
    for line in ["next", "previous", "prev", "playlist next"] {
        refused(line, "no playlist is running");
    }
    run(&daemon, "playlist start day");
    for line in [
        "next",
        "prev",
        "playlist next",
        "playlist next day",
        "playlist previous day",
    ] {
        refused(line, "next and previous do not apply");
    }
    assert_eq!(
        run(&daemon, "playlist active")[0]["current_image_id"],
        ids[0]
    );
}

#[test]
fn playlist_shows_plain_colours() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (mut daemon, ids) = daemon(&desktop, 1);
    let id = ids[0].to_string();
    let color = [10, 50, 200];
    let words = [
        "playlist", "create", "both", "#0a32c8", &id, "--type", "manual",
    ];
    let output = daemon.murald(&words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let items = json!([
        { "image_id": null, "color": "#0a32c8", "media_type": "image" },
        { "image_id": ids[0], "media_type": "image" },
    ]);
    assert_eq!(run(&daemon, "playlist show both")["images"], items);
    let mut events = daemon.events("playlist_image_changed,wallpaper_changed");
    run(&daemon, "playlist start both");
    let event = events.wait_for("playlist_image_changed");
    assert_eq!(
        (&event["image_index"], &event["image_id"]),
        (&json!(0), &Value::Null)
    );
    wait_until("the colour", || middle(&desktop, "HEADLESS-1") == color);
    let state = |daemon: &TestDaemon| {
        let one = run(daemon, "playlist active")[0].take();
        (
            one["current_image_id"].clone(),
            one["current_color"].clone(),
        )
    };
    assert_eq!(state(&daemon), (Value::Null, json!("#0a32c8")));
    assert_eq!(run(&daemon, "playlist next both")["image_id"], ids[0]);
    assert_eq!(state(&daemon), (json!(ids[0]), Value::Null));
    let answer = run(&daemon, "playlist next both");
    assert_eq!(
        (
            &answer["image_id"],
            &answer["image_name"],
            &answer["color"],
            &answer["images"]
        ),
        (
            &Value::Null,
            &json!("#0a32c8"),
            &json!("#0a32c8"),
            &json!({ "HEADLESS-1": "#0a32c8" })
        )
    );
    // A record that was read can be sent back, and a restart keeps the colour.
    let body = json!({ "images": items });
    daemon.client().patch("/playlists/1", &body).ok();
    daemon.kill9();
    daemon.start();
    assert_eq!(state(&daemon), (Value::Null, json!("#0a32c8")));
    let rows = daemon
        .murald(&["playlist", "show", "both"])
        .output()
        .unwrap();
    let rows = String::from_utf8(rows.stdout).unwrap();
    assert!(
        rows.contains("1\t\t#0a32c8") && rows.contains("images\t2"),
        "{rows}"
    );
    for bad in [
        json!({}),
        json!({ "image_id": 1, "color": "#fff" }),
        json!({ "color": "blue" }),
    ] {
        let body = json!({ "images": [bad] });
        assert_eq!(
            daemon.client().patch("/playlists/1", &body).status,
            400,
            "{body}"
        );
    }
}
