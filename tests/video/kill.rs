//! Kills the daemon with `kill -9` at random moments while a loop replaces its video: after the
//! next start, the image must be either the old or the new one, complete, and no other files may be
//! left.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use murald::internals::digest;
use murald::internals::store::{self, Store, edits, pending_files};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::desktop::{wait_for, wait_until};
use crate::support::TestDaemon;
use crate::support::client::Client;
use crate::support::kills::{self, kills};
use crate::video::{H264, files, image, make, probe};

/// The duration of a frame in seconds.
const FRAME: f64 = 1.0 / 30.0;

#[test]
fn killed_replacement_leaves_the_video_or_its_loop() {
    let rounds = kills::rounds();
    let mut daemon = TestDaemon::started();
    // Every loop is one frame shorter, so it differs from the earlier ones.
    let source = format!("testsrc2=s=64x64:r=30:d={}", 3 + rounds / 30);
    let id = daemon.import(&[&make(&daemon, "video.mp4", &source, H264)])[0];
    let begun = Instant::now();
    replace(&daemon.client(), &image(&daemon, id));
    let whole = begun.elapsed();
    let mut replaced = 0;
    kills(|round| {
        let before = image(&daemon, id);
        kill_at(
            &mut daemon,
            &before,
            round,
            (round + 1 < rounds).then_some(whole),
        );
        daemon.start();
        let after = settled(&daemon, id, round);
        check(&after, round);
        let shorter = before["duration"].as_f64().unwrap() - after["duration"].as_f64().unwrap();
        assert!(
            shorter.abs() < 0.01 || (shorter - FRAME).abs() < 0.01,
            "{round}: {shorter} s"
        );
        replaced += u32::from(before["checksum"] != after["checksum"]);
        if after["name"] != "video" {
            // The daemon was killed before the name was restored.
            daemon
                .client()
                .patch(&format!("/images/{id}"), &json!({ "name": "video" }))
                .ok();
        }
        before["checksum"] == after["checksum"]
    });
    assert!(replaced > 0, "no kill came after the loop");
    replace(&daemon.client(), &image(&daemon, id));
}

/// Kills the daemon at any moment of a replacement, and in every other round while the loop is
/// being renamed; after the replacement if `whole`, the duration of one, is not given.
fn kill_at(daemon: &mut TestDaemon, image: &Value, round: u32, whole: Option<Duration>) {
    let (client, video) = (daemon.client(), image.clone());
    let asked = thread::spawn(move || {
        // The request fails, as the connection breaks.
        std::panic::catch_unwind(|| replace(&client, &video)).err();
    });
    // A random moment is what is tested, so there is nothing else to wait for.
    match whole {
        None => wait_until("the answer", || asked.is_finished()),
        Some(whole) if round.is_multiple_of(2) => {
            thread::sleep(kills::instant(round, whole));
        }
        Some(_) => {
            let lands = |name: &String| name.starts_with("video_1");
            wait_until("it lands", || {
                asked.is_finished() || files(daemon).iter().any(lands)
            });
            thread::sleep(kills::instant(round, Duration::from_millis(12)));
        }
    }
    daemon.kill9();
    asked.join().unwrap();
}

/// The files and records that belong to the image.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    files: Vec<String>,
    thumbnails: Vec<String>,
    pending: usize,
    renames: usize,
}

/// The library is cleaned up in the background: waits until nothing is left over.
fn settled(daemon: &TestDaemon, id: i64, round: u32) -> Value {
    let store = Store::open(&daemon.database()).unwrap();
    wait_for(&format!("round {round}: nothing left over"), || {
        let image = image(daemon, id);
        let name = Path::new(image["path"].as_str().unwrap())
            .file_name()
            .unwrap();
        let hex = image["checksum"]
            .as_str()
            .unwrap()
            .trim_start_matches("sha256:");
        let whole = Left {
            files: vec![name.to_str().unwrap().to_owned()],
            thumbnails: vec![format!("{hex}.webp")],
            pending: 0,
            renames: 0,
        };
        let left = left(daemon, &store);
        if left == whole {
            Ok(image)
        } else {
            Err(format!("{left:?}, not {whole:?}"))
        }
    })
}

fn left(daemon: &TestDaemon, store: &Store) -> Left {
    let thumbnails = fs::read_dir(daemon.root().join("cache/murald/thumbnails/default")).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let pending: Vec<_> = store.read(pending_files::list).unwrap();
    let renames = store
        .read(edits::renames)
        .map_err(|error: store::Error| error)
        .unwrap();
    Left {
        files: files(daemon),
        thumbnails: thumbnails.map(name).collect(),
        pending: pending.len(),
        renames: renames.len(),
    }
}

fn check(image: &Value, round: u32) {
    let path = Path::new(image["path"].as_str().unwrap());
    let content = fs::read(path).unwrap();
    let checksum = format!("sha256:{}", digest::hex(&Sha256::digest(&content)));
    assert_eq!(image["checksum"], checksum, "round {round}");
    assert_eq!(image["file_size"], content.len(), "round {round}");
    let duration: f64 = probe(path, "format=duration").parse().unwrap();
    assert!(
        (image["duration"].as_f64().unwrap() - duration).abs() < 0.001,
        "round {round}"
    );
}

/// Replaces a video by a loop of all but its last frame.
fn replace(client: &Client, image: &Value) {
    let out = image["duration"].as_f64().unwrap() - FRAME;
    let body = json!({ "in_seconds": 0, "out_seconds": out, "preset": "mp4_h264",
        "action": "replace" });
    client
        .post(&format!("/images/{}/video-loop-export", image["id"]), &body)
        .ok();
}
