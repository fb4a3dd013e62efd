//! A disk that does not answer blocks only those who read from it.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Walls, checksum, picture};
use crate::desktop::{Desktop, wait_until};
use crate::support::dead_disk::DeadDisk;
use crate::support::left_out;

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
