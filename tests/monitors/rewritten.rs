//! Tests a picture of a watched directory that is rewritten or deleted while it is shown.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, GREEN, RED, Rgb, plain, see, set};
use crate::support::TestDaemon;

/// A picture of half the height, with a border above and below if the whole of it is visible.
fn draw(path: &Path, color: Rgb) {
    let part = path.with_extension("part");
    let picture = image::RgbImage::from_pixel(640, 120, image::Rgb(color));
    picture
        .save_with_format(&part, image::ImageFormat::Png)
        .unwrap();
    fs::rename(part, path).unwrap();
}

fn rewritten(desktop: &Desktop, [one, other]: [&str; 2], backend: &str) {
    let mut daemon = TestDaemon::on(desktop);
    let walls = daemon.root().join("walls");
    fs::create_dir(&walls).unwrap();
    daemon.configure(&format!(
        "backend.type = '{backend}'\n[library]\nwatch = [{walls:?}]\n"
    ));
    let (path, still) = (walls.join("mine.png"), walls.join("still.png"));
    draw(&path, RED);
    fs::copy(plain(&daemon, "blue.png", BLUE), &still).unwrap();
    daemon.start();
    let client = daemon.client();
    let id = |name: &str| {
        let list = client.get(&format!("/images?name={name}")).ok();
        list["data"].get(0).and_then(|image| image["id"].as_i64())
    };
    wait_until("both pictures", || {
        id("mine").is_some() && id("still").is_some()
    });
    let (mine, second) = (id("mine").unwrap(), id("still").unwrap());
    let body = json!({ "image_id": mine, "monitor": one, "fit": "contain", "transition": "none" });
    client.post("/wallpaper/set", &body).ok();
    set(&daemon, second, other).ok();
    let history = || client.get("/images/history").ok()["pagination"]["total_items"].clone();
    let before = (history(), current(&daemon, one));
    assert_eq!(before.1["image_id"], mine);
    let mut events = daemon.events("wallpaper_changed");
    // The file is replaced by another one, overwritten, and rewritten while no daemon runs.
    draw(&path, GREEN);
    see(desktop, &daemon, one, GREEN);
    see(desktop, &daemon, other, BLUE);
    expect(&events.wait_for("wallpaper_changed"), mine, one, backend);
    draw(&walls.join(".hidden.png"), BLUE);
    fs::copy(walls.join(".hidden.png"), &path).unwrap();
    see(desktop, &daemon, one, BLUE);
    expect(&events.wait_for("wallpaper_changed"), mine, one, backend);
    assert_eq!((history(), current(&daemon, one)), before);
    drop(events);
    assert_eq!(daemon.stop(), Some(0));
    draw(&path, RED);
    daemon.start();
    see(desktop, &daemon, one, RED);
    see(desktop, &daemon, other, BLUE);
    wait_until("the same assignment", || {
        (history(), current(&daemon, one)) == before
    });
    // Later changes show the file as it is now.
    set(&daemon, second, one).ok();
    see(desktop, &daemon, one, BLUE);
    set(&daemon, mine, one).ok();
    see(desktop, &daemon, one, RED);
    // A request does not have to wait until the change was noticed.
    draw(&path, GREEN);
    let body = json!({ "path": path, "monitor": one, "fit": "contain", "transition": "none" });
    assert_eq!(client.post("/wallpaper/set", &body).ok()["image_id"], mine);
    see(desktop, &daemon, one, GREEN);
    fs::remove_file(&path).unwrap();
    wait_until("the end of its row", || id("mine").is_none());
    // Its monitor shows its previous picture again.
    see(desktop, &daemon, one, BLUE);
    see(desktop, &daemon, other, BLUE);
    wait_until("the previous picture", || {
        current(&daemon, one)["image_id"] == second
    });
    // Nothing is left that could replace this picture.
    let shown = format!("current:{other}");
    let words = ["images", "delete", &shown, "--yes", "--forever", "--files"];
    let output = daemon.murald(&words).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 image deleted\n");
    assert!(!still.exists());
    see(desktop, &daemon, other, BLUE);
    assert_eq!(current(&daemon, other), Value::Null);
}

/// The entry of a monitor in `current`; null if it has none yet.
fn current(daemon: &TestDaemon, monitor: &str) -> Value {
    let current = daemon.client().get("/wallpaper/current").ok();
    let all = current["monitors"].as_array().unwrap();
    let one = all.iter().find(|one| one["monitor_name"] == monitor);
    one.cloned().unwrap_or_default()
}

#[track_caller]
fn expect(event: &Value, image: i64, monitor: &str, backend: &str) {
    let told = ["image_id", "monitors", "source", "backend"].map(|field| event[field].clone());
    let expected = [
        json!(image),
        json!([monitor]),
        json!("restore"),
        json!(backend),
    ];
    assert_eq!(told, expected, "{event}");
}

#[test]
fn swaybg_shows_a_rewritten_file_again() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    rewritten(&desktop, ["HEADLESS-1", "HEADLESS-2"], "swaybg");
}

#[test]
fn builtin_shows_a_rewritten_file_again() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    rewritten(&desktop, ["HEADLESS-1", "HEADLESS-2"], "builtin");
}

#[test]
fn feh_shows_a_rewritten_file_again() {
    let desktop = Desktop::x11(&["640x480", "640x480"]);
    rewritten(&desktop, ["VIRTUAL-1", "VIRTUAL-2"], "feh");
}
