//! The links and colour files in the state directory: always complete, and up to date when an event
//! comes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use image::ImageEncoder;
use serde_json::{Value, json};

use crate::desktop::{Desktop, SetOnDrop, wait_until};
use crate::support::House;

/// A daemon that uses swaybg.
pub fn started(desktop: &Desktop) -> House {
    let mut house = House::on(desktop);
    house.configure("[backend]\ntype = \"swaybg\"\n");
    house.start();
    house
}

/// A picture of one colour in the library.
pub fn picture(house: &House, name: &str, color: [u8; 3]) -> i64 {
    let path = house.root().join(format!("{name}.png"));
    image::RgbImage::from_pixel(64, 36, image::Rgb(color)).save(&path).unwrap();
    house.import(&[&path])[0]
}

pub fn set(house: &House, body: &Value) -> Value {
    house.client().post("/wallpaper/set", body).ok()
}

pub fn state(house: &House) -> PathBuf {
    house.root().join(".local/state/murald")
}

fn link(house: &House, name: &str) -> Option<PathBuf> {
    fs::read_link(state(house).join("current").join(name)).ok()
}

fn palette(house: &House) -> Value {
    serde_json::from_slice(&fs::read(state(house).join("palette.json")).unwrap()).unwrap()
}

/// The path of a file in the library.
fn in_library(house: &House, name: &str) -> PathBuf {
    house.images().join(name)
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    paths.flat_map(below).collect()
}

#[test]
fn links_and_colour_files_follow_every_change() {
    let desktop = Desktop::wayland(&["640x360", "640x360"]);
    let mut house = started(&desktop);
    let (red, night) =
        (picture(&house, "red", [200, 30, 30]), picture(&house, "n'ight", [8, 8, 24]));
    let answer = set(&house, &json!({ "image_id": red }));
    // The order is the compositor's.
    assert_eq!(answer["monitors"].as_array().unwrap().len(), 2);
    for name in ["HEADLESS-1", "HEADLESS-2", "all"] {
        assert_eq!(link(&house, name), Some(in_library(&house, "red.png")), "{name}");
    }
    set(&house, &json!({ "image_id": night, "monitor": "HEADLESS-2" }));
    assert_eq!(link(&house, "HEADLESS-1"), Some(in_library(&house, "red.png")));
    assert_eq!(link(&house, "HEADLESS-2"), Some(in_library(&house, "n'ight.png")));
    assert_eq!(link(&house, "all"), Some(in_library(&house, "n'ight.png")));
    let found = palette(&house);
    let newest = &found["newest"];
    assert_eq!(*newest, found["monitors"]["HEADLESS-2"]);
    assert_eq!((&newest["monitor"], &newest["image_id"]), (&json!("HEADLESS-2"), &json!(night)));
    assert_eq!((&newest["image_name"], &newest["appearance"]), (&json!("n'ight"), &json!("dark")));
    assert_eq!(
        (&newest["background"], &newest["colors"]),
        (&json!("#080818"), &json!(["#080818"]))
    );
    assert_eq!(newest["still"], newest["path"]);
    // A shell reads the right values, even with a quote in the name.
    let script = format!(
        ". '{}/colors.sh'; printf '%s %s %s %s' \"$wallpaper\" $background $color7 $appearance",
        state(&house).display()
    );
    let said = Command::new("sh").args(["-c", &script]).output().unwrap();
    let expected = format!("{} #080818 #080818 dark", in_library(&house, "n'ight.png").display());
    assert_eq!(String::from_utf8_lossy(&said.stdout), expected);

    // An image is renamed, another is deleted.
    house.client().patch(&format!("/images/{red}"), &json!({ "name": "rose" })).ok();
    wait_until("the link follows the name", || {
        link(&house, "HEADLESS-1") == Some(in_library(&house, "rose.png"))
    });
    let ids = json!({ "ids": [night] }).to_string();
    house.client().send("DELETE", "/images", "", ids.as_bytes()).ok();
    // The monitor now shows the image that was set for all.
    wait_until("no link to the deleted image", || {
        let gone = Some(in_library(&house, "n'ight.png"));
        let newest = link(&house, "all");
        link(&house, "HEADLESS-2") != gone && newest == Some(in_library(&house, "rose.png"))
    });
    wait_until("the palettes of the new image", || {
        let of = palette(&house)["monitors"].clone();
        of.as_object().unwrap().values().all(|of| of["image_id"] == red)
    });

    // Files stay after a stop, are written again at a start, and are removed by `stop --clear`.
    house.ends_well();
    let left = link(&house, "HEADLESS-1");
    assert_eq!(left, Some(in_library(&house, "rose.png")));
    fs::remove_dir_all(state(&house)).unwrap();
    house.start();
    wait_until("the files are there again", || link(&house, "HEADLESS-1") == left);
    wait_until("the palette, too", || state(&house).join("colors.rasi").exists());
    // The parts of an extended image are cached while they are shown.
    set(&house, &json!({ "image_id": red, "mode": "extend" }));
    let cache = house.root().join("cache/murald/backends");
    assert!(files_below(&cache).len() >= 2, "{:?}", files_below(&cache));
    let stopped = house.murald(&["stop", "--clear"]).status().unwrap();
    assert!(stopped.success());
    house.wait();
    assert!(!state(&house).exists());
    assert_eq!(files_below(&cache), Vec::<PathBuf>::new());

    // `stop --clear` works without a daemon, too, and removes murald's files only.
    house.start();
    set(&house, &json!({ "image_id": red }));
    let mine = state(&house).join("current/mine");
    std::os::unix::fs::symlink("/nowhere", &mine).unwrap();
    set(&house, &json!({ "image_id": red, "monitor": "HEADLESS-1" }));
    house.kill9();
    let clear = || house.murald(&["stop", "--clear"]).output().unwrap();
    let first = clear();
    let told = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(first.status.success() && told.contains("; stopped 1 process"), "{first:?}");
    assert_eq!(files_below(&state(&house)), std::slice::from_ref(&mine));
    fs::remove_file(&mine).unwrap();
    fs::remove_dir(mine.parent().unwrap()).unwrap();
    let again = clear();
    let told = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(again.status.success() && told.contains("no wallpaper"), "{again:?}");
    let status = house.murald(&["status"]).output().unwrap();
    assert_eq!(status.status.code(), Some(69), "none was started");
}

/// Number of changes; `MURALD_CHANGES` sets it.
fn changes() -> usize {
    std::env::var("MURALD_CHANGES").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

#[test]
fn readers_never_find_a_missing_or_partial_file() {
    let desktop = Desktop::wayland(&["640x360"]);
    let house = started(&desktop);
    let ids = [picture(&house, "one", [200, 30, 30]), picture(&house, "two", [30, 30, 200])];
    set(&house, &json!({ "image_id": ids[0] }));
    let mut events = house.events("wallpaper_changed");
    let (done, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let stop = SetOnDrop(&done);
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    look(&state(&house));
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for change in 0..changes() {
            let id = ids[(change + 1) % 2];
            let house = &house;
            let asked = scope.spawn(move || set(house, &json!({ "image_id": id })));
            let event = events.wait_for("wallpaper_changed");
            // A client that has just got the event must find the new files.
            let linked = link(house, "HEADLESS-1").unwrap();
            assert_eq!(json!(linked), event["path"], "change {change}");
            assert_eq!(link(house, "all"), Some(linked), "change {change}");
            assert_eq!(palette(house)["newest"]["image_id"], event["image_id"]);
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
        assert!(bytes.starts_with(b"\x89PNG") && bytes.ends_with(b"IEND\xaeB`\x82"), "{name}");
    }
    let json: Value =
        serde_json::from_slice(&fs::read(state.join("palette.json")).unwrap()).unwrap();
    assert!(json["newest"]["accent"].is_string());
    for (name, end) in
        [("colors.sh", "appearance='dark'\n"), ("colors.css", ";\n"), ("colors.rasi", "}\n")]
    {
        let text = fs::read_to_string(state.join(name)).unwrap();
        assert!(text.contains("color7") && text.ends_with(end), "{name}: {text}");
    }
}

#[test]
fn animation_has_a_still_while_it_is_shown() {
    let desktop = Desktop::wayland(&["640x360"]);
    let house = started(&desktop);
    let still = |id: i64| {
        let image = house.client().get(&format!("/images/{id}")).ok();
        let checksum = image["checksum"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        state(&house).join("stills").join(format!("{checksum}.png"))
    };
    let path = house.root().join("moves.gif");
    let frames = [[10, 200, 10], [200, 10, 10]].map(|color| {
        image::Frame::new(image::RgbaImage::from_fn(64, 36, |_, _| {
            let [r, g, b] = color;
            image::Rgba([r, g, b, 255])
        }))
    });
    let mut encoder = image::codecs::gif::GifEncoder::new(fs::File::create(&path).unwrap());
    encoder.encode_frames(frames).unwrap();
    drop(encoder);
    let moves = house.import(&[&path])[0];
    let plain = picture(&house, "plain", [1, 2, 3]);

    set(&house, &json!({ "image_id": moves }));
    let made = still(moves);
    assert_eq!(link(&house, "HEADLESS-1").as_ref(), Some(&made));
    assert_eq!(palette(&house)["newest"]["still"], json!(made));
    let picture = image::open(&made).unwrap().into_rgb8();
    assert_eq!(picture.dimensions(), (64, 36));
    let [r, g, b] = picture.get_pixel(3, 3).0;
    assert!(r < 40 && g > 170 && b < 40, "{r} {g} {b} is not the first frame");
    set(&house, &json!({ "image_id": plain }));
    assert_eq!(link(&house, "all"), Some(in_library(&house, "plain.png")));
    wait_until("the unused still is removed", || !made.exists());

    // A photograph with an Exif orientation has a still; with `stills = "png"` every picture has.
    let photo = house.root().join("photo.jpg");
    let pixels = image::RgbImage::from_fn(64, 36, |x, _| image::Rgb([x as u8, 90, 9]));
    fs::write(&photo, crate::support::photographs::upright(&pixels)).unwrap();
    let photo = house.import(&[&photo])[0];
    let image = house.client().get(&format!("/images/{photo}")).ok();
    set(&house, &json!({ "image_id": photo }));
    assert_eq!(link(&house, "HEADLESS-1"), Some(still(photo)));
    let size = image::image_dimensions(still(photo)).unwrap();
    assert_eq!((json!(size.0), json!(size.1)), (image["width"].clone(), image["height"].clone()));
    // Colours of a telephone, which most programs would show pale.
    let photo = house.root().join("wide.jpg");
    let mut encoder = image::codecs::jpeg::JpegEncoder::new(fs::File::create(&photo).unwrap());
    encoder.set_icc_profile(moxcms::ColorProfile::new_display_p3().encode().unwrap()).unwrap();
    let pixels = image::RgbImage::from_pixel(64, 36, image::Rgb([180, 120, 90]));
    encoder.encode_image(&pixels).unwrap();
    let photo = house.import(&[&photo])[0];
    set(&house, &json!({ "image_id": photo }));
    assert_eq!(link(&house, "HEADLESS-1"), Some(still(photo)));
    let image::Rgb(pixel) = *image::open(still(photo)).unwrap().into_rgb8().get_pixel(9, 9);
    let is_near = pixel.iter().zip([190, 117, 84]).all(|(is, srgb)| is.abs_diff(srgb) < 4);
    assert!(is_near, "{pixel:?} is not sRGB");
    assert!(!fs::read(still(photo)).unwrap().windows(4).any(|chunk| chunk == b"iCCP"));
    set(&house, &json!({ "image_id": plain }));
    let mut events = house.events("config_changed");
    house.client().patch("/config/desktop", &json!({ "stills": "png" })).ok();
    assert_eq!(events.wait_for("config_changed")["sections"], json!(["desktop"]));
    wait_until("the PNG copy", || link(&house, "HEADLESS-1") == Some(still(plain)));
    assert!(still(plain).exists());
    house.client().patch("/config/desktop", &json!({ "stills": "jpg" })).fails(400);
    house.client().patch("/config/desktop", &json!({ "still": "png" })).fails(400);
}

#[test]
fn unwritable_state_directory_does_not_prevent_a_change() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut house = House::on(&desktop);
    house.configure("[backend]\ntype = \"swaybg\"\n");
    // A file is in the place of the directory.
    fs::create_dir_all(state(&house).parent().unwrap()).unwrap();
    fs::write(state(&house), "").unwrap();
    house.start();
    let ids = [picture(&house, "one", [200, 30, 30]), picture(&house, "two", [30, 30, 200])];
    for id in ids {
        assert_eq!(set(&house, &json!({ "image_id": id }))["status"], "set");
    }
    let log = house.log();
    let told = log.matches("for other programs: ").count();
    assert_eq!(told, 1, "{log}");
    // When the directory can be written again, the next change writes the files.
    fs::remove_file(state(&house)).unwrap();
    set(&house, &json!({ "image_id": ids[0] }));
    assert_eq!(link(&house, "all"), Some(in_library(&house, "one.png")));
}
