//! Tests the import of videos: which properties are found, and what is refused.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use murald::internals::media;
use serde_json::{Value, json};

use crate::support::{TestDaemon, left_out};
use crate::video::{H264, MOVING, has_encoder, make, real};

/// Imports a file; returns its record, or the reason why it was refused.
fn import(daemon: &TestDaemon, path: &Path) -> Result<Value, String> {
    let mut events = daemon.events("image_processed,image_error");
    daemon
        .client()
        .post("/images", &json!({ "paths": [path] }))
        .ok();
    match events.next() {
        (kind, data) if kind == "image_processed" => Ok(data["image"].clone()),
        (_, data) => Err(data["error"].as_str().unwrap().to_owned()),
    }
}

/// Returns the size of a thumbnail, and the colour in its centre.
fn thumbnail(daemon: &TestDaemon, id: &Value, resolution: &str) -> ((u32, u32), [u8; 3]) {
    let place = format!("/images/{id}/thumbnail?resolution={resolution}");
    let answer = daemon.client().get(&place);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut webp = Cursor::new(&answer.body);
    let probe = media::probe(&mut webp).unwrap();
    let size = (probe.width, probe.height);
    let picture = probe.decode(&mut webp, size).unwrap();
    let bytes = picture.pixels().len() / (size.0 * size.1) as usize;
    let middle = (size.1 / 2 * size.0 + size.0 / 2) as usize * bytes;
    (
        size,
        picture.pixels()[middle..middle + 3].try_into().unwrap(),
    )
}

#[test]
fn film_is_its_default_track_without_a_black_beginning() {
    let daemon = TestDaemon::started();
    // A second track that begins later, is black at first and then of a colour in Display P3.
    // Some versions of ffmpeg take the colour space from the frames, others from the options.
    let late = "color=black:s=320x180:r=10:d=1,tpad=stop=20:color=0x64c864,format=yuv420p,\
                setparams=color_primaries=smpte432:color_trc=iec61966-2-1:colorspace=smpte170m";
    let options = ["-itsoffset", "2", "-f", "lavfi", "-i", late];
    let tracks = [
        "-map", "0", "-map", "1", "-c:v", "libx264", "-pix_fmt", "yuv420p",
    ];
    let default = ["-disposition:v:0", "0", "-disposition:v:1", "default"];
    let color = [
        "-color_primaries:v:1",
        "smpte432",
        "-color_trc:v:1",
        "iec61966-2-1",
        "-colorspace:v:1",
        "smpte170m",
    ];
    let options = [&options[..], &tracks, &default, &color].concat();
    let path = make(
        &daemon,
        "film.mkv",
        "color=red:s=640x360:r=10:d=10",
        &options,
    );
    let film = import(&daemon, &path).unwrap();
    assert_eq!(
        (&film["width"], &film["duration"]),
        (&json!(320), &json!(3.0))
    );
    let (_, [red, green, blue]) = thumbnail(&daemon, &film["id"], "default");
    // #64c864 in Display P3.
    let is_near = red.abs_diff(45) < 9 && green.abs_diff(203) < 9 && blue.abs_diff(86) < 9;
    assert!(is_near, "{red} {green} {blue}");
}

#[test]
fn all_containers_and_codecs_are_imported_with_their_properties() {
    let daemon = TestDaemon::started();
    let sound = ["-f", "lavfi", "-i", "sine=d=4", "-shortest"];
    let mut checked = 0;
    let mut check = |name: &str, encoder: &str, options: &[&str]| {
        if !has_encoder(encoder) {
            left_out(name, &format!("this ffmpeg has no {encoder}"));
            return;
        }
        let options = [
            &sound[..],
            &["-c:v", encoder, "-pix_fmt", "yuv420p"],
            options,
        ]
        .concat();
        let image = import(&daemon, &make(&daemon, name, MOVING, &options)).unwrap();
        let (stem, format) = name.rsplit_once('.').unwrap();
        assert_eq!(
            (&image["name"], &image["format"]),
            (&json!(stem), &json!(format))
        );
        assert_eq!(
            (&image["media_type"], &image["animated"]),
            (&json!("video"), &json!(false))
        );
        assert_eq!(
            (&image["width"], &image["height"]),
            (&json!(320), &json!(180)),
            "{name}"
        );
        let duration = image["duration"].as_f64().unwrap();
        assert!((duration - 4.0).abs() < 0.1, "{name}: {duration} s");
        assert!(
            image["colors"].as_array().unwrap().len() > 2,
            "{name}: {}",
            image["colors"]
        );
        assert_eq!(image["audio_enabled"], false);
        assert!(Path::new(image["thumbnails"]["default"].as_str().unwrap()).is_file());
        assert_eq!(thumbnail(&daemon, &image["id"], "default").0, (320, 180));
        checked += 1;
    };
    check("h264.mp4", "libx264", &["-preset", "ultrafast"]);
    check("quick.mov", "libx264", &["-preset", "ultrafast"]);
    check("matroska.mkv", "libx264", &["-preset", "ultrafast"]);
    check(
        "vp9.webm",
        "libvpx-vp9",
        &["-deadline", "realtime", "-cpu-used", "8"],
    );
    check(
        "vp9-too.mp4",
        "libvpx-vp9",
        &["-deadline", "realtime", "-cpu-used", "8"],
    );
    check("av1.webm", "libsvtav1", &["-preset", "12"]);
    check(
        "hevc.mp4",
        "libx265",
        &[
            "-preset",
            "ultrafast",
            "-tag:v",
            "hvc1",
            "-x265-params",
            "log-level=1",
        ],
    );
    check(
        "hevc-too.mkv",
        "libx265",
        &["-preset", "ultrafast", "-x265-params", "log-level=1"],
    );
    check("mpeg4.avi", "mpeg4", &["-c:a", "libmp3lame"]);
    assert!(checked >= 6, "only {checked} could be made");
    let total =
        daemon.client().get("/images?media_type=video").ok()["pagination"]["total_items"].clone();
    assert_eq!(total, checked);
}

#[test]
fn poster_is_the_frame_at_one_tenth_and_thumbnails_are_recreated() {
    let mut daemon = TestDaemon::new();
    daemon.configure("[backend.wal-qt]\nvideo_audio_default = true\n");
    daemon.start();
    // Green from 0.5 to 1.5 seconds of 10, red before and blue after.
    let source = "color=red:s=1600x900:r=10:d=0.5[a];color=lime:s=1600x900:r=10:d=1[b];\
        color=blue:s=1600x900:r=10:d=8.5[c];[a][b][c]concat=n=3:v=1:a=0";
    let options = [H264, &["-vf", "scale=out_color_matrix=bt709"]].concat();
    let image = import(&daemon, &make(&daemon, "a.mp4", source, &options)).unwrap();
    assert_eq!(image["audio_enabled"], true, "as wal-qt's settings say");
    let color = image["colors"][0].as_str().unwrap();
    let (size, [red, green, blue]) = thumbnail(&daemon, &image["id"], "default");
    assert_eq!(size, (500, 281));
    assert!(
        red < 20 && green > 235 && blue < 20,
        "{red} {green} {blue}, {color}"
    );
    assert_eq!(image["hue_group"], 4, "{color}");
    assert_eq!(thumbnail(&daemon, &image["id"], "720p").0, (1280, 720));
    assert_eq!(
        thumbnail(&daemon, &image["id"], "4k").0,
        (1600, 900),
        "never larger than the source"
    );
    fs::remove_dir_all(daemon.root().join("cache/murald/thumbnails")).unwrap();
    let (size, [_, green, _]) = thumbnail(&daemon, &image["id"], "default");
    assert!(size == (500, 281) && green > 235);
    assert_eq!(scratch(&daemon), 0);
}

/// The same grey as in standard videos, encoded as PQ and HLG.
#[test]
fn posters_of_hdr_videos_have_standard_brightness() {
    let mut daemon = TestDaemon::started();
    let source = "color=0xb4b4b4:s=320x180:r=10:d=1";
    let check = |daemon: &TestDaemon, name: &str, transfer: &str, expected: u8| {
        let filter = format!(
            "scale=out_color_matrix=bt709,format=yuv444p,zscale=min=bt709:tin=bt709:pin=bt709:\
             t={transfer}:p=bt2020:m=bt2020nc:npl=203:r=tv,format=yuv444p10le"
        );
        let colors = [
            "-color_primaries",
            "bt2020",
            "-colorspace",
            "bt2020nc",
            "-color_trc",
        ];
        // Makes the bytes of each file different.
        let title = format!("title={name}");
        let coding = ["-vf", &filter, "-c:v", "libx264", "-metadata", &title];
        let options = [&coding, &colors[..], &[transfer]].concat();
        let image = import(daemon, &make(daemon, name, source, &options)).unwrap();
        let (size, color) = thumbnail(daemon, &image["id"], "default");
        assert_eq!(size, (320, 180));
        assert!(
            color.iter().all(|level| level.abs_diff(expected) < 12),
            "{name} is {color:?}"
        );
    };
    check(&daemon, "pq.mp4", "smpte2084", 0xb4);
    check(&daemon, "hlg.mkv", "arib-std-b67", 0xb4);
    // Without zimg, the poster is paler, unless ffmpeg marks the PNG as PQ, which murald converts.
    let pq = "setparams=color_primaries=bt2020:color_trc=smpte2084";
    let png = make(&daemon, "pq.png", source, &["-vf", pq, "-frames:v", "1"]);
    let is_marked = fs::read(png)
        .unwrap()
        .windows(4)
        .any(|chunk| chunk == b"cICP");
    daemon.stub("ffmpeg", WITHOUT_ZIMG);
    daemon.env("REAL_FFMPEG", real("ffmpeg"));
    assert_eq!(daemon.stop(), Some(0));
    daemon.start();
    check(
        &daemon,
        "pale.mp4",
        "smpte2084",
        if is_marked { 0xb4 } else { 0x7d },
    );
}

const WITHOUT_ZIMG: &str = r#"#!/bin/sh
case "$*" in *zscale*) echo "No such filter: 'zscale'" >&2; exit 1 ;; esac
exec "$REAL_FFMPEG" "$@"
"#;

#[test]
fn rotation_and_pixel_aspect_ratio_are_applied() {
    let daemon = TestDaemon::started();
    // Phones held upright write such files.
    let lying = make(&daemon, "lying.mp4", MOVING, H264);
    let standing = daemon.root().join("standing.mp4");
    let turn = |before: &[&str], after: &[&str]| {
        let mut ffmpeg = std::process::Command::new("ffmpeg");
        ffmpeg
            .args(["-nostdin", "-v", "error", "-y"])
            .args(before)
            .arg("-i")
            .arg(&lying);
        let turned = ffmpeg
            .args(["-c", "copy"])
            .args(after)
            .arg(&standing)
            .status();
        turned.unwrap().success()
    };
    // ffmpeg 6 added the option and dropped the old way.
    let turned =
        turn(&["-display_rotation:v:0", "90"], &[]) || turn(&[], &["-metadata:s:v:0", "rotate=90"]);
    assert!(turned);
    let image = import(&daemon, &standing).unwrap();
    assert_eq!(
        (&image["width"], &image["height"]),
        (&json!(180), &json!(320))
    );
    assert_eq!(thumbnail(&daemon, &image["id"], "default").0, (180, 320));
    // A widescreen DVD.
    let source = "color=white:s=720x576:r=25:d=1,setsar=64/45";
    let image = import(&daemon, &make(&daemon, "wide.mkv", source, H264)).unwrap();
    assert_eq!(
        (&image["width"], &image["height"]),
        (&json!(1024), &json!(576))
    );
    assert_eq!(thumbnail(&daemon, &image["id"], "default").0, (500, 281));
}

#[test]
fn damaged_and_unsupported_files_are_refused() {
    let daemon = TestDaemon::started();
    let videos = [
        make(&daemon, "index-behind.mp4", MOVING, H264),
        make(
            &daemon,
            "index-in-front.mp4",
            MOVING,
            &[H264, &["-movflags", "+faststart"]].concat(),
        ),
        make(&daemon, "a.mkv", MOVING, H264),
        make(&daemon, "a.avi", MOVING, &["-c:v", "mpeg4"]),
    ];
    for video in videos {
        let whole = fs::read(&video).unwrap();
        fs::write(&video, &whole[..whole.len() * 2 / 5]).unwrap();
        let name = video.file_name().unwrap().to_string_lossy().into_owned();
        let reason = import(&daemon, &video).expect_err(&name);
        eprintln!("{name}: {reason}");
        assert!(!reason.contains(".murald"), "{reason}");
        fs::write(&video, &whole).unwrap();
        import(&daemon, &video).unwrap();
    }
    let sound = daemon.root().join("sound.mp4");
    let made = std::process::Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=d=1"])
        .arg(&sound)
        .status();
    assert!(made.unwrap().success());
    assert_eq!(import(&daemon, &sound).unwrap_err(), "contains no picture");
    assert_eq!(
        fs::read_dir(daemon.images()).unwrap().count(),
        4,
        "nothing else is left"
    );
    assert_eq!(scratch(&daemon), 0);
}

/// Returns the number of files in the cache's directory of previews.
fn scratch(daemon: &TestDaemon) -> usize {
    let directory = daemon.root().join("cache/murald/thumbnails/previews");
    fs::read_dir(directory).map_or(0, Iterator::count)
}
