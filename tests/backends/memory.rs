//! Tests that growing processes are replaced without a visible change.

use std::fs;

use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::hosted::{Hosted, videos};

fn children(hosted: &Hosted) -> Vec<Value> {
    hosted.daemon.client().get("/debug").ok()["children"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn video_whose_process_keeps_growing_gets_another_process() {
    let every = [("MURALD_MEMORY_LOOKS", "200")];
    let told = "[daemon]\nlog_level = 'debug'";
    let hosted = Hosted::with("mpvpaper", &["mpvpaper"], &["640x480"], told, &every);
    let [video, _] = videos(&hosted);
    hosted.cue("mpvpaper", "grow");
    hosted.set(&json!({ "image_id": video }));
    let [big] = &children(&hosted)[..] else {
        panic!("one process")
    };
    assert!(big["memory_kb"].as_u64().unwrap() > 200 << 10, "{big}");
    let mut events = hosted.daemon.events("");
    // Its successor grows too, but is not replaced for five minutes.
    let limit = |mb: u32| {
        let body = json!({ "max_child_memory_mb": mb });
        hosted.daemon.client().patch("/config/power", &body).ok();
    };
    limit(150);
    wait_until(
        "another process",
        || matches!(&children(&hosted)[..], [one] if one["pid"] != big["pid"]),
    );
    let next = children(&hosted)[0]["pid"].clone();
    let starts = || fs::read_dir(hosted.notes.join("calls")).unwrap().count();
    assert_eq!(starts(), 2);
    let log = hosted.daemon.log();
    let said = log
        .lines()
        .filter(|line| line.contains("restarting mpvpaper"))
        .count();
    assert_eq!(said, 1, "{log}");
    let seen = format!("(process {next}) uses ");
    wait_until("many looks", || {
        hosted.daemon.log().matches(&seen).count() > 5
    });
    assert_eq!((&children(&hosted)[0]["pid"], starts()), (&next, 2));
    // The wallpaper has not changed, so no event is published about it.
    limit(0);
    let mut changes = 0;
    while changes < 2 {
        let (kind, _) = events.next();
        assert!(
            !kind.starts_with("wallpaper_") && kind != "backend_unavailable",
            "{kind}"
        );
        changes += usize::from(kind == "config_changed");
    }
    let refused = json!({ "max_child_memory_mb": -1 });
    assert_eq!(
        hosted
            .daemon
            .client()
            .patch("/config/power", &refused)
            .status,
        400
    );
}
