//! What a request for a wallpaper is answered, held against what is to be seen.

use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::scene::{BLUE, GREEN, RED, see, set, three};
use crate::support::House;

/// Without what is not there.
fn names(answer: &Value, field: &str) -> Vec<String> {
    let list = answer[field].as_array().into_iter().flatten();
    list.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn monitors_that_are_not_connected_are_skipped_and_named() {
    let desktop = Desktop::x11(&["2"]);
    let house = House::started_on(&desktop);
    let [red, green, blue] = three(&house);
    let mut events = house.events("wallpaper_changed");
    let wanted = ["DP-8", "VIRTUAL-2", "DP-9"];
    let body = json!({ "image_id": red, "monitors": wanted });
    let answer = house.client().post("/wallpaper/set", &body).ok();
    assert_eq!(names(&answer, "skipped"), ["DP-8", "DP-9"]);
    assert_eq!(names(&answer, "monitors"), ["VIRTUAL-2"]);
    assert_eq!(answer["monitor"], "VIRTUAL-2");
    assert_eq!(names(&events.wait_for("wallpaper_changed"), "monitors"), ["VIRTUAL-2"]);
    let history = house.client().get("/images/history").ok();
    assert_eq!(names(&history[0], "monitors"), ["VIRTUAL-2"]);
    see(&desktop, &house, "VIRTUAL-2", RED);
    // Without any that is connected nothing happens.
    let body = json!({ "image_id": green, "monitors": ["DP-8", "DP-9"] });
    let failed = house.client().post("/wallpaper/set", &body);
    failed.fails(400);
    let text = failed.text();
    assert!(text.contains("DP-8, DP-9") && text.contains("VIRTUAL-1, VIRTUAL-2"), "{text}");
    set(&house, green, "DP-9").fails(400);
    see(&desktop, &house, "VIRTUAL-2", RED);
    // Individually each of several has the picture.
    let all = json!({ "image_id": blue, "monitors": ["VIRTUAL-1", "VIRTUAL-2"] });
    let answer = house.client().post("/wallpaper/set", &all).ok();
    assert_eq!(answer.get("skipped"), None);
    assert_eq!(answer["mode"], "individual");
    see(&desktop, &house, "VIRTUAL-1", BLUE);
    see(&desktop, &house, "VIRTUAL-2", BLUE);
    set(&house, green, "VIRTUAL-1").ok();
    see(&desktop, &house, "VIRTUAL-1", GREEN);
    see(&desktop, &house, "VIRTUAL-2", BLUE);
}
