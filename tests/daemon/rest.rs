//! Tests that neither the daemon nor its drawing process wakes up while idle.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::faults::plain;
use crate::desktop::{Desktop, wait_until};
use crate::support::TestDaemon;

/// Returns how often the threads of these processes have gone to sleep.
fn sleeps(pids: &[u32]) -> u64 {
    let of = |task: PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|line| line.trim().parse::<u64>().ok())
            .unwrap_or(0)
    };
    let tasks = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    pids.iter()
        .flat_map(tasks)
        .map(|task| of(task.path()))
        .sum()
}

/// Waits until the work of the start is done and no thread wakes up for five seconds.
#[track_caller]
fn rests(pids: &[u32]) {
    wait_until("five seconds in which nobody wakes up", || {
        let before = sleeps(pids);
        std::thread::sleep(Duration::from_secs(5));
        sleeps(pids) == before
    });
}

#[test]
fn daemon_sleeps_when_idle() {
    let daemon = TestDaemon::started();
    daemon.client().get("/healthz").ok();
    // The daemon searches for a compositor a few times, and then relies on inotify.
    rests(&[daemon.pid()]);
}

#[test]
fn daemon_and_drawing_process_sleep_while_a_wallpaper_is_shown() {
    let desktop = Desktop::wayland(&["320x240"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"builtin\"\n");
    daemon.start();
    let ids = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| daemon.import(&[&plain(&daemon, name, color)])[0]);
    let hour = json!({ "type": "timer", "interval": 3600 });
    let items = ids.map(|id| json!({ "image_id": id }));
    let body = json!({ "name": "slow", "configuration": hour, "images": items });
    let list = daemon.client().post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    let mut events = daemon.events("");
    let start = json!({ "monitors": ["HEADLESS-1"] });
    daemon
        .client()
        .post(&format!("/playlists/{list}/start"), &start)
        .ok();
    events.wait_for("wallpaper_changed");
    let drawing = daemon.drawing();
    assert_eq!(drawing.len(), 1);
    rests(&[&[daemon.pid()], &*drawing].concat());
    assert_eq!(daemon.drawing(), drawing);
}
