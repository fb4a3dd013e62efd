//! Tests previews, palettes and loops of videos, with ffprobe and frame by frame.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::TestDaemon;
use crate::support::client::Answer;
use crate::video::{H264, MOVING, difference, frames, image, make, probe};

/// Starts a daemon with one video of four seconds; returns its id.
fn daemon() -> (TestDaemon, i64) {
    let daemon = TestDaemon::started();
    let video = make(&daemon, "video.mp4", MOVING, H264);
    let id = daemon.import(&[&video])[0];
    (daemon, id)
}

fn post(daemon: &TestDaemon, id: i64, action: &str, body: &Value) -> Answer {
    daemon
        .client()
        .post(&format!("/images/{id}/{action}"), body)
}

fn export(daemon: &TestDaemon, id: i64, body: &Value) -> Answer {
    post(daemon, id, "video-loop-export", body)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn previews(daemon: &TestDaemon) -> Vec<PathBuf> {
    files(&daemon.root().join("cache/murald/thumbnails/previews"))
}

#[test]
fn preview_is_made_once_and_removed_with_its_video() {
    let (daemon, id) = daemon();
    assert!(image(&daemon, id)["preview_path"].is_null());
    let mut events = daemon.events("gallery_changed");
    let first = post(&daemon, id, "ensure-browser-preview", &json!({})).ok();
    let path = PathBuf::from(first["preview_path"].as_str().unwrap());
    assert_eq!(
        probe(&path, "stream=codec_name,width,height,pix_fmt"),
        "h264,320,180,yuv420p"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().mode() & 0o777,
        0o600,
        "ffmpeg's files are ours"
    );
    assert_eq!(events.next().1["domain"], "images");
    assert_eq!(image(&daemon, id)["preview_path"], first["preview_path"]);
    let made = fs::metadata(&path).unwrap().modified().unwrap();
    let again = || fs::metadata(&path).unwrap().modified().unwrap();
    post(&daemon, id, "ensure-browser-preview", &json!({})).ok();
    assert_eq!(again(), made, "it was there");
    post(&daemon, id, "ensure-browser-preview?force=1", &json!({})).ok();
    assert!(again() > made, "made anew");
    post(
        &daemon,
        id,
        "ensure-browser-preview?force=maybe",
        &json!({}),
    )
    .fails(400);
    // A deleted cache is filled again.
    let listed = || daemon.client().get("/images").ok()["data"][0]["preview_path"].clone();
    assert_eq!(listed(), first["preview_path"]);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    assert!(image(&daemon, id)["preview_path"].is_null());
    assert!(listed().is_null());
    post(&daemon, id, "ensure-browser-preview", &json!({})).ok();
    assert_eq!(previews(&daemon), [path]);
    daemon.client().delete_images(&[id]).ok();
    assert_eq!(previews(&daemon).len(), 0);
    assert_eq!(files(&daemon.images()).len(), 0);
}

#[test]
fn video_can_be_deleted_after_its_cache() {
    let (daemon, id) = daemon();
    post(&daemon, id, "ensure-browser-preview", &json!({})).ok();
    fs::remove_dir_all(daemon.root().join("cache/murald/thumbnails")).unwrap();
    daemon.client().delete_images(&[id]).ok();
    assert_eq!(files(&daemon.images()).len(), 0);
}

#[test]
fn palette_is_taken_at_the_requested_time() {
    let daemon = TestDaemon::started();
    let source = "color=red:s=160x90:r=10:d=1[a];color=blue:s=160x90:r=10:d=1[b];\
        [a][b]concat=n=2:v=1:a=0";
    let id = daemon.import(&[&make(&daemon, "video.mkv", source, H264)])[0];
    let palette = |at: f64| {
        let body = json!({ "time_seconds": at });
        let taken = post(&daemon, id, "extract-video-palette", &body).ok();
        assert_eq!(
            (&taken["image_id"], &taken["colors"]),
            (&json!(id), &taken["image"]["colors"])
        );
        assert_eq!(image(&daemon, id)["colors"], taken["colors"]);
        let hue = taken["image"]["hue_group"].clone();
        let shown = daemon
            .client()
            .get(&format!("/images?hue_group={hue}"))
            .ok();
        assert_eq!(shown["data"][0]["id"], id);
        hue
    };
    assert_eq!(palette(1.5), 8);
    assert_eq!(palette(0.2), 0);
    // Times are clamped to the video's duration.
    assert_eq!(palette(1e9), 8);
    assert_eq!(palette(-3.0), 0);
    assert_eq!(palette(2.0), 8);
    post(&daemon, id, "extract-video-palette", &json!({})).fails(400);
}

#[test]
fn loops_are_imported_as_new_images() {
    let (daemon, id) = daemon();
    let folder = daemon
        .client()
        .post("/folders", &json!({ "name": "loops" }))
        .ok()["id"]
        .clone();
    let body = json!({ "in_seconds": 1, "out_seconds": 2.5, "preset": "webm_vp9",
        "action": "import_new", "folder_id": folder });
    let made = export(&daemon, id, &body).ok();
    assert_eq!(made["action"], "import_new");
    let new = image(&daemon, made["image_id"].as_i64().unwrap());
    assert_eq!((&new["path"], &new["folder_id"]), (&made["path"], &folder));
    assert_eq!(
        (&new["name"], &new["format"]),
        (&json!("video_loop"), &json!("webm"))
    );
    let path = Path::new(made["path"].as_str().unwrap());
    assert_eq!(probe(path, "stream=codec_name,width,height"), "vp9,320,180");
    assert_eq!(frames(path).len(), 45);
    assert_eq!(
        export(&daemon, id, &body).ok(),
        made,
        "the same loop is in the library once"
    );
    assert_eq!(files(&daemon.images()).len(), 2);
    assert_eq!(
        image(&daemon, id)["duration"],
        4.0,
        "the video itself stays"
    );
    // A loop has sound if the video has.
    let sound = ["-f", "lavfi", "-i", "sine=d=4", "-shortest"];
    let loud = make(&daemon, "loud.mov", MOVING, &[&sound[..], H264].concat());
    let loud = daemon.import(&[&loud])[0];
    for blend in [false, true] {
        let body = json!({ "in_seconds": 0.5, "out_seconds": 3.5, "preset": "mp4_h264",
            "action": "import_new", "blend_halves": blend });
        let made = export(&daemon, loud, &body).ok();
        let path = Path::new(made["path"].as_str().unwrap());
        assert_eq!(probe(path, "stream=codec_name"), "h264");
        let heard = std::process::Command::new("ffprobe")
            .args(["-v", "error", "-select_streams", "a", "-of", "csv=p=0"])
            .args(["-show_entries", "stream=codec_name,duration"])
            .arg(path)
            .output();
        let heard = String::from_utf8(heard.unwrap().stdout).unwrap();
        let (codec, length) = heard.trim().split_once(',').unwrap();
        let length: f64 = length.parse().unwrap();
        let expected = if blend { 2.25 } else { 3.0 };
        assert!(codec == "aac" && (length - expected).abs() < 0.1, "{heard}");
    }
}

#[test]
fn loop_replaces_its_video() {
    let (daemon, id) = daemon();
    let change = json!({ "tags": ["sea"], "is_selected": true, "audio_enabled": true });
    daemon
        .client()
        .patch(&format!("/images/{id}"), &change)
        .ok();
    post(&daemon, id, "ensure-browser-preview", &json!({})).ok();
    let check = |preset: &str, name: &str, codec: &str, length: f64| {
        let before = image(&daemon, id);
        let out = before["duration"].as_f64().unwrap();
        let body = json!({ "in_seconds": out - length, "out_seconds": out, "preset": preset,
            "action": "replace" });
        let made = export(&daemon, id, &body).ok();
        assert_eq!(
            (&made["action"], &made["image_id"]),
            (&json!("replace"), &json!(id))
        );
        let now = image(&daemon, id);
        assert_eq!(now["path"], daemon.images().join(name).to_str().unwrap());
        assert_eq!(
            (&now["path"], &now["name"]),
            (&made["path"], &json!("video"))
        );
        for same in [
            "tags",
            "is_selected",
            "audio_enabled",
            "imported_at",
            "source_path",
        ] {
            assert_eq!(now[same], before[same]);
        }
        let path = daemon.images().join(name);
        assert_eq!(
            files(&daemon.images()),
            std::slice::from_ref(&path),
            "the old file is gone"
        );
        assert_eq!(previews(&daemon).len(), 0, "so is its preview");
        assert!(now["preview_path"].is_null() && now["checksum"] != before["checksum"]);
        assert_eq!(now["file_size"], fs::metadata(&path).unwrap().len());
        assert!(
            (now["duration"].as_f64().unwrap() - length).abs() < 0.05,
            "{now}"
        );
        assert_eq!(probe(&path, "stream=codec_name"), codec);
        assert_eq!(
            daemon
                .client()
                .get(&format!("/images/{id}/thumbnail"))
                .status,
            200
        );
        assert_eq!(
            daemon.client().get(&format!("/images/{id}/raw")).body,
            fs::read(path).unwrap()
        );
    };
    check("mp4_h264", "video.mp4", "h264", 3.0);
    check("webm_vp9", "video.webm", "vp9", 2.0);
    check("webm_vp9", "video.webm", "vp9", 1.0);

    // A name of the maximum length has no room for a suffix, and a longer extension makes it
    // shorter.
    let longest = "x".repeat(251);
    daemon
        .client()
        .patch(
            &format!("/images/{id}"),
            &json!({ "name": "x".repeat(250) }),
        )
        .ok();
    let body = json!({ "in_seconds": 0, "out_seconds": 0.5, "preset": "mp4_h264",
        "action": "replace" });
    export(&daemon, id, &body).ok();
    assert_eq!(image(&daemon, id)["name"], "x".repeat(250));
    daemon
        .client()
        .patch(&format!("/images/{id}"), &json!({ "name": longest }))
        .ok();
    let body = json!({ "in_seconds": 0, "out_seconds": 0.3, "preset": "webm_vp9",
        "action": "replace" });
    let made = export(&daemon, id, &body).ok();
    let now = image(&daemon, id);
    assert!(longest.starts_with(now["name"].as_str().unwrap()), "{now}");
    assert_eq!(
        files(&daemon.images()),
        [PathBuf::from(made["path"].as_str().unwrap())]
    );
}

#[test]
fn invalid_cuts_are_refused() {
    let (daemon, id) = daemon();
    let good = json!({ "in_seconds": 0, "out_seconds": 1, "preset": "mp4_h264",
        "action": "replace", "blend_halves": false });
    let check = |changes: Value, says: &str| {
        let mut body = good.clone();
        for (name, value) in changes.as_object().unwrap() {
            body[name] = value.clone();
        }
        let failure = export(&daemon, id, &body).fails(400);
        assert!(failure.to_string().contains(says), "{failure}");
    };
    check(json!({ "in_seconds": -1 }), "in_seconds");
    check(json!({ "out_seconds": 4.5 }), "out_seconds");
    check(json!({ "in_seconds": 0.95 }), "0.1");
    check(json!({ "in_seconds": 2 }), "0.1");
    check(json!({ "in_seconds": "0" }), "in_seconds");
    check(json!({ "preset": "gif" }), "webm_vp9");
    check(json!({ "action": "keep" }), "import_new");
    check(json!({ "folder_id": 1 }), "import_new");
    check(
        json!({ "action": "import_new", "folder_id": 99 }),
        "folder with ID 99",
    );
    let no_time = json!({ "in_seconds": 0, "preset": "mp4_h264", "action": "replace" });
    let failure = export(&daemon, id, &no_time).fails(400);
    assert!(failure.to_string().contains("out_seconds"));
    export(&daemon, 99, &good).fails(404);
    let still = daemon.root().join("still.jpg");
    let made = make(
        &daemon,
        "still.jpg",
        "color=red:s=64x64:d=1",
        &["-frames:v", "1"],
    );
    assert_eq!(made, still);
    let still = daemon.import(&[&still])[0];
    for (action, body) in [
        ("ensure-browser-preview", json!({})),
        ("extract-video-palette", json!({ "time_seconds": 0 })),
        ("video-loop-export", good.clone()),
    ] {
        let failure = post(&daemon, still, action, &body).fails(400);
        assert!(
            failure["error"].as_str().unwrap().contains("not a video"),
            "{failure}"
        );
        post(&daemon, 99, action, &body).fails(404);
    }
}

/// Returns the difference between the last and the first frame, and the mean and maximum difference
/// of consecutive frames.
fn steps(path: &Path) -> (f64, f64, f64) {
    let frames = frames(path);
    let steps: Vec<f64> = frames
        .windows(2)
        .map(|two| difference(&two[0], &two[1]))
        .collect();
    let mean = steps.iter().sum::<f64>() / steps.len() as f64;
    let largest = steps.iter().copied().fold(0.0, f64::max);
    (
        difference(&frames[0], frames.last().unwrap()),
        mean,
        largest,
    )
}

#[test]
fn blended_halves_have_no_seam() {
    let daemon = TestDaemon::started();
    // A slow zoom, in which all frames differ.
    let zoom = "mandelbrot=s=320x180:r=30:maxiter=300,trim=end=4";
    for (name, source) in [("zoom.mp4", zoom), ("pattern.mp4", MOVING)] {
        let id = daemon.import(&[&make(
            &daemon,
            name,
            source,
            &[H264, &["-crf", "12"]].concat(),
        )])[0];
        for preset in ["mp4_h264", "webm_vp9"] {
            let body = |blend| {
                json!({ "in_seconds": 0.5, "out_seconds": 3.5, "preset": preset,
                "action": "import_new", "blend_halves": blend })
            };
            let made = |blend: bool| {
                let made = export(&daemon, id, &body(blend)).ok();
                steps(Path::new(made["path"].as_str().unwrap()))
            };
            let (plain, ..) = made(false);
            let (seam, mean, largest) = made(true);
            eprintln!(
                "{name} {preset}: seam {seam:.2} (plain cut {plain:.2}), \
                from frame to frame {mean:.2}, at most {largest:.2}"
            );
            assert!(seam < mean && seam * 5.0 < plain);
        }
    }
}
