//! Tests outputs that are off while their wallpaper changes: the old one stays until the new one is
//! visible.

use std::path::Path;

use serde_json::json;

use crate::desktop::wait_until;
use crate::hangs::recorded;
use crate::hosted::{Hosted, videos};

#[test]
fn still_stays_until_the_video_that_replaces_it_is_visible() {
    let mut hosted = Hosted::with("mpvpaper", &["mpvpaper"], &["640x480"], "", &[]);
    let image = json!({ "image": ["swaybg"] });
    let auto = json!({ "backend": { "selection_mode": "auto", "auto_priorities": image } });
    hosted.daemon.client().patch("/config", &auto).ok();
    let [video, other] = videos(&hosted);
    let still = hosted.picture("one.png");
    hosted.set(&json!({ "image_id": still }));
    let swaybg = format!("/proc/{}", recorded(&hosted, "swaybg-1.json"));
    hosted.cue("mpvpaper", "dark");
    for image in [video, other] {
        let body = json!({ "image_id": image });
        let answer = hosted.daemon.client().post("/wallpaper/set", &body).ok();
        let warning = answer["warnings"][0].as_str().unwrap();
        assert!(warning.contains("stays until then"), "{warning}");
        assert!(Path::new(&swaybg).exists());
    }
    // The next daemon does not know more before it has asked.
    assert_eq!(hosted.daemon.stop(), Some(0));
    hosted.daemon.start();
    hosted
        .daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": video }))
        .ok();
    assert!(Path::new(&swaybg).exists());
    hosted.cue("mpvpaper", "");
    wait_until("the still to go", || !Path::new(&swaybg).exists());
    let current = hosted.daemon.client().get("/wallpaper/current").ok();
    assert_eq!(current["image_id"], video);
}

/// swaybg is one process for all outputs, so a change on one output creates surfaces on the others.
#[test]
fn waiting_video_stays_above_the_still() {
    let outputs = ["640x480", "640x480"];
    let hosted = Hosted::with("mpvpaper", &["mpvpaper"], &outputs, "", &[]);
    let image = json!({ "image": ["swaybg"] });
    let auto = json!({ "backend": { "selection_mode": "auto", "auto_priorities": image } });
    hosted.daemon.client().patch("/config", &auto).ok();
    let [video, _] = videos(&hosted);
    let (still, other) = (hosted.picture("one.png"), hosted.picture("two.png"));
    hosted.set(&json!({ "image_id": still }));
    let swaybg = format!("/proc/{}", recorded(&hosted, "swaybg-1.json"));
    hosted.cue("mpvpaper", "dark HEADLESS-2");
    hosted.set(&json!({ "image_id": video }));
    assert!(
        Path::new(&swaybg).exists(),
        "it was begun anew for HEADLESS-2"
    );
    let waits = format!("/proc/{}", recorded(&hosted, "mpvpaper@HEADLESS-2-1.json"));
    hosted.set(&json!({ "image_id": other, "monitor": "HEADLESS-1" }));
    assert!(!Path::new(&swaybg).exists());
    hosted.cue("mpvpaper", "");
    wait_until("the video above it", || !Path::new(&waits).exists());
    assert_eq!(hosted.starts("mpvpaper"), 3);
}
