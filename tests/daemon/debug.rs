//! Tests what a bug report contains, and that it contains no secrets.

use std::fs;

use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::support::TestDaemon;

fn debug(daemon: &TestDaemon) -> Value {
    daemon.client().get("/debug").ok()
}

#[test]
fn debug_reports_threads_children_and_failures_but_no_secrets() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure(
        "[backend]\ntype = \"swaybg\"\n[hooks]\nwallpaper_changed = \": hush\"\n\
         [remote_gallery]\napi_key = \"hush\"\n",
    );
    daemon.start();
    let [red, bad] = ["red", "bad"].map(|name| {
        let path = daemon.root().join(format!("{name}.png"));
        let color = image::Rgb([name.len() as u8, 30, name.as_bytes()[0]]);
        image::RgbImage::from_pixel(64, 36, color)
            .save(&path)
            .unwrap();
        daemon.import(&[&path])[0]
    });
    let before = debug(&daemon);
    assert_eq!(
        (&before["children"], &before["failures"]),
        (&json!([]), &json!([]))
    );
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": red }))
        .ok();
    let file = daemon.client().get(&format!("/images/{bad}")).ok()["path"].clone();
    fs::write(file.as_str().unwrap(), "no picture").unwrap();
    for _ in 0..25 {
        let answer = daemon
            .client()
            .post("/wallpaper/set", &json!({ "image_id": bad }));
        assert_eq!(answer.status, 500);
    }

    let found = debug(&daemon);
    assert_eq!(found["version"], env!("CARGO_PKG_VERSION"));
    let names: Vec<&str> = found["threads"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    for thread in ["reconciler", "playlist", "listen", "library", "desktop"] {
        assert!(names.contains(&thread), "{names:?}");
    }
    let queues = found["queues"].as_array().unwrap();
    for queue in ["reconciler", "playlist", "desktop"] {
        assert!(
            queues.iter().any(|one| one["name"] == queue),
            "{queue}: {queues:?}"
        );
    }
    for queue in queues {
        assert!(
            queue["length"].as_u64() <= queue["capacity"].as_u64(),
            "{queue}"
        );
    }
    assert_eq!(found["assignments"][0]["image_id"], red);
    let [child] = &found["children"].as_array().unwrap()[..] else {
        panic!("{found}")
    };
    assert_eq!(
        (&child["backend"], &child["monitors"]),
        (&json!("swaybg"), &json!(["HEADLESS-1"]))
    );
    let name = fs::read_to_string(format!("/proc/{}/comm", child["pid"])).unwrap();
    assert_eq!(name.trim_end(), "swaybg");
    assert!(child["memory_kb"].as_u64().unwrap() > 500, "{child}");
    let failures = found["failures"].as_array().unwrap();
    assert_eq!(
        (failures.len(), &failures[19]["image_id"]),
        (20, &json!(bad))
    );
    assert_eq!(failures[0]["monitors"], json!(["HEADLESS-1"]));
    assert_eq!(found["playlists"], json!([]));
    // This test's own connection, and possibly one whose end the server has not noticed yet.
    let clients = found["clients"].as_u64().unwrap();
    assert!((1..=3).contains(&clients), "{clients}");
    assert!(!found.to_string().contains("hush"), "{found}");

    let output = daemon.murald(&["debug"]).output().unwrap();
    let rows = String::from_utf8(output.stdout).unwrap();
    assert!(
        rows.contains(&format!(
            "child\tswaybg (process {}) on HEADLESS-1",
            child["pid"]
        )),
        "{rows}"
    );
}
