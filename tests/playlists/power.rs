//! Rest: while the session is locked or idle nothing changes by itself, where the settings say so.

use serde_json::{Value, json};

use super::{active, house, make, see, start};
use crate::desktop::Desktop;
use crate::support::House;

fn told(house: &House, state: &str) -> Value {
    let output = house.murald(&["power", state, "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn playlists_rest_while_locked_or_idle_as_the_settings_say() {
    let desktop = Desktop::wayland(&["640x360"]);
    let (mut house, all) = house(&desktop, 3);
    let hour = json!({ "type": "timer", "interval": 3600 });
    let id = make(&house, "sea", hour, &all);
    start(&house, id, &["HEADLESS-1"]);
    see(&desktop, "HEADLESS-1", 0);
    let resting = |house: &House| {
        let one = active(house).remove(0);
        (one["resting"].clone(), one["next_change_at"].is_null())
    };
    // The settings do not want it.
    assert_eq!(told(&house, "locked"), json!({ "locked": true, "idle": false, "resting": null }));
    assert_eq!(resting(&house), (Value::Null, false));
    let power = |body| house.client().patch("/config/power", &body).ok();
    power(json!({ "pause_when_idle": true }));
    assert_eq!(resting(&house), (Value::Null, false));
    assert_eq!(told(&house, "idle")["resting"], "idle");
    assert_eq!(resting(&house), (json!("idle"), true));
    power(json!({ "pause_when_locked": true }));
    assert_eq!(resting(&house), (json!("locked"), true));
    let rows = house.murald(&["playlist", "active"]).output().unwrap();
    assert!(String::from_utf8(rows.stdout).unwrap().contains("\tresting\t"));
    // By hand it goes on, and rests on.
    house.client().post("/playlists/active/next", &json!({})).ok();
    see(&desktop, "HEADLESS-1", 1);
    assert_eq!(resting(&house), (json!("locked"), true));
    told(&house, "unlocked");
    assert_eq!(resting(&house), (json!("idle"), true));
    assert_eq!(told(&house, "active"), json!({ "locked": false, "idle": false, "resting": null }));
    assert_eq!(resting(&house), (Value::Null, false));
    // A kill in the middle of it: nobody is left to say that it is over.
    told(&house, "locked");
    house.kill9();
    house.start();
    assert_eq!(resting(&house), (Value::Null, false));
    assert_eq!(house.client().send("PUT", "/power", "", b"{}").status, 400);
    assert_eq!(house.client().patch("/config/power", &json!({ "pause_when_idle": 1 })).status, 400);
}
