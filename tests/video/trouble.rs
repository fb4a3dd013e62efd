//! Tests an ffmpeg that is missing, fails, hangs or is killed, and a shutdown while it runs: each
//! time, the client gets a plain error, and no unfinished files are left.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use murald::internals::sys::Cancel;
use murald::internals::transcode::{self, Ffmpeg, Limits};
use murald::internals::wire::Format;
use serde_json::{Value, json};

use crate::desktop::wait_until;
use crate::support::TestDaemon;
use crate::support::client::{Answer, Client};
use crate::video::{H264, files, image, make, real};

/// A source that takes long to encode as VP9.
const LONG: &str = "testsrc2=s=640x360:r=30:d=40";

/// A stub of ffmpeg that behaves as the file `mode` says: runs the real one, fails, is killed or
/// hangs.
const MOODY: &str = r#"#!/bin/sh
for last; do :; done
case $(cat "$HOME/mode" 2>/dev/null) in
fail) echo "the disk is on fire" >&2; exit 1 ;;
half) echo half >"${last#file:}"; kill -9 $$ ;;
hang) echo half >"${last#file:}"; exec sleep 1000 ;;
esac
exec "$REAL_FFMPEG" "$@"
"#;

/// Starts a daemon with this video and the stub of ffmpeg.
fn daemon(source: &str) -> (TestDaemon, i64) {
    let mut daemon = TestDaemon::new();
    daemon.stub("ffmpeg", MOODY);
    daemon.env("REAL_FFMPEG", real("ffmpeg"));
    daemon.start();
    let id = daemon.import(&[&make(&daemon, "video.mp4", source, H264)])[0];
    (daemon, id)
}

fn mood(daemon: &TestDaemon, mode: &str) {
    fs::write(daemon.root().join("mode"), mode).unwrap();
}

fn body(action: &str) -> Value {
    // The durations differ, as the same loop is in the library only once.
    let out = if action == "replace" { 1.5 } else { 1.0 };
    json!({ "in_seconds": 0, "out_seconds": out, "preset": "mp4_h264", "action": action })
}

/// The actions that need ffmpeg, with their request bodies.
fn actions() -> [(&'static str, Value); 4] {
    [
        ("ensure-browser-preview", json!({})),
        ("extract-video-palette", json!({ "time_seconds": 1 })),
        ("video-loop-export", body("import_new")),
        ("video-loop-export", body("replace")),
    ]
}

/// Sends a request from another thread.
fn ask(daemon: &TestDaemon, id: i64, (action, body): (&str, Value)) -> JoinHandle<Answer> {
    let (socket, place) = (daemon.socket(), format!("/images/{id}/{action}"));
    thread::spawn(move || Client::new(&socket).post(&place, &body))
}

/// Returns the daemon's child processes with this name.
fn children(daemon: &TestDaemon, name: &str) -> Vec<u32> {
    let parent = daemon.pid().to_string();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            return false;
        };
        let Some((head, tail)) = stat.rsplit_once(") ") else {
            return false;
        };
        head.ends_with(&format!("({name}")) && tail.split(' ').nth(1) == Some(&parent)
    })
    .collect()
}

#[test]
fn actions_that_need_ffmpeg_are_refused_without_it() {
    let mut daemon = TestDaemon::started();
    let video = make(&daemon, "video.mp4", "testsrc2=s=64x64:d=2", H264);
    let id = daemon.import(&[&video])[0];
    daemon
        .client()
        .post(&format!("/images/{id}/ensure-browser-preview"), &json!({}))
        .ok();
    assert_eq!(
        daemon.client().get("/capabilities").ok()["transcoder_available"],
        true
    );
    assert_eq!(daemon.stop(), Some(0));
    daemon.only(&["sh"]);
    daemon.start();
    assert_eq!(
        daemon.client().get("/capabilities").ok()["transcoder_available"],
        false
    );
    // Existing previews and thumbnails need no ffmpeg.
    daemon
        .client()
        .post(&format!("/images/{id}/ensure-browser-preview"), &json!({}))
        .ok();
    assert_eq!(
        daemon
            .client()
            .get(&format!("/images/{id}/thumbnail"))
            .status,
        200
    );
    fs::remove_dir_all(daemon.root().join("cache/murald/thumbnails")).unwrap();
    for (action, body) in actions() {
        let failure = daemon
            .client()
            .post(&format!("/images/{id}/{action}"), &body)
            .fails(503);
        assert!(
            failure["error"].as_str().unwrap().contains("not installed"),
            "{failure}"
        );
    }
    let failure = daemon
        .client()
        .get(&format!("/images/{id}/thumbnail"))
        .fails(503);
    assert!(
        failure["details"]
            .as_str()
            .unwrap()
            .contains("not installed"),
        "{failure}"
    );
    let again = daemon.root().join("again.mp4");
    fs::copy(video, &again).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(&again)
        .unwrap()
        .set_len(5000)
        .unwrap();
    let mut events = daemon.events("image_error");
    daemon
        .client()
        .post("/images", &json!({ "paths": [again] }))
        .ok();
    let error = events.next().1["error"].clone();
    assert_eq!(error, "MP4 files need the transcoder (ffmpeg and ffprobe)");
    assert_eq!(files(&daemon), ["video.mp4"]);
}

#[test]
fn failure_of_ffmpeg_is_reported_without_leftovers() {
    let (daemon, id) = daemon("testsrc2=s=64x64:d=2");
    let before = image(&daemon, id);
    for (mode, says) in [("fail", "the disk is on fire"), ("half", "signal 9")] {
        mood(&daemon, mode);
        for (action, body) in actions() {
            let failure = daemon
                .client()
                .post(&format!("/images/{id}/{action}"), &body)
                .fails(500);
            assert!(
                failure["details"].as_str().unwrap().contains(says),
                "{failure}"
            );
            assert_eq!(files(&daemon), ["video.mp4"]);
            assert_eq!(image(&daemon, id), before);
        }
        let other = make(&daemon, "other.mkv", "testsrc2=s=64x64:d=1", H264);
        let mut events = daemon.events("image_error");
        daemon
            .client()
            .post("/images", &json!({ "paths": [other] }))
            .ok();
        let error = events.next().1["error"].as_str().unwrap().to_owned();
        assert_eq!(error, format!("ffmpeg failed: {says}"));
        assert_eq!(files(&daemon), ["video.mp4"]);
    }
    // Cancelling a batch kills its ffmpeg.
    mood(&daemon, "hang");
    let other = daemon.root().join("other.mkv");
    let batch = daemon
        .client()
        .post("/images", &json!({ "paths": [other] }))
        .ok();
    wait_until("ffmpeg hangs", || !children(&daemon, "sleep").is_empty());
    let began = Instant::now();
    let cancel = json!({ "batch_id": batch["batch_id"] });
    daemon.client().post("/images/cancel-import", &cancel).ok();
    wait_until("it is gone", || children(&daemon, "sleep").is_empty());
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "its own limit is 40 s"
    );
    mood(&daemon, "");
    for (action, body) in actions() {
        daemon
            .client()
            .post(&format!("/images/{id}/{action}"), &body)
            .ok();
    }
}

#[test]
fn export_can_be_repeated_after_ffmpeg_was_killed() {
    let (daemon, id) = daemon(LONG);
    let slow = json!({ "in_seconds": 0, "out_seconds": 40, "preset": "webm_vp9",
        "action": "replace" });
    let asked = ask(&daemon, id, ("video-loop-export", slow));
    wait_until("ffmpeg writes", || {
        files(&daemon).len() == 2 && !children(&daemon, "ffmpeg").is_empty()
    });
    for pid in children(&daemon, "ffmpeg") {
        Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status()
            .unwrap();
    }
    let failure = asked.join().unwrap().fails(500);
    assert!(
        failure["details"].as_str().unwrap().contains("signal 9"),
        "{failure}"
    );
    assert_eq!(files(&daemon), ["video.mp4"]);
    daemon
        .client()
        .post(&format!("/images/{id}/video-loop-export"), &body("replace"))
        .ok();
    assert_eq!(files(&daemon), ["video.mp4"]);
    assert!(daemon.log().contains("the loop of image 1 started"));
}

/// Stops the daemon with SIGTERM while a request waits for ffmpeg.
fn stop_during(mut daemon: TestDaemon, id: i64, request: (&str, Value), working: &str) {
    let asked = ask(&daemon, id, request);
    wait_until("it works", || !children(&daemon, working).is_empty());
    let child = children(&daemon, working)[0];
    daemon.ends_well();
    let failure = asked.join().unwrap().fails(503);
    assert!(
        failure["error"].as_str().unwrap().contains("shutting down"),
        "{failure}"
    );
    assert!(
        !Path::new(&format!("/proc/{child}")).exists(),
        "{working} is still there"
    );
    assert_eq!(files(&daemon), ["video.mp4"]);
}

#[test]
fn shutdown_does_not_wait_for_ffmpeg() {
    let slow = json!({ "in_seconds": 0, "out_seconds": 40, "preset": "webm_vp9",
        "action": "replace" });
    let (busy, id) = daemon(LONG);
    stop_during(busy, id, ("video-loop-export", slow), "ffmpeg");
    let (hung, id) = daemon("testsrc2=s=64x64:d=2");
    mood(&hung, "hang");
    stop_during(hung, id, ("ensure-browser-preview", json!({})), "sleep");
    let (hung, id) = daemon("testsrc2=s=64x64:d=2");
    mood(&hung, "hang");
    stop_during(
        hung,
        id,
        ("extract-video-palette", json!({ "time_seconds": 1 })),
        "sleep",
    );
}

#[test]
fn hanging_ffmpeg_does_not_block_other_requests() {
    let (mut daemon, id) = daemon("testsrc2=s=64x64:d=2");
    mood(&daemon, "hang");
    let [preview, palette, export, _] = actions();
    let asked = [preview, palette, export].map(|request| ask(&daemon, id, request));
    let other = make(&daemon, "other.mkv", "testsrc2=s=64x64:d=1", H264);
    daemon
        .client()
        .post("/images", &json!({ "paths": [other] }))
        .ok();
    // The preview, the palette and the import hang; the export waits for the preview.
    wait_until("all hang", || children(&daemon, "sleep").len() == 3);
    let still = make(
        &daemon,
        "still.jpg",
        "color=red:s=900x900:d=1",
        &["-frames:v", "1"],
    );
    let client = daemon.client();
    client.get("/images").ok();
    client
        .patch(&format!("/images/{id}"), &json!({ "tags": ["x"] }))
        .ok();
    client.post("/images", &json!({ "paths": [still] })).ok();
    assert!(asked.iter().all(|asked| !asked.is_finished()));
    daemon.ends_well();
    for asked in asked {
        asked.join().unwrap().fails(503);
    }
    let left = files(&daemon);
    assert!(
        left.iter()
            .all(|name| ["video.mp4", "still.jpg"].contains(&&**name)),
        "{left:?}"
    );
    mood(&daemon, "");
    daemon.start();
    assert_eq!(image(&daemon, id)["tags"], json!(["x"]));
}

#[test]
fn ffmpeg_is_killed_with_the_daemon_and_the_next_start_cleans_up() {
    let (mut daemon, id) = daemon(LONG);
    let slow = json!({ "in_seconds": 0, "out_seconds": 40, "preset": "webm_vp9",
        "action": "replace" });
    let (socket, place) = (daemon.socket(), format!("/images/{id}/video-loop-export"));
    let asked = thread::spawn(move || {
        // The request fails, as the connection breaks.
        std::panic::catch_unwind(|| Client::new(&socket).post(&place, &slow)).err();
    });
    wait_until("ffmpeg writes", || {
        files(&daemon).len() == 2 && !children(&daemon, "ffmpeg").is_empty()
    });
    let child = children(&daemon, "ffmpeg")[0];
    daemon.kill9();
    asked.join().unwrap();
    wait_until("ffmpeg is gone", || {
        !Path::new(&format!("/proc/{child}")).exists()
    });
    daemon.start();
    wait_until("the rest is gone", || files(&daemon) == ["video.mp4"]);
    assert_eq!(image(&daemon, id)["duration"], 40.0);
}

#[test]
fn ffmpeg_is_limited_in_memory_and_output() {
    let daemon = TestDaemon::new();
    let video = make(&daemon, "video.mp4", "testsrc2=s=320x240:d=4", H264);
    let video = (video.as_path(), Format::Mp4);
    let ffmpeg = |limits| Ffmpeg::new(limits, Cancel::new().unwrap());
    let all = Limits::default();
    let facts = ffmpeg(all).facts(video.0, video.1).unwrap();
    let to = video.0.with_extension("new");
    ffmpeg(all).preview("it", video, &facts, &to).unwrap();
    let length = fs::metadata(&to).unwrap().len();
    // Too little even for its shared libraries.
    let poor = ffmpeg(Limits {
        memory: 4 << 20,
        ..all
    });
    assert!(matches!(
        poor.facts(video.0, video.1),
        Err(transcode::Error::Failed { .. })
    ));
    let short = ffmpeg(Limits {
        output: length / 2,
        ..all
    });
    assert!(short.preview("it", video, &facts, &to).is_err());
    // Newer versions fail at the limit, and then no file is left.
    assert!(fs::metadata(&to).map_or(0, |made| made.len()) <= length / 2);
}

/// Runs a hanging ffmpeg with short time limits; started by the next test, and does nothing by
/// itself.
#[test]
fn victim() {
    let Some(video) = std::env::var_os("MURALD_VICTIM") else {
        return;
    };
    let moment = Duration::from_millis(300);
    // ffprobe does not hang, and its limit stays generous, as the machine may be busy.
    let limits = Limits {
        frame: moment,
        silence: moment,
        ..Limits::default()
    };
    let ffmpeg = Ffmpeg::new(limits, Cancel::new().unwrap());
    let video = (Path::new(&video), Format::Mp4);
    let facts = ffmpeg.facts(video.0, video.1).unwrap();
    let to = video.0.with_extension("new");
    let check = |done: Result<(), transcode::Error>, says: &str| {
        let error = done.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(error.to_string().contains("did not finish"), "{error}");
        assert!(cause.contains(says), "{cause}");
    };
    check(
        ffmpeg.frame(video, &facts, 0.0, (9, 9), &to),
        "did not exit within 300 ms",
    );
    check(ffmpeg.preview("it", video, &facts, &to), "made no progress");
}

#[test]
fn hanging_ffmpeg_is_killed() {
    let mut daemon = TestDaemon::new();
    let video = make(&daemon, "video.mp4", "testsrc2=s=64x64:d=2", H264);
    daemon.stub("ffmpeg", MOODY);
    mood(&daemon, "hang");
    let mut command = daemon.command(std::env::current_exe().unwrap());
    let ran = command
        .args(["--exact", "trouble::victim"])
        .env("MURALD_VICTIM", video)
        .output();
    let ran = ran.unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stdout)
    );
}
