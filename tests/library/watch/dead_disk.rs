//! A disk that does not answer: whoever looks at it hangs, and nobody else does.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Walls, checksum, picture};
use crate::desktop::{Desktop, wait_until};
use crate::support::left_out;

/// A file system that nobody serves over a directory: each look at what is in it waits for ever.
struct DeadDisk {
    at: PathBuf,
    holder: Child,
}

impl DeadDisk {
    /// None where this user may not mount.
    fn over(at: &Path) -> Option<Self> {
        let script = "exec 3<>/dev/fuse && \
                      mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 dead \"$0\" && \
                      echo mounted && exec cat";
        let mut holder = Command::new("sh")
            .args(["-c", script])
            .arg(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line != "mounted\n" {
            holder.wait().unwrap();
            return None;
        }
        Some(Self { at: at.to_owned(), holder })
    }
}

impl Drop for DeadDisk {
    fn drop(&mut self) {
        // Whoever waits for it is told that it is gone.
        self.holder.kill().ok();
        self.holder.wait().ok();
        Command::new("umount").arg("-l").arg(&self.at).output().ok();
    }
}

#[test]
fn disk_that_does_not_answer_holds_nobody_up() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut walls = Walls::prepared_on(&desktop, &[("a.png", 1), ("b.png", 2)]);
    walls.house.start();
    walls.wait_for(&[("a.png", 1), ("b.png", 2)]);
    let own = walls.house.root().join("own.png");
    fs::write(&own, picture(9)).unwrap();
    let (mine, one, other) = (walls.house.import(&[&own])[0], walls.id("a.png"), walls.id("b.png"));
    let client = walls.house.client();
    let set = |id: i64| client.post("/wallpaper/set", &json!({ "image_id": id }));
    set(one).ok();
    let Some(dead) = DeadDisk::over(&walls.directory) else {
        return left_out("a disk that does not answer", "this user may not mount");
    };
    // All of this touches the disk, and each is answered.
    let begun = Instant::now();
    assert_eq!(set(other).status, 404);
    assert_eq!(client.get(&format!("/images/{other}/raw")).status, 503);
    let thumbnail = client.get(&format!("/images/{other}/thumbnail")).status;
    assert!([200, 503].contains(&thumbnail), "{thumbnail}: it may have been made before");
    let told = client.post("/library/purge-missing", &json!({})).fails(503).to_string();
    assert!(told.contains("does not answer"), "{told}");
    assert_eq!(client.post("/library/scan", &json!({})).status, 202);
    set(mine).ok();
    assert_eq!(client.get("/images").ok()["pagination"]["total_items"], 3);
    // On a machine that is busy it may take longer; what hangs never ends.
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    drop(dead);
    walls.wait_for_state("watched");
    wait_until("its pictures", || set(other).status == 200);
    let images = walls.images();
    assert_eq!(images["a.png"]["checksum"], json!(checksum(1)));
    assert_eq!((walls.id("a.png"), walls.id("b.png")), (one, other));
}
