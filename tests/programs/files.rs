//! The links and colour files in the state directory: always complete, and up to date when an event
//! comes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use image::ImageEncoder;
use serde_json::{Value, json};

use crate::desktop::{Desktop, SetOnDrop, wait_until};
use crate::support::TestDaemon;

/// A daemon that uses swaybg.
pub fn started(desktop: &Desktop) -> TestDaemon {
    let mut daemon = TestDaemon::on(desktop);
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    daemon.start();
    daemon
}

/// A picture of one colour in the library.
pub fn picture(daemon: &TestDaemon, name: &str, color: [u8; 3]) -> i64 {
    let path = daemon.root().join(format!("{name}.png"));
    image::RgbImage::from_pixel(64, 36, image::Rgb(color))
        .save(&path)
        .unwrap();
    daemon.import(&[&path])[0]
}

pub fn set(daemon: &TestDaemon, body: &Value) -> Value {
    daemon.client().post("/wallpaper/set", body).ok()
}

pub fn state(daemon: &TestDaemon) -> PathBuf {
    daemon.root().join(".local/state/murald")
}

fn link(daemon: &TestDaemon, name: &str) -> Option<PathBuf> {
    fs::read_link(state(daemon).join("current").join(name)).ok()
}

fn palette(daemon: &TestDaemon) -> Value {
    serde_json::from_slice(&fs::read(state(daemon).join("palette.json")).unwrap()).unwrap()
}

/// The path of a file in the library.
fn in_library(daemon: &TestDaemon, name: &str) -> PathBuf {
    daemon.images().join(name)
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| {
        if path.is_dir() {
            files_below(&path)
        } else {
            vec![path]
        }
    };
    paths.flat_map(below).collect()
}

#[test]
fn links_and_colour_files_follow_every_change() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let mut daemon = started(&desktop);
    let (red, night) = (
        picture(&daemon, "red", [200, 30, 30]),
        picture(&daemon, "n'ight", [8, 8, 24]),
    );
    let answer = set(&daemon, &json!({ "image_id": red }));
    // The order is the compositor's.
    assert_eq!(answer["monitors"].as_array().unwrap().len(), 2);
    for name in ["HEADLESS-1", "HEADLESS-2", "all"] {
        assert_eq!(
            link(&daemon, name),
            Some(in_library(&daemon, "red.png")),
            "{name}"
        );
    }
    set(
        &daemon,
        &json!({ "image_id": night, "monitor": "HEADLESS-2" }),
    );
    assert_eq!(
        link(&daemon, "HEADLESS-1"),
        Some(in_library(&daemon, "red.png"))
    );
    assert_eq!(
        link(&daemon, "HEADLESS-2"),
        Some(in_library(&daemon, "n'ight.png"))
    );
    assert_eq!(
        link(&daemon, "all"),
        Some(in_library(&daemon, "n'ight.png"))
    );
    let found = palette(&daemon);
    let newest = &found["newest"];
    assert_eq!(*newest, found["monitors"]["HEADLESS-2"]);
    assert_eq!(
        (&newest["monitor"], &newest["image_id"]),
        (&json!("HEADLESS-2"), &json!(night))
    );
    assert_eq!(
        (&newest["image_name"], &newest["appearance"]),
        (&json!("n'ight"), &json!("dark"))
    );
    assert_eq!(
        (&newest["background"], &newest["colors"]),
        (&json!("#080818"), &json!(["#080818"]))
    );
    assert_eq!(newest["still"], newest["path"]);
    // A shell reads the right values, even with a quote in the name.
    let script = format!(
        ". '{}/colors.sh'; printf '%s %s %s %s' \"$wallpaper\" $background $color7 $appearance",
        state(&daemon).display()
    );
    let said = Command::new("sh").args(["-c", &script]).output().unwrap();
    let expected = format!(
        "{} #080818 #080818 dark",
        in_library(&daemon, "n'ight.png").display()
    );
    assert_eq!(String::from_utf8_lossy(&said.stdout), expected);

    // An image is renamed, another is deleted.
    daemon
        .client()
        .patch(&format!("/images/{red}"), &json!({ "name": "rose" }))
        .ok();
    wait_until("the link follows the name", || {
        link(&daemon, "HEADLESS-1") == Some(in_library(&daemon, "rose.png"))
    });
    daemon.client().delete_images(&[night]).ok();
    // The monitor now shows the image that was set for all.
    wait_until("no link to the deleted image", || {
        let gone = Some(in_library(&daemon, "n'ight.png"));
        let newest = link(&daemon, "all");
        link(&daemon, "HEADLESS-2") != gone && newest == Some(in_library(&daemon, "rose.png"))
    });
    wait_until("the palettes of the new image", || {
        let of = palette(&daemon)["monitors"].clone();
        of.as_object()
            .unwrap()
            .values()
            .all(|of| of["image_id"] == red)
    });

    // Files stay after a stop, are written again at a start, and are removed by `stop --clear`.
    daemon.ends_well();
    let left = link(&daemon, "HEADLESS-1");
    assert_eq!(left, Some(in_library(&daemon, "rose.png")));
    fs::remove_dir_all(state(&daemon)).unwrap();
    daemon.start();
    wait_until("the files are there again", || {
        link(&daemon, "HEADLESS-1") == left
    });
    wait_until("the palette, too", || {
        state(&daemon).join("colors.rasi").exists()
    });
    // The parts of an extended image are cached while they are shown.
    set(&daemon, &json!({ "image_id": red, "mode": "extend" }));
    let cache = daemon.root().join("cache/murald/backends");
    assert!(files_below(&cache).len() >= 2, "{:?}", files_below(&cache));
    let stopped = daemon.murald(&["stop", "--clear"]).status().unwrap();
    assert!(stopped.success());
    daemon.wait();
    assert!(!state(&daemon).exists());
    assert_eq!(files_below(&cache), Vec::<PathBuf>::new());

    // `stop --clear` works without a daemon, too, and removes murald's files only.
    daemon.start();
    set(&daemon, &json!({ "image_id": red }));
    let mine = state(&daemon).join("current/mine");
    std::os::unix::fs::symlink("/nowhere", &mine).unwrap();
    set(
        &daemon,
        &json!({ "image_id": red, "monitor": "HEADLESS-1" }),
    );
    daemon.kill9();
    let clear = || daemon.murald(&["stop", "--clear"]).output().unwrap();
    let first = clear();
    let told = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(
        first.status.success() && told.contains("; removed its wallpapers"),
        "{first:?}"
    );
    assert_eq!(files_below(&state(&daemon)), std::slice::from_ref(&mine));
    fs::remove_file(&mine).unwrap();
    fs::remove_dir(mine.parent().unwrap()).unwrap();
    let again = clear();
    let told = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(
        again.status.success() && told.contains("no wallpaper"),
        "{again:?}"
    );
    let status = daemon.murald(&["status"]).output().unwrap();
    assert_eq!(status.status.code(), Some(69), "none was started");
}

/// Number of changes; `MURALD_CHANGES` sets it.
fn changes() -> usize {
    std::env::var("MURALD_CHANGES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200)
}

#[test]
fn readers_never_find_a_missing_or_partial_file() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = started(&desktop);
    let ids = [
        picture(&daemon, "one", [200, 30, 30]),
        picture(&daemon, "two", [30, 30, 200]),
    ];
    set(&daemon, &json!({ "image_id": ids[0] }));
    let mut events = daemon.events("wallpaper_changed");
    let (done, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let stop = SetOnDrop(&done);
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    look(&state(&daemon));
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for change in 0..changes() {
            let id = ids[(change + 1) % 2];
            let daemon = &daemon;
            let asked = scope.spawn(move || set(daemon, &json!({ "image_id": id })));
            let event = events.wait_for("wallpaper_changed");
            // A client that has just got the event must find the new files.
            let linked = link(daemon, "HEADLESS-1").unwrap();
            assert_eq!(json!(linked), event["path"], "change {change}");
            assert_eq!(link(daemon, "all"), Some(linked), "change {change}");
            assert_eq!(palette(daemon)["newest"]["image_id"], event["image_id"]);
            asked.join().unwrap();
        }
        drop(stop);
    });
    assert!(looks.into_inner() > 0);
}

/// Reads the files as a bar and a lock screen do: the picture behind each link, and all colour files.
fn look(state: &Path) {
    for name in ["HEADLESS-1", "all"] {
        let bytes = fs::read(state.join("current").join(name)).unwrap();
        assert!(
            bytes.starts_with(b"\x89PNG") && bytes.ends_with(b"IEND\xaeB`\x82"),
            "{name}"
        );
    }
    let json: Value =
        serde_json::from_slice(&fs::read(state.join("palette.json")).unwrap()).unwrap();
    assert!(json["newest"]["accent"].is_string());
    for (name, end) in [
        ("colors.sh", "appearance='dark'\n"),
        ("colors.css", ";\n"),
        ("colors.rasi", "}\n"),
    ] {
        let text = fs::read_to_string(state.join(name)).unwrap();
        assert!(
            text.contains("color7") && text.ends_with(end),
            "{name}: {text}"
        );
    }
}

#[test]
fn animation_has_a_still_while_it_is_shown() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = started(&desktop);
    let still = |id: i64| {
        let image = daemon.client().get(&format!("/images/{id}")).ok();
        let checksum = image["checksum"]
            .as_str()
            .unwrap()
            .strip_prefix("sha256:")
            .unwrap();
        state(&daemon)
            .join("stills")
            .join(format!("{checksum}.png"))
    };
    let path = daemon.root().join("moves.gif");
    let frames = [[10, 200, 10], [200, 10, 10]].map(|color| {
        image::Frame::new(image::RgbaImage::from_fn(64, 36, |_, _| {
            let [r, g, b] = color;
            image::Rgba([r, g, b, 255])
        }))
    });
    let mut encoder = image::codecs::gif::GifEncoder::new(fs::File::create(&path).unwrap());
    encoder.encode_frames(frames).unwrap();
    drop(encoder);
    let moves = daemon.import(&[&path])[0];
    let plain = picture(&daemon, "plain", [1, 2, 3]);

    set(&daemon, &json!({ "image_id": moves }));
    let made = still(moves);
    assert_eq!(link(&daemon, "HEADLESS-1").as_ref(), Some(&made));
    assert_eq!(palette(&daemon)["newest"]["still"], json!(made));
    let picture = image::open(&made).unwrap().into_rgb8();
    assert_eq!(picture.dimensions(), (64, 36));
    let [r, g, b] = picture.get_pixel(3, 3).0;
    assert!(
        r < 40 && g > 170 && b < 40,
        "{r} {g} {b} is not the first frame"
    );
    set(&daemon, &json!({ "image_id": plain }));
    assert_eq!(link(&daemon, "all"), Some(in_library(&daemon, "plain.png")));
    wait_until("the unused still is removed", || !made.exists());

    // A photograph with an Exif orientation has a still; with `stills = "png"` every picture has.
    let photo = daemon.root().join("photo.jpg");
    let pixels = image::RgbImage::from_fn(64, 36, |x, _| image::Rgb([x as u8, 90, 9]));
    fs::write(&photo, crate::support::photographs::upright(&pixels)).unwrap();
    let photo = daemon.import(&[&photo])[0];
    let image = daemon.client().get(&format!("/images/{photo}")).ok();
    set(&daemon, &json!({ "image_id": photo }));
    assert_eq!(link(&daemon, "HEADLESS-1"), Some(still(photo)));
    let size = image::image_dimensions(still(photo)).unwrap();
    assert_eq!(
        (json!(size.0), json!(size.1)),
        (image["width"].clone(), image["height"].clone())
    );
    // Colours of a telephone, which most programs would show pale.
    let photo = daemon.root().join("wide.jpg");
    let mut encoder = image::codecs::jpeg::JpegEncoder::new(fs::File::create(&photo).unwrap());
    encoder
        .set_icc_profile(moxcms::ColorProfile::new_display_p3().encode().unwrap())
        .unwrap();
    let pixels = image::RgbImage::from_pixel(64, 36, image::Rgb([180, 120, 90]));
    encoder.encode_image(&pixels).unwrap();
    let photo = daemon.import(&[&photo])[0];
    set(&daemon, &json!({ "image_id": photo }));
    assert_eq!(link(&daemon, "HEADLESS-1"), Some(still(photo)));
    let image::Rgb(pixel) = *image::open(still(photo))
        .unwrap()
        .into_rgb8()
        .get_pixel(9, 9);
    let is_near = pixel
        .iter()
        .zip([190, 117, 84])
        .all(|(is, srgb)| is.abs_diff(srgb) < 4);
    assert!(is_near, "{pixel:?} is not sRGB");
    assert!(
        !fs::read(still(photo))
            .unwrap()
            .windows(4)
            .any(|chunk| chunk == b"iCCP")
    );
    set(&daemon, &json!({ "image_id": plain }));
    let mut events = daemon.events("config_changed");
    daemon
        .client()
        .patch("/config/desktop", &json!({ "stills": "png" }))
        .ok();
    assert_eq!(
        events.wait_for("config_changed")["sections"],
        json!(["desktop"])
    );
    wait_until("the PNG copy", || {
        link(&daemon, "HEADLESS-1") == Some(still(plain))
    });
    assert!(still(plain).exists());
    daemon
        .client()
        .patch("/config/desktop", &json!({ "stills": "jpg" }))
        .fails(400);
    daemon
        .client()
        .patch("/config/desktop", &json!({ "still": "png" }))
        .fails(400);
}

#[test]
fn transparent_picture_is_described_as_the_screen_shows_it() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = started(&desktop);
    // A white disc; the transparent pixels around it are stored as white.
    let logo = image::RgbaImage::from_fn(64, 36, |x, y| {
        let is_inside = x.abs_diff(32).pow(2) + y.abs_diff(18).pow(2) < 100;
        image::Rgba([255, 255, 255, if is_inside { 255 } else { 0 }])
    });
    let path = daemon.root().join("logo.png");
    logo.save(&path).unwrap();
    let id = daemon.import(&[&path])[0];
    let check = |ground: [u8; 3], background: &str, appearance: &str| {
        set(&daemon, &json!({ "image_id": id }));
        let newest = &palette(&daemon)["newest"];
        let described = [&newest["background"], &newest["appearance"]];
        assert_eq!(described, [background, appearance], "{newest}");
        let still = image::open(link(&daemon, "HEADLESS-1").unwrap()).unwrap();
        assert!(!still.color().has_alpha());
        let still = still.into_rgb8();
        let pixels = [(2, 2), (32, 18)].map(|(x, y)| still.get_pixel(x, y).0);
        assert_eq!(pixels, [ground, [255; 3]]);
    };
    check([0; 3], "#000000", "dark");
    let fill = json!({ "fill_color": "c8c8ff" });
    daemon.client().patch("/config/backends/swaybg", &fill).ok();
    check([200, 200, 255], "#ffffff", "light");
    let plain = picture(&daemon, "plain", [1, 2, 3]);
    set(&daemon, &json!({ "image_id": plain }));
    let stills = state(&daemon).join("stills");
    wait_until("the unused stills are removed", || {
        fs::read_dir(&stills).unwrap().count() == 0
    });
}

#[test]
fn unwritable_state_directory_does_not_prevent_a_change() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    // A file is in the place of the directory.
    fs::create_dir_all(state(&daemon).parent().unwrap()).unwrap();
    fs::write(state(&daemon), "").unwrap();
    daemon.start();
    let ids = [
        picture(&daemon, "one", [200, 30, 30]),
        picture(&daemon, "two", [30, 30, 200]),
    ];
    for id in ids {
        assert_eq!(set(&daemon, &json!({ "image_id": id }))["status"], "set");
    }
    let log = daemon.log();
    let told = log.matches("for other programs: ").count();
    assert_eq!(told, 1, "{log}");
    // When the directory can be written again, the next change writes the files.
    fs::remove_file(state(&daemon)).unwrap();
    set(&daemon, &json!({ "image_id": ids[0] }));
    assert_eq!(link(&daemon, "all"), Some(in_library(&daemon, "one.png")));
}
