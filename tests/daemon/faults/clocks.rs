//! Clocks that jump while the daemon is away, as they do over a hibernation and on a machine that was
//! moved: in a time namespace the time since the start of the machine is another one.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::plain;
use crate::desktop::Desktop;
use crate::support::bystander::Bystander;
use crate::support::{House, left_out};

const INTERVAL: i64 = 3600;

/// Starts it where the machine has run for so many seconds more; false where that is not allowed.
fn start_later(house: &mut House, seconds: i64) -> bool {
    let unshare = |house: &House| {
        let mut command = house.command("unshare");
        let offset = seconds.to_string();
        let spaces = ["--user", "--map-root-user", "--time"];
        command.args(spaces).args(["--boottime", &offset, "--monotonic", &offset]);
        command
    };
    if !unshare(house).arg("true").output().is_ok_and(|output| output.status.success()) {
        return false;
    }
    let mut command = unshare(house);
    command.arg(env!("CARGO_BIN_EXE_murald")).arg("start");
    house.start_by(command);
    true
}

/// When the running playlist changes, from now.
#[track_caller]
fn next_change(house: &House) -> SignedDuration {
    let active = house.client().get("/playlists/active").ok();
    let at: Timestamp = active[0]["next_change_at"].as_str().unwrap().parse().unwrap();
    at.duration_since(Timestamp::now())
}

#[test]
fn playlists_keep_their_pace_over_jumps_of_the_time_since_the_start() {
    let desktop = Desktop::wayland(&["320x240"]);
    let mut house = House::started_on(&desktop);
    let ids = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| house.import(&[&plain(&house, name, color)])[0]);
    let items = ids.map(|id| json!({ "image_id": id }));
    let body = json!({
        "name": "slow", "configuration": { "type": "timer", "interval": INTERVAL }, "images": items,
    });
    let id = house.client().post("/playlists", &body).ok()["id"].as_i64().unwrap();
    let mut events = house.events("playlist_image_changed");
    house.client().post(&format!("/playlists/{id}/start"), &json!({})).ok();
    events.wait_for("playlist_image_changed");
    let within = |left: SignedDuration| {
        assert!(left > SignedDuration::ZERO, "{left:#}: it should have changed");
        assert!(left <= SignedDuration::from_secs(INTERVAL + 1), "{left:#}: it hangs");
    };
    within(next_change(&house));
    assert_eq!(house.stop(), Some(0));
    // Ten days on, and ten days back.
    for seconds in [864_000, 0] {
        if !start_later(&mut house, seconds) {
            return left_out("jumps of the clock", "time namespaces are not allowed");
        }
        let bystander = Bystander::beside(&house, Some(ids[0]));
        let mut events = house.events("playlist_image_changed");
        house.client().post(&format!("/playlists/{id}/next"), &json!({})).ok();
        events.wait_for("playlist_image_changed");
        within(next_change(&house));
        bystander.end("a jump of the clock");
        assert_eq!(house.stop(), Some(0));
    }
    house.start();
    within(next_change(&house));
}
