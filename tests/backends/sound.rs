//! Tests the sound of videos: changed while they play, and stored with the assignment.

use std::fs;

use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::hosted::{Hosted, videos};
use crate::rest::{mpv, sockets};

fn sound_of(hosted: &Hosted, output: &str) -> [Value; 3] {
    let sockets = sockets(hosted).into_iter();
    let its = sockets
        .filter(|path| path.to_str().unwrap().contains(output))
        .collect::<Vec<_>>();
    let [socket] = &its[..] else {
        panic!("{its:?}")
    };
    ["aid", "mute", "volume"].map(|name| mpv(socket, &json!(["get_property", name])))
}

/// Muted and volume of each monitor.
fn current(hosted: &Hosted) -> Value {
    let current = hosted.daemon.client().get("/wallpaper/current").ok();
    let monitors = current["monitors"].as_array().unwrap().iter();
    monitors
        .map(|one| json!([one["muted"], one["volume"]]))
        .collect()
}

#[test]
fn sound_changes_as_videos_play_and_is_kept_with_each() {
    let mut hosted = Hosted::with("mpvpaper", &["mpvpaper"], &["640x480", "640x480"], "", &[]);
    let client = hosted.daemon.client();
    let sound = |body: Value| client.post("/wallpaper/sound", &body);
    let [video, other] = videos(&hosted);
    let refused = sound(json!({ "muted": true })).fails(409);
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("HEADLESS-1 shows no video"),
        "{refused}"
    );
    hosted.set(&json!({ "image_id": video }));
    assert_eq!(current(&hosted), json!([[true, null], [true, null]]));
    let playing = sockets(&hosted);
    // Sway 1.10 lists its outputs the other way round than 1.7.
    let all = client.get("/monitors").ok();
    let all: Value = all
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    let answer = sound(json!({ "muted": false, "volume": 30 })).ok();
    let expected = json!({ "status": "set", "monitors": all, "muted": false, "volume": 30 });
    assert_eq!(answer, expected);
    for output in ["HEADLESS-1", "HEADLESS-2"] {
        assert_eq!(
            sound_of(&hosted, output),
            [json!(1), json!(false), json!(30)]
        );
    }
    let muted = hosted
        .daemon
        .murald(&["mute", "--monitor", "HEADLESS-2"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&muted.stdout),
        "HEADLESS-2: volume 30, muted\n"
    );
    assert_eq!(
        sound_of(&hosted, "HEADLESS-2"),
        [json!(1), json!(true), json!(30)]
    );
    let each = json!([[false, 30], [true, 30]]);
    assert_eq!(current(&hosted), each);
    for (body, status) in [
        (json!({ "volume": 101 }), 400),
        (json!({}), 400),
        (json!({ "muted": true, "monitors": ["DP-9"] }), 400),
    ] {
        sound(body).fails(status);
    }
    // Another daemon uses the same processes, and a lost process starts with its sound.
    hosted.daemon.kill9();
    hosted.daemon.start();
    hosted.set(&json!({ "image_id": hosted.picture("one.png") , "default": true }));
    assert_eq!(
        (current(&hosted), sockets(&hosted)),
        (each.clone(), playing.clone())
    );
    let process = crate::hangs::recorded(&hosted, "mpvpaper@HEADLESS-2-1.json");
    hosted.desktop.output("kill", &["-9", &process]);
    let is_back = || hosted.starts("mpvpaper") == 3 && sockets(&hosted).len() == 2;
    wait_until("another process", is_back);
    assert_eq!(
        sound_of(&hosted, "HEADLESS-2"),
        [json!(false), json!(false), json!(30.0)]
    );
    assert_eq!(current(&hosted), each);
    // Settings of one video do not apply to the next.
    hosted.set(&json!({ "image_id": other }));
    assert_eq!(current(&hosted), json!([[true, null], [true, null]]));
    wait_until("the old processes to end", || sockets(&hosted).len() == 2);
    for output in ["HEADLESS-1", "HEADLESS-2"] {
        assert_eq!(
            sound_of(&hosted, output),
            [json!(false), json!(false), json!(100.0)]
        );
    }
    // Either all named videos are changed, or none.
    fs::write(hosted.notes.join("cue-mpvpaper"), "mute HEADLESS-2").unwrap();
    let refused = sound(json!({ "volume": 3, "monitors": all })).fails(409);
    assert_eq!(sound_of(&hosted, "HEADLESS-1")[2], json!(100.0));
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("no audio track"),
        "{refused}"
    );
}
