//! Tests backends that fail to replace another: the old picture stays, however long that takes.

use serde_json::json;

use crate::desktop::wait_until;
use crate::frames::Watcher;
use crate::hosted::Hosted;
use crate::wall::near;

#[test]
fn picture_stays_while_the_configured_backend_does_not_start() {
    let hosted = Hosted::with("swaybg", &["awww", "awww-daemon"], &["640x480"], "", &[]);
    hosted.set(&json!({ "image_id": hosted.picture("one.png") }));
    let watcher = Watcher::start(&hosted.desktop, "HEADLESS-1");
    let color = watcher.latest();
    let types = "wallpaper_restore_failed,backend_unavailable,wallpaper_changed";
    let mut events = hosted.daemon.events(types);
    hosted.cue("awww-daemon", "die");
    let client = hosted.daemon.client();
    client
        .patch("/config", &json!({ "backend": { "type": "awww" } }))
        .ok();
    assert_eq!(events.wait_for("backend_unavailable")["backend"], "awww");
    // The picture stays during the retries, and during other changes.
    client
        .patch(
            "/config",
            &json!({ "backend": { "awww": { "resize": "fit" } } }),
        )
        .ok();
    wait_until("the third try", || hosted.starts("awww-daemon") >= 3);
    let frames = watcher.finish();
    let other = frames.iter().find(|&&seen| !near(seen, color));
    assert_eq!(other, None, "{color:?} was there: {frames:?}");
    assert_eq!(
        client.get("/wallpaper/current").ok()["monitors"][0]["backend"],
        "swaybg"
    );
    // Once awww starts, it replaces swaybg.
    hosted.cue("awww-daemon", "");
    assert_eq!(events.wait_for("wallpaper_changed")["backend"], "awww");
}
