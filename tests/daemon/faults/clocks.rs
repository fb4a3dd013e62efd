//! Tests clocks that jump while the daemon is not running, as after a hibernation or on another
//! machine: in a time namespace, the time since boot differs.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::plain;
use crate::desktop::Desktop;
use crate::support::bystander::Bystander;
use crate::support::{TestDaemon, may_unshare};

const INTERVAL: i64 = 3600;

const APART: [&str; 3] = ["--user", "--map-root-user", "--time"];

/// Starts the daemon as on a machine that was booted this many seconds earlier.
fn start_later(daemon: &mut TestDaemon, seconds: i64) {
    let offset = seconds.to_string();
    let mut command = daemon.command("unshare");
    command
        .args(APART)
        .args(["--boottime", &offset, "--monotonic", &offset]);
    command.arg(env!("CARGO_BIN_EXE_murald")).arg("start");
    daemon.start_by(command);
}

/// Returns the time until the running playlist changes.
#[track_caller]
fn next_change(daemon: &TestDaemon) -> SignedDuration {
    let active = daemon.client().get("/playlists/active").ok();
    let at: Timestamp = active[0]["next_change_at"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    at.duration_since(Timestamp::now())
}

#[test]
fn playlists_keep_their_interval_when_the_boot_time_jumps() {
    if !may_unshare("jumps of the clock", &APART) {
        return;
    }
    let desktop = Desktop::wayland(&["320x240"]);
    let mut daemon = TestDaemon::started_on(&desktop);
    let ids = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| daemon.import(&[&plain(&daemon, name, color)])[0]);
    let items = ids.map(|id| json!({ "image_id": id }));
    let body = json!({
        "name": "slow", "configuration": { "type": "timer", "interval": INTERVAL }, "images": items,
    });
    let id = daemon.client().post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    let mut events = daemon.events("playlist_image_changed");
    daemon
        .client()
        .post(&format!("/playlists/{id}/start"), &json!({}))
        .ok();
    events.wait_for("playlist_image_changed");
    let within = |left: SignedDuration| {
        assert!(
            left > SignedDuration::ZERO,
            "{left:#}: it should have changed"
        );
        assert!(
            left <= SignedDuration::from_secs(INTERVAL + 1),
            "{left:#}: it hangs"
        );
    };
    within(next_change(&daemon));
    assert_eq!(daemon.stop(), Some(0));
    // Ten days forward, and back again.
    for seconds in [864_000, 0] {
        start_later(&mut daemon, seconds);
        let bystander = Bystander::beside(&daemon, Some(ids[0]));
        let mut events = daemon.events("playlist_image_changed");
        daemon
            .client()
            .post(&format!("/playlists/{id}/next"), &json!({}))
            .ok();
        events.wait_for("playlist_image_changed");
        within(next_change(&daemon));
        bystander.end("a jump of the clock");
        assert_eq!(daemon.stop(), Some(0));
    }
    daemon.start();
    within(next_change(&daemon));
}
