//! Tests which monitors a request means, in every form that clients use.

use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::scene::{BLUE, GREEN, RED, see, set, three};
use crate::support::TestDaemon;

#[test]
fn list_overrides_a_star_and_an_unknown_monitor_changes_nothing() {
    let desktop = Desktop::x11(&["2"]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, blue] = three(&daemon);
    let client = daemon.client();
    let ask = |body: Value| client.post("/wallpaper/set", &body);
    // Nothing is shown yet, but the backend that would show it is known.
    let current = client.get("/wallpaper/current").ok();
    assert_eq!(current, json!({ "backend": "feh", "monitors": [] }));
    let all = ask(json!({ "image_id": red, "monitor": "*", "monitors": [] })).ok();
    assert_eq!(all["monitor"], "*");
    let list = json!({ "image_id": green, "monitor": "*", "monitors": ["VIRTUAL-2"] });
    assert_eq!(ask(list).ok()["monitors"], json!(["VIRTUAL-2"]));
    see(&desktop, &daemon, "VIRTUAL-1", RED);
    see(&desktop, &daemon, "VIRTUAL-2", GREEN);
    let same = json!({ "image_id": blue, "monitor": "VIRTUAL-2", "monitors": ["VIRTUAL-2"] });
    assert_eq!(ask(same).ok()["monitor"], "VIRTUAL-2");
    see(&desktop, &daemon, "VIRTUAL-2", BLUE);

    for (path, body, says) in [
        (
            "set",
            json!({ "image_id": red, "monitor": "VIRTUAL-1", "monitors": ["VIRTUAL-2"] }),
            "contradict",
        ),
        (
            "set",
            json!({ "image_id": green, "moniter": "VIRTUAL-2" }),
            "unknown field `moniter`: did you mean monitor?",
        ),
        (
            "random",
            json!({ "monitr": "VIRTUAL-2" }),
            "unknown field `monitr`: did you mean monitor?",
        ),
        (
            "random",
            json!({ "filter": { "folder_id": 999 } }),
            "filter.folder_id: no folder with ID 999",
        ),
        (
            "random",
            json!({ "monitors": "VIRTUAL-2" }),
            "monitors: invalid type: string",
        ),
        (
            "random",
            json!({ "monitors": ["DP-9"] }),
            "VIRTUAL-1, VIRTUAL-2",
        ),
    ] {
        let refused = client
            .post(&format!("/wallpaper/{path}"), &body)
            .fails(400)
            .to_string();
        assert!(refused.contains(says), "{body}: {refused}");
    }
    // A random picture on one monitor; the other keeps its own.
    for _ in 0..4 {
        let before = client.get("/wallpaper/current").ok()["monitors"][1]["image_id"].clone();
        let shown = client
            .post("/wallpaper/random", &json!({ "monitors": ["VIRTUAL-2"] }))
            .ok();
        assert_eq!(shown["monitors"], json!(["VIRTUAL-2"]));
        assert_ne!(shown["image_id"], before, "another than is shown now");
        let current = client.get("/wallpaper/current").ok();
        assert_eq!(current["monitors"][0]["image_id"], red);
        assert_eq!(current["monitors"][1]["image_id"], shown["image_id"]);
    }
    set(&daemon, green, "*").ok();
    see(&desktop, &daemon, "VIRTUAL-1", GREEN);
    see(&desktop, &daemon, "VIRTUAL-2", GREEN);
}
