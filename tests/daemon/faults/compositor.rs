//! Tests that the compositor may die during changes, imports and a running playlist.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::{Value, json};

use super::plain;
use crate::desktop::{Desktop, SetOnDrop, wait_until};
use crate::support::TestDaemon;
use crate::support::bystander::Bystander;

const DEATHS: u32 = 2;

#[test]
fn restarted_compositor_gets_its_wallpapers_back() {
    let mut desktop = Desktop::wayland(&["320x240", "320x240"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"builtin\"\n");
    daemon.start();
    let [red, green] = [("red.png", [200, 30, 30]), ("green.png", [30, 180, 60])]
        .map(|(name, color)| daemon.import(&[&plain(&daemon, name, color)])[0]);
    let items = [red, green].map(|id| json!({ "image_id": id }));
    let timer = json!({ "type": "timer", "interval": 1 });
    let body = json!({ "name": "quick", "configuration": timer, "images": items });
    let list = daemon.client().post("/playlists", &body).ok()["id"]
        .as_i64()
        .unwrap();
    let start = json!({ "monitors": ["HEADLESS-2"] });
    daemon
        .client()
        .post(&format!("/playlists/{list}/start"), &start)
        .ok();
    let bystander = Bystander::beside(&daemon, Some(red));
    let (over, changes, imports) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let _over = SetOnDrop(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let image = [red, green][changes.load(Ordering::Relaxed) as usize % 2];
                let body = json!({ "image_id": image, "monitor": "HEADLESS-1" });
                let answer = daemon.client().post("/wallpaper/set", &body);
                // The request may fail because there is no output.
                assert!(
                    [200, 400, 404, 500, 503].contains(&answer.status),
                    "{}",
                    answer.text()
                );
                changes.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let number = imports.fetch_add(1, Ordering::Relaxed);
                let color = [number as u8, (number >> 8) as u8, 77];
                daemon.import(&[&plain(&daemon, &format!("{number}.png"), color)]);
            }
        });
        for _ in 0..DEATHS {
            let (changed, imported) = (
                changes.load(Ordering::Relaxed),
                imports.load(Ordering::Relaxed),
            );
            wait_until("that all of it goes on", || {
                changes.load(Ordering::Relaxed) > changed + 1
                    && imports.load(Ordering::Relaxed) > imported + 1
            });
            desktop.again();
        }
    });
    wait_until("both monitors", || {
        daemon
            .client()
            .get("/monitors")
            .ok()
            .as_array()
            .unwrap()
            .len()
            == 2
    });
    let set = json!({ "image_id": green, "monitor": "HEADLESS-1" });
    wait_until("the picture", || {
        daemon.client().post("/wallpaper/set", &set).status == 200
    });
    bystander.end("a compositor that dies");
    let png = daemon.root().join("shot.png");
    wait_until("its pixels", || {
        desktop.shot(&png, "HEADLESS-1");
        let seen = image::open(&png).unwrap().into_rgb8().get_pixel(160, 120).0;
        seen.iter()
            .zip([30, 180, 60])
            .all(|(one, other): (&u8, u8)| one.abs_diff(other) <= 4)
    });
    // The playlist continues, too.
    let mut events = daemon.events("playlist_image_changed");
    let event: Value = events.wait_for("playlist_image_changed");
    assert_eq!(event["monitors"], json!(["HEADLESS-2"]));
    let images = daemon.client().get("/images?per_page=1").ok();
    assert_eq!(
        images["pagination"]["total_items"],
        2 + imports.load(Ordering::Relaxed)
    );
    daemon.ends_well();
}
