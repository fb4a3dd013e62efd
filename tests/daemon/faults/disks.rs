//! Tests a disk that does not answer under the configuration: during requests, at the start and at
//! the shutdown.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::plain;
use crate::desktop::{Desktop, wait_until};
use crate::support::bystander::Bystander;
use crate::support::dead_disk::DeadDisk;
use crate::support::{TestDaemon, left_out};

/// Generous, as the machine may be busy; something that hangs never ends.
const AT_ONCE: Duration = Duration::from_secs(50);

/// Returns a daemon with two images, of which the first is shown and has a thumbnail.
fn daemon(desktop: &Desktop) -> (TestDaemon, [i64; 2]) {
    let daemon = TestDaemon::started_on(desktop);
    let ids = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| daemon.import(&[&plain(&daemon, name, color)])[0]);
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": ids[0] }))
        .ok();
    assert_eq!(
        daemon
            .client()
            .get(&format!("/images/{}/thumbnail", ids[0]))
            .status,
        200
    );
    is_long_ago();
    (daemon, ids)
}

/// The daemon assumes for a moment that a disk that has answered still does, so wait longer.
fn is_long_ago() {
    let asked = Instant::now();
    wait_until("that is long ago", || {
        asked.elapsed() > Duration::from_millis(500)
    });
}

/// Stops the daemon; threads that look at the dead disk must not delay the shutdown.
#[track_caller]
fn ends(daemon: &mut TestDaemon) {
    let begun = Instant::now();
    assert_eq!(daemon.stop(), Some(0));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

/// Settings are in memory, so requests that only read them still work.
#[test]
fn configuration_on_a_dead_disk_refuses_only_changes() {
    let desktop = Desktop::wayland(&["640x480"]);
    let (mut daemon, [red, green]) = daemon(&desktop);
    let client = daemon.client();
    let config = daemon.config_file().parent().unwrap().to_owned();
    let bystander = Bystander::beside(&daemon, Some(red));
    let Some(dead) = DeadDisk::mount(&config) else {
        return left_out("a configuration on a dead disk", "this user may not mount");
    };
    let begun = Instant::now();
    let theme = json!({ "theme": "mine" });
    let changes = |client: &crate::support::client::Client| client.patch("/config/app", &theme);
    let all: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| changes(&client).status))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(all, [503; 8]);
    client.post("/config/reset", &json!({})).fails(503);
    assert_eq!(client.get("/config").ok()["app"]["theme"], "dark");
    client
        .post("/wallpaper/set", &json!({ "image_id": green }))
        .ok();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    bystander.end("a configuration on a dead disk");
    drop(dead);
    wait_until("a change", || changes(&client).status == 200);
    assert!(
        fs::read_to_string(daemon.config_file())
            .unwrap()
            .contains("\"mine\"")
    );
    let dead = DeadDisk::mount(&config).unwrap();
    // SIGHUP reloads the file on the thread that also shuts the daemon down.
    daemon.signal("-HUP");
    ends(&mut daemon);
    let refused = daemon.murald(&["start"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(70), "{said}");
    assert!(said.contains("config.toml does not answer"), "{said}");
    drop(dead);
    daemon.start();
    assert_eq!(client.get("/config").ok()["app"]["theme"], "mine");
}
