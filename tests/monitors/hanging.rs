//! Pictures on real monitors, asked for over the socket: what is seen, what is told, what is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::House;
use crate::support::client::Answer;

type Rgb = [u8; 3];

const RED: Rgb = [200, 30, 30];
const GREEN: Rgb = [30, 180, 60];
const BLUE: Rgb = [40, 60, 200];

/// A plain picture; setters may darken it by a level or two.
fn plain(house: &House, name: &str, color: Rgb) -> PathBuf {
    let path = house.root().join(name);
    image::RgbImage::from_pixel(640, 360, image::Rgb(color)).save(&path).unwrap();
    path
}

/// The colour of an output's middle.
fn seen(desktop: &Desktop, house: &House, output: &str) -> Rgb {
    let path = house.root().join(format!("shot-{output}.png"));
    desktop.shot(&path, output);
    let picture = image::open(&path).unwrap().into_rgb8();
    picture.get_pixel(picture.width() / 2, picture.height() / 2).0
}

fn near(one: Rgb, other: Rgb) -> bool {
    one.iter().zip(other).all(|(&a, b)| a.abs_diff(b) <= 4)
}

#[track_caller]
fn see(desktop: &Desktop, house: &House, output: &str, color: Rgb) {
    wait_until(&format!("{color:?} on {output}"), || near(seen(desktop, house, output), color));
}

fn set(house: &House, image: i64, monitor: &str) -> Answer {
    house.client().post("/wallpaper/set", &json!({ "image_id": image, "monitor": monitor }))
}

/// Red, green and blue in the library.
fn three(house: &House) -> [i64; 3] {
    let paths = [("red", RED), ("green", GREEN), ("blue", BLUE)]
        .map(|(name, color)| plain(house, &format!("{name}.png"), color));
    let one = |path: &PathBuf| house.import(&[path])[0];
    [one(&paths[0]), one(&paths[1]), one(&paths[2])]
}

/// The processes that run this program for this user's desktop, by their environment.
fn running(program: &str, runtime: &str) -> Vec<u32> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let name = read("comm");
        let environment = read("environ");
        let wanted = format!("XDG_RUNTIME_DIR={runtime}");
        let ours = environment.split(|&byte| byte == 0).any(|one| one == wanted.as_bytes());
        if ours && String::from_utf8_lossy(&name).trim() == program {
            pids.push(pid);
        }
    }
    pids
}

/// Samples an output as fast as it goes until told to stop; the colours that were neither.
fn watch_for_gaps(
    desktop: &Desktop,
    house: &House,
    output: &str,
    allowed: &[Rgb],
    change: impl FnOnce(),
) -> usize {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut samples = 0;
            while !done.load(Ordering::Relaxed) {
                let color = middle(desktop, house, output);
                assert!(allowed.iter().any(|&one| near(color, one)), "saw {color:?} on {output}");
                samples += 1;
            }
            samples
        });
        // Also when the change fails, or the watcher would look for ever.
        let told = Tell(&done);
        change();
        drop(told);
        watcher.join().unwrap()
    })
}

/// Straight from grim, without the encoding of a PNG: 15 ms.
fn middle(desktop: &Desktop, house: &House, output: &str) -> Rgb {
    let path = house.root().join("watch.ppm");
    let mut grim = desktop.command("grim");
    let status = grim.args(["-t", "ppm", "-o", output]).arg(&path).status();
    assert!(status.unwrap().success());
    let bytes = fs::read(&path).unwrap();
    // A header of three lines, then the pixels, row after row.
    let mut lines = bytes.splitn(4, |&byte| byte == b'\n').skip(1);
    let size = String::from_utf8(lines.next().unwrap().to_vec()).unwrap();
    let (width, height) = size.split_once(' ').unwrap();
    let (width, height): (usize, usize) = (width.parse().unwrap(), height.parse().unwrap());
    let pixels = lines.nth(1).unwrap();
    pixels[(height / 2 * width + width / 2) * 3..][..3].try_into().unwrap()
}

struct Tell<'a>(&'a AtomicBool);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn each_monitor_of_sway_shows_its_own_picture() {
    let desktop = Desktop::wayland(&[]);
    let mut house = House::on(&desktop);
    house.start();
    let [red, green, blue] = three(&house);
    let mut events = house.events("wallpaper_changed");

    let answer = set(&house, red, "HEADLESS-1").ok();
    let expected = json!({
        "status": "set", "image_id": red, "monitor": "HEADLESS-1", "monitors": ["HEADLESS-1"],
        "mode": "individual", "backend": "swaybg",
    });
    assert_eq!(answer, expected);
    set(&house, green, "HEADLESS-2").ok();
    see(&desktop, &house, "HEADLESS-1", RED);
    see(&desktop, &house, "HEADLESS-2", GREEN);

    let first = events.wait_for("wallpaper_changed");
    let fields: Vec<&String> = first.as_object().unwrap().keys().collect();
    let wanted = [
        "image_id",
        "media_type",
        "path",
        "tags",
        "monitors",
        "mode",
        "source",
        "backend",
        "colors",
        "timestamp",
    ];
    assert_eq!(fields, wanted);
    assert_eq!((&first["source"], &first["monitors"]), (&json!("manual"), &json!(["HEADLESS-1"])));
    assert_eq!(events.wait_for("wallpaper_changed")["image_id"], green);

    let current = house.client().get("/wallpaper/current").ok();
    assert_eq!(current["image_id"], green);
    let hung: Vec<(&Value, &Value)> = current["monitors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|monitor| (&monitor["monitor_name"], &monitor["image_id"]))
        .collect();
    assert_eq!(hung, [(&json!("HEADLESS-1"), &json!(red)), (&json!("HEADLESS-2"), &json!(green))]);

    // All at once, and the history of it, newest first.
    let body = json!({ "image_id": blue, "mode": "clone" });
    let answer = house.client().post("/wallpaper/set", &body).ok();
    assert_eq!(answer["monitors"], json!(["HEADLESS-1", "HEADLESS-2"]));
    see(&desktop, &house, "HEADLESS-1", BLUE);
    see(&desktop, &house, "HEADLESS-2", BLUE);
    let history = house.client().get("/images/history?limit=2").ok();
    let ids: Vec<&Value> =
        history.as_array().unwrap().iter().map(|entry| &entry["image_id"]).collect();
    assert_eq!(ids, [&json!(blue), &json!(green)]);
    assert_eq!(running("swaybg", desktop.var("XDG_RUNTIME_DIR").unwrap()).len(), 1);
}

#[test]
fn no_frame_shows_neither_picture() {
    let desktop = Desktop::wayland(&["1920x1080"]);
    let mut house = House::on(&desktop);
    house.start();
    let [red, green, _] = three(&house);
    set(&house, red, "HEADLESS-1").ok();
    see(&desktop, &house, "HEADLESS-1", RED);
    let samples = watch_for_gaps(&desktop, &house, "HEADLESS-1", &[RED, GREEN], || {
        for round in 0..10 {
            set(&house, if round % 2 == 0 { green } else { red }, "HEADLESS-1").ok();
        }
    });
    assert!(samples >= 10, "only {samples} samples");
}

#[test]
fn the_daemon_comes_and_goes_under_a_picture() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap().to_owned();
    let mut house = House::on(&desktop);
    house.start();
    let [red, ..] = three(&house);
    set(&house, red, "HEADLESS-1").ok();
    see(&desktop, &house, "HEADLESS-1", RED);
    let setter = running("swaybg", &runtime);
    // `House` is borrowed by the watcher, so another one looks.
    let eye = House::on(&desktop);
    watch_for_gaps(&desktop, &eye, "HEADLESS-1", &[RED], || {
        for kill in [false, true, false] {
            if kill {
                house.kill9();
            } else {
                assert_eq!(house.stop(), Some(0));
            }
            house.start();
            let mut events = house.events("wallpaper_changed");
            set(&house, red, "HEADLESS-1").ok();
            events.wait_for("wallpaper_changed");
        }
    });
    assert_eq!(running("swaybg", &runtime), setter, "taken over, not replaced");
    let answer = house.client().post("/shutdown", &json!({ "clear": true })).ok();
    assert_eq!(answer["status"], "shutting_down");
    assert_eq!(house.wait().code(), Some(0));
    assert!(running("swaybg", &runtime).is_empty());
    for setters in fs::read_dir(Path::new(&runtime).join("murald")).unwrap().flatten() {
        let left: Vec<_> = fs::read_dir(setters.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_setter_that_dies_is_back_within_a_second() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap().to_owned();
    let mut house = House::on(&desktop);
    house.start();
    let [red, ..] = three(&house);
    set(&house, red, "HEADLESS-1").ok();
    let mut events = house.events("wallpaper_changed,backend_unavailable");
    for _ in 0..3 {
        let victim = running("swaybg", &runtime)[0];
        let killed = Instant::now();
        assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
        let changed = events.wait_for("wallpaper_changed");
        assert_eq!(changed["source"], "restore");
        assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
        see(&desktop, &house, "HEADLESS-1", RED);
    }
    // The fourth within a minute is one too many.
    let victim = running("swaybg", &runtime)[0];
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
    let gone = events.wait_for("backend_unavailable");
    assert_eq!((&gone["backend"], gone.get("retrying")), (&json!("swaybg"), None));
    // Asked for again it is tried again.
    set(&house, red, "HEADLESS-1").ok();
    see(&desktop, &house, "HEADLESS-1", RED);
}

#[test]
fn a_monitor_that_comes_back_gets_its_picture_back() {
    let desktop = Desktop::x11(&["--pluggable", "1280x720", "1024x768"]);
    let mut house = House::on(&desktop);
    house.start();
    let [red, green, _] = three(&house);
    set(&house, red, "DUMMY0").ok();
    set(&house, green, "DUMMY1").ok();
    see(&desktop, &house, "DUMMY1", GREEN);
    desktop.run("unplug", &["DUMMY1"]);
    wait_until("one monitor less", || {
        house.client().get("/monitors").ok().as_array().unwrap().len() == 1
    });
    let body =
        house.client().post("/wallpaper/set", &json!({"image_id": red, "monitor": "DUMMY1"}));
    assert!(body.fails(400)["error"].as_str().unwrap().contains("DUMMY0"));
    let mut events = house.events("wallpaper_changed");
    assert_eq!(desktop.run("plug", &["1024x768"]), "DUMMY1");
    let plugged = Instant::now();
    let changed = events.wait_for("wallpaper_changed");
    assert_eq!((&changed["source"], &changed["image_id"]), (&json!("restore"), &json!(green)));
    assert!(plugged.elapsed() < Duration::from_millis(500), "{:?}", plugged.elapsed());
    see(&desktop, &house, "DUMMY1", GREEN);
    see(&desktop, &house, "DUMMY0", RED);
}

#[test]
fn feh_hangs_pictures_under_x() {
    let desktop = Desktop::x11(&[]);
    let mut house = House::on(&desktop);
    house.start();
    let [red, green, blue] = three(&house);
    set(&house, red, "VIRTUAL-2").ok();
    see(&desktop, &house, "VIRTUAL-2", RED);
    see(&desktop, &house, "VIRTUAL-1", [0, 0, 0]);
    set(&house, green, "VIRTUAL-1").ok();
    see(&desktop, &house, "VIRTUAL-1", GREEN);
    see(&desktop, &house, "VIRTUAL-2", RED);
    assert_eq!(set(&house, blue, "*").ok()["backend"], "feh");
    see(&desktop, &house, "VIRTUAL-1", BLUE);
    assert!(!house.root().join(".fehbg").exists(), "the user's .fehbg is left alone");
}

#[test]
fn an_extended_picture_meets_at_the_seam() {
    let desktop = Desktop::wayland(&["1280x720", "1280x720"]);
    let mut house = House::on(&desktop);
    house.start();
    // Left half red, right half blue: the seam between the monitors is the seam of the picture.
    let path = house.root().join("halves.png");
    image::RgbImage::from_fn(2560, 720, |x, _| image::Rgb(if x < 1280 { RED } else { BLUE }))
        .save(&path)
        .unwrap();
    let id = house.import(&[&path])[0];
    let body = json!({ "image_id": id, "mode": "extend" });
    assert_eq!(house.client().post("/wallpaper/set", &body).ok()["mode"], "extend");
    see(&desktop, &house, "HEADLESS-1", RED);
    see(&desktop, &house, "HEADLESS-2", BLUE);
    let whole = house.root().join("whole.png");
    desktop.run("shot", &[whole.to_str().unwrap()]);
    let whole = image::open(&whole).unwrap().into_rgb8();
    assert!(near(whole.get_pixel(1279 - 2, 300).0, RED));
    assert!(near(whole.get_pixel(1280 + 2, 300).0, BLUE));
    assert_eq!(
        house.client().get("/wallpaper/current").ok()["image_path"],
        json!(in_library(&house))
    );
}

fn in_library(house: &House) -> PathBuf {
    house.images().join("halves.png")
}

#[test]
fn the_pictures_are_back_after_the_compositor_was_killed() {
    let mut desktop = Desktop::wayland(&["640x480", "800x600"]);
    let mut house = House::on(&desktop);
    house.start();
    let [red, green, _] = three(&house);
    set(&house, red, "HEADLESS-1").ok();
    set(&house, green, "HEADLESS-2").ok();
    for _ in 0..2 {
        let mut events = house.events("wallpaper_changed,backend_unavailable");
        desktop.again();
        let mut back = [events.wait_for("wallpaper_changed"), events.wait_for("wallpaper_changed")];
        back.sort_by_key(|event| event["image_id"].as_i64());
        for (event, id) in back.iter().zip([red, green]) {
            assert_eq!((&event["source"], &event["image_id"]), (&json!("restore"), &json!(id)));
        }
        see(&desktop, &house, "HEADLESS-1", RED);
        see(&desktop, &house, "HEADLESS-2", GREEN);
        assert_eq!(running("swaybg", desktop.var("XDG_RUNTIME_DIR").unwrap()).len(), 1);
    }
}

#[test]
fn a_setter_that_is_installed_later_is_found() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut house = House::on(&desktop);
    let swaybg = desktop.output("sh", &["-c", "command -v swaybg"]);
    house.only(&[]);
    house.start();
    let [red, ..] = three(&house);
    let refused = set(&house, red, "HEADLESS-1").fails(503);
    assert_eq!(refused["error_code"], "no_backend");
    assert!(refused["meta"]["checked"].as_array().unwrap().contains(&json!("swaybg")));
    house.client().get("/wallpaper/current").fails(503);
    let random = house.client().post("/wallpaper/random", &json!({})).fails(503);
    assert_eq!(random["error_code"], "no_backend");
    let known = || {
        let all = house.client().get("/backends").ok();
        let mut all = all.as_array().unwrap().iter();
        all.find(|backend| backend["name"] == "swaybg").unwrap().clone()
    };
    assert_eq!((&known()["installed"], &known()["missing"]), (&json!(false), &json!(["swaybg"])));
    std::os::unix::fs::symlink(swaybg, house.root().join("only/swaybg")).unwrap();
    assert_eq!((&known()["installed"], &known()["available"]), (&json!(true), &json!(true)));
    house.client().get("/wallpaper/current").ok();
    assert_eq!(set(&house, red, "HEADLESS-1").ok()["backend"], "swaybg");
    see(&desktop, &house, "HEADLESS-1", RED);
    assert_eq!(known()["active"], true);
}

#[test]
fn a_picture_that_leaves_the_library_stays_on_its_monitor() {
    let desktop = Desktop::wayland(&["640x480", "640x480", "640x480"]);
    let mut house = House::on(&desktop);
    house.start();
    let [red, green, blue] = three(&house);
    let body =
        json!({ "image_id": green, "mode": "extend", "monitors": ["HEADLESS-2", "HEADLESS-3"] });
    house.client().post("/wallpaper/set", &body).ok();
    set(&house, blue, "HEADLESS-1").ok();
    for id in [green, blue] {
        house
            .client()
            .send("DELETE", "/images", "", json!({ "ids": [id] }).to_string().as_bytes())
            .ok();
    }
    assert!(!house.images().join("green.png").exists());
    // Another swaybg has to show what was deleted.
    set(&house, red, "HEADLESS-2").ok();
    for (output, color) in [("HEADLESS-1", BLUE), ("HEADLESS-2", RED), ("HEADLESS-3", GREEN)] {
        see(&desktop, &house, output, color);
    }
    let held = house.root().join("cache/murald/setters/swaybg/held");
    let count = || fs::read_dir(&held).unwrap().count();
    assert_eq!(count(), 3);
    // So it does under the next daemon, and the one after it.
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    let setter = running("swaybg", runtime);
    for kill in [false, true] {
        match kill {
            true => house.kill9(),
            false => assert_eq!(house.stop(), Some(0)),
        }
        house.start();
        let mut events = house.events("wallpaper_changed");
        set(&house, red, "HEADLESS-2").ok();
        events.wait_for("wallpaper_changed");
        for (output, color) in [("HEADLESS-1", BLUE), ("HEADLESS-2", RED), ("HEADLESS-3", GREEN)] {
            see(&desktop, &house, output, color);
        }
        assert_eq!(running("swaybg", runtime), setter, "taken over, not replaced");
    }
    let blue = house.import(&[&plain(&house, "blue.png", BLUE)])[0];
    set(&house, blue, "HEADLESS-2").ok();
    for (output, color) in [("HEADLESS-1", BLUE), ("HEADLESS-2", BLUE), ("HEADLESS-3", GREEN)] {
        see(&desktop, &house, output, color);
    }
    set(&house, red, "*").ok();
    assert_eq!(count(), 1, "what no longer hangs is let go");
}

#[test]
fn a_setter_of_yesterday_goes_when_another_covers_its_screens() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    let mut house = House::on(&desktop);
    house.stub("awww", AWWW_TWO);
    house.stub("awww-daemon", AWWW_DAEMON);
    house.configure("[backend]\ntype = \"swaybg\"\n");
    house.start();
    let [red, green, _] = three(&house);
    set(&house, red, "HEADLESS-1").ok();
    set(&house, green, "HEADLESS-2").ok();
    let setter = running("swaybg", runtime);
    assert_eq!(house.stop(), Some(0));
    house.configure("[backend]\ntype = \"awww\"\n");
    house.start();
    wait_until("the old setter to go", || running("swaybg", runtime).is_empty());
    let held = house.root().join("cache/murald/setters/swaybg/held");
    wait_until("its cache to be emptied", || {
        fs::read_dir(&held).map_or(0, |entries| entries.count()) == 0
    });
    assert_eq!(running("sleep", runtime).len(), 1, "the new one's server");
    // And back again; what it left in the records is no trouble.
    assert_eq!(house.stop(), Some(0));
    house.configure("[backend]\ntype = \"swaybg\"\n");
    house.start();
    wait_until("the new setter to go", || running("sleep", runtime).is_empty());
    see(&desktop, &house, "HEADLESS-1", RED);
    see(&desktop, &house, "HEADLESS-2", GREEN);
    assert_ne!(running("swaybg", runtime), setter);
}

#[test]
fn what_cannot_hang_is_refused_plainly() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let mut house = House::on(&desktop);
    house.start();
    let client = house.client();
    client.post("/wallpaper/random", &json!({})).fails(404);
    let [red, green, blue] = three(&house);
    let post = |body: Value| client.post("/wallpaper/set", &body);
    post(json!({ "image_id": 999 })).fails(404);
    post(json!({ "image_id": red, "monitor": "DP-9" })).fails(400);
    post(json!({ "image_id": red, "monitors": ["HEADLESS-1", "DP-9"] })).fails(400);
    post(json!({ "image_id": red, "monitor": "*", "monitors": [] })).fails(400);
    post(json!({ "image_id": red, "mode": "stretch" })).fails(400);
    post(json!({ "image_id": "1" })).fails(400);
    post(json!({})).fails(400);
    client.send("POST", "/wallpaper/random", "", b"garbage").fails(400);

    // A file that is gone is an orphan.
    post(json!({ "image_id": green })).ok();
    let mut events = house.events("image_orphan_purged");
    fs::remove_file(house.images().join("green.png")).unwrap();
    post(json!({ "image_id": green })).fails(404);
    let purged = events.wait_for("image_orphan_purged");
    assert_eq!((&purged["image_id"], &purged["reason"]), (&json!(green), &json!("file_missing")));
    assert_eq!(purged["history_entries_purged"], 1);
    assert_eq!(client.get(&format!("/images/{green}")).status, 404);
    // Random takes what is there, and not what hangs already or is gone.
    post(json!({ "image_id": red })).ok();
    let more = (0..6).map(|at| plain(&house, &format!("gone{at}.png"), [9, 9, 9 + at]));
    let more: Vec<PathBuf> = more.collect();
    house.import(&more.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    for path in &more {
        fs::remove_file(house.images().join(path.file_name().unwrap())).unwrap();
    }
    let random = client.post("/wallpaper/random", &json!({})).ok();
    assert_eq!(random["image_id"], blue);
}

#[test]
fn hostile_names_arrive_whole() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let mut house = House::on(&desktop);
    house.start();
    for (number, name) in
        ["a b,c#d%20.png", "'quoted' \"twice\".png", "$(touch x);`.png", "größe ☃.png", "-o.png"]
            .iter()
            .enumerate()
    {
        let color = [200 - 30 * number as u8, 40 + 30 * number as u8, 90];
        let path = plain(&house, name, color);
        let id = house.import(&[&path])[0];
        set(&house, id, "HEADLESS-1").ok();
        see(&desktop, &house, "HEADLESS-1", color);
    }
}

/// Twenty a second, as somebody who turns a wheel; for 30 s in `MURALD_STORM_SECONDS=30`.
#[test]
fn the_last_of_many_requests_wins() {
    let seconds = std::env::var("MURALD_STORM_SECONDS").ok().and_then(|text| text.parse().ok());
    let rounds = 20 * seconds.unwrap_or(2_usize);
    let desktop = Desktop::wayland(&["1280x720", "640x480"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap().to_owned();
    let mut house = House::on(&desktop);
    house.start();
    let ids = three(&house);
    set(&house, ids[1], "*").ok();
    let before = Holdings::of(&house);
    let statuses: Vec<String> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..rounds)
            .map(|round| {
                let house = &house;
                let id = ids[(rounds - 1 - round) % 3];
                let waiting = scope.spawn(move || set(house, id, "HEADLESS-1").ok());
                std::thread::sleep(Duration::from_millis(50));
                waiting
            })
            .collect();
        let status = |answer: Value| answer["status"].as_str().unwrap().to_owned();
        asked.into_iter().map(|waiting| status(waiting.join().unwrap())).collect()
    });
    let superseded = statuses.iter().filter(|status| *status == "superseded").count();
    let shown = statuses.iter().filter(|status| *status == "set").count();
    eprintln!("of {rounds} requests {shown} were shown and {superseded} superseded");
    assert_eq!(statuses.last().unwrap(), "set");
    assert_eq!(shown + superseded, rounds);
    see(&desktop, &house, "HEADLESS-1", RED);
    see(&desktop, &house, "HEADLESS-2", GREEN);
    let current = house.client().get("/wallpaper/current").ok();
    assert_eq!(current["image_id"], ids[0]);
    wait_until("one swaybg", || running("swaybg", &runtime).len() == 1);
    let mut after = Holdings::of(&house);
    // Connections of the clients are closed a moment later than answered.
    wait_until(&format!("{before:?}, not more"), || {
        after = Holdings::of(&house);
        after == before
    });
}

/// What the daemon has of the system.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    /// Those that ended and were not fetched are among them.
    children: usize,
}

impl Holdings {
    fn of(house: &House) -> Self {
        let count =
            |name: &str| fs::read_dir(format!("/proc/{}/{name}", house.pid())).unwrap().count();
        let is_child = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let after = stat.rsplit(") ").next().unwrap_or_default();
            after.split(' ').nth(1) == Some(&house.pid().to_string())
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let children = pids.filter(is_child).count();
        Self { descriptors: count("fd"), threads: count("task"), children }
    }
}

/// An awww of which the calls are recorded, and that rejects what the real one would reject.
const AWWW: &str = r#"#!/bin/sh
printf '%s\0' "$@" >>"$HOME/calls"; printf '\n' >>"$HOME/calls"
case $1 in
query) [ -e "$HOME/server" ] || exit 1
       printf ': HEADLESS-1: 1280x720, scale: 1, currently displaying: color: 000000\n' ;;
img) [ -e "$HOME/server" ] || exit 1 ;;
*) exit 2 ;;
esac
"#;

const AWWW_DAEMON: &str = r#"#!/bin/sh
printf '%s\0' daemon "$@" >>"$HOME/calls"; printf '\n' >>"$HOME/calls"
[ "$1" = --no-cache ] || exit 2
: >"$HOME/server"
exec sleep 1000
"#;

/// Another client of it that knows two outputs.
const AWWW_TWO: &str = r#"#!/bin/sh
[ -e "$HOME/server" ] || exit 1
if [ "$1" = query ]; then
       printf ': HEADLESS-%s: 640x480, scale: 1, currently displaying: color: 000000\n' 1 2
fi
"#;

/// Another client of it that takes a picture and never says a word.
const AWWW_HANGS: &str = r#"#!/bin/sh
case $1 in
query) [ -e "$HOME/server" ] || exit 1
       printf ': HEADLESS-%s: 640x480, scale: 1, currently displaying: color: 000000\n' 1 2 ;;
img) : >"$HOME/hangs"; exec sleep 1000 ;;
esac
"#;

#[test]
fn who_waits_for_a_setter_that_hangs_is_told_that_the_daemon_ends() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    let mut house = House::on(&desktop);
    house.stub("awww", AWWW_HANGS);
    house.stub("awww-daemon", AWWW_DAEMON);
    house.configure("[backend]\ntype = \"swaybg\"\n");
    house.start();
    let [red, ..] = three(&house);
    let moving = house.root().join("moving.gif");
    let frames = ["-size", "16x16", "xc:red", "xc:blue", moving.to_str().unwrap()];
    desktop.output("convert", &frames);
    let moving = house.import(&[&moving])[0];
    set(&house, red, "*").ok();
    stops_while_it_hangs(&mut house, "/backends/awww/activate", json!({}), false);
    assert_eq!(running("swaybg", runtime).len(), 1, "what hung stays");

    let priorities = "selection_mode = \"auto\"\nauto_priorities.image = [\"swaybg\", \"awww\"]\n";
    house.configure(&format!("[backend]\n{priorities}"));
    house.start();
    let body = json!({ "image_id": moving, "monitor": "HEADLESS-1" });
    stops_while_it_hangs(&mut house, "/wallpaper/set", body, true);
    assert!(running("swaybg", runtime).is_empty(), "all is taken down");
    // The server of ours is a `sleep`.
    assert!(running("sleep", runtime).is_empty(), "also what was about to show");
}

/// Has the daemon end while a request waits for a setter for ever.
fn stops_while_it_hangs(house: &mut House, path: &str, body: Value, clear: bool) {
    let (client, hangs) = (house.client(), house.root().join("hangs"));
    let begun = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.post(path, &body));
        wait_until("the setter hangs", || hangs.exists());
        let begun = Instant::now();
        house.client().post("/shutdown", &json!({ "clear": clear })).ok();
        let answer = waiting.join().unwrap().fails(503);
        assert_eq!(answer["error"], "the daemon is ending");
        begun
    });
    assert_eq!(house.wait().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(!house.log().contains("does not end in time"), "{}", house.log());
    fs::remove_file(hangs).unwrap();
}

#[test]
fn awww_is_told_by_its_command_line() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let mut house = House::on(&desktop);
    house.stub("awww", AWWW);
    house.stub("awww-daemon", AWWW_DAEMON);
    house.start();
    let path = plain(&house, "a b.png", RED);
    let id = house.import(&[&path])[0];
    assert_eq!(set(&house, id, "HEADLESS-1").ok()["backend"], "awww");
    let calls = fs::read_to_string(house.root().join("calls")).unwrap();
    let calls: Vec<Vec<&str>> =
        calls.lines().map(|line| line.trim_end_matches('\0').split('\0').collect()).collect();
    let daemon = calls.iter().filter(|call| call[0] == "daemon").collect::<Vec<_>>();
    assert_eq!(daemon, [&vec!["daemon", "--no-cache"]]);
    let library = house.images().join("a b.png");
    let images = calls.iter().filter(|call| call[0] == "img").collect::<Vec<_>>();
    let expected = vec![
        "img",
        "--outputs",
        "HEADLESS-1",
        "--resize",
        "crop",
        "--fill-color",
        "000000",
        "--filter",
        "Lanczos3",
        "--transition-type",
        "wipe",
        "--transition-step",
        "90",
        "--transition-duration",
        "3",
        "--transition-fps",
        "60",
        "--transition-angle",
        "45",
        "--transition-pos",
        "center",
        "--transition-bezier",
        "0.25,0.1,0.25,1.0",
        "--transition-wave",
        "20,20",
        "--",
        Path::new(&library).to_str().unwrap(),
    ];
    assert_eq!(images, [&expected]);

    // Where the settings cannot say so, another one is not taken into use.
    let writable = fs::metadata(house.config_file()).unwrap().permissions();
    fs::set_permissions(house.config_file(), fs::Permissions::from_mode(0o444)).unwrap();
    let refused = house.client().post("/backends/swaybg/activate", &json!({})).fails(500);
    assert!(refused.to_string().contains("config.toml"), "{refused}");
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    wait_until("awww alone again", || running("swaybg", runtime).is_empty());
    fs::set_permissions(house.config_file(), writable).unwrap();

    // Another setter by name, and one that is not there.
    let answer = house.client().post("/backends/swaybg/activate", &json!({})).ok();
    assert_eq!(answer, json!({ "status": "activated", "backend": "swaybg" }));
    see(&desktop, &house, "HEADLESS-1", RED);
    assert_eq!(house.client().get("/config").ok()["backend"]["type"], "swaybg");
    let refused = house.client().post("/backends/hyprpaper/activate", &json!({})).fails(503);
    assert_eq!(refused["error_code"], "no_backend");
    assert_eq!(refused["meta"]["checked"], json!(["hyprpaper", "hyprctl"]));
    assert!(refused["error"].as_str().unwrap().contains("not installed"), "{refused}");
    house.client().post("/backends/nitrogen/activate", &json!({})).fails(404);
}
