//! A disk that does not answer blocks only those who read from it.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Walls, checksum, picture};
use crate::desktop::{Desktop, wait_until};
use crate::support::dead_disk::DeadDisk;
use crate::support::left_out;

#[test]
fn import_from_a_disk_that_does_not_answer_delays_nothing_else() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut walls = Walls::prepared_on(&desktop, &[("a.png", 1), ("b.png", 2)]);
    walls.daemon.env("MURALD_DECODER_SILENCE", "6000");
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    let dying = walls.daemon.root().join("dying");
    fs::create_dir(&dying).unwrap();
    let lost: Vec<_> = (20..40)
        .map(|number| dying.join(format!("{number}.png")))
        .collect();
    for (file, number) in lost.iter().zip(20..) {
        fs::write(file, picture(number)).unwrap();
    }
    // The first of them lands or waits to land when the disk dies.
    let client = walls.daemon.client();
    client.post("/images", &json!({ "paths": lost })).ok();
    let Some(_dead) = DeadDisk::mount(&dying) else {
        return left_out("a source on a dead disk", "this user may not mount");
    };
    let ask = |route: &str, body: Value| {
        let body = body.to_string();
        client.ask("POST", route, "", body.as_bytes()).unwrap()
    };
    let asked = [
        ask("/wallpaper/set", json!({ "path": lost[19] })),
        ask("/images", json!({ "paths": [lost[18]] })),
    ];
    let mut longest = Duration::ZERO;
    for (name, number) in [("a.png", 1), ("b.png", 2), ("a.png", 1), ("b.png", 2)] {
        let begun = Instant::now();
        let set = json!({ "image_id": walls.id(name) });
        assert_eq!(client.post("/wallpaper/set", &set).status, 200, "{number}");
        longest = longest.max(begun.elapsed());
    }
    // The first files wait until their decoders are killed, all others of the disk fail at once.
    walls.draw("c.png", 3);
    wait_until("the other directory", || {
        walls.images().contains_key("c.png")
    });
    assert!(longest < Duration::from_secs(15), "{longest:?}");
    for asked in asked {
        let answer = asked.answer().unwrap();
        assert_eq!(answer.status, 503, "{}", answer.text());
    }
    let begun = Instant::now();
    walls.daemon.ends_well();
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn disk_that_does_not_answer_blocks_no_request() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut walls = Walls::prepared_on(&desktop, &[("a.png", 1), ("b.png", 2)]);
    walls.daemon.start();
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    let own = walls.daemon.root().join("own.png");
    fs::write(&own, picture(9)).unwrap();
    let (mine, one, other) = (
        walls.daemon.import(&[&own])[0],
        walls.id("a.png"),
        walls.id("b.png"),
    );
    let client = walls.daemon.client();
    let set = |id: i64| client.post("/wallpaper/set", &json!({ "image_id": id }));
    set(one).ok();
    let Some(dead) = DeadDisk::mount(&walls.directory) else {
        return left_out("a disk that does not answer", "this user may not mount");
    };
    // All of these need the disk, and must be answered nevertheless.
    let begun = Instant::now();
    assert_eq!(set(other).status, 404);
    assert_eq!(client.get(&format!("/images/{other}/raw")).status, 503);
    let thumbnail = client.get(&format!("/images/{other}/thumbnail")).status;
    assert!(
        [200, 503].contains(&thumbnail),
        "{thumbnail}: it may have been made before"
    );
    let purged = client.post("/library/purge-missing", &json!({}));
    assert_eq!(purged.ok(), json!({ "purged": 0 }));
    assert_eq!(client.post("/library/scan", &json!({})).status, 202);
    set(mine).ok();
    assert_eq!(client.get("/images").ok()["pagination"]["total_items"], 3);
    // Long, because the machine may be busy; a request that hangs would never end.
    assert!(
        begun.elapsed() < Duration::from_secs(50),
        "{:?}",
        begun.elapsed()
    );
    drop(dead);
    walls.wait_for_state("watched");
    wait_until("the disk's pictures", || set(other).status == 200);
    let images = walls.images();
    assert_eq!(images["a.png"]["checksum"], json!(checksum(1)));
    assert_eq!((walls.id("a.png"), walls.id("b.png")), (one, other));
}
