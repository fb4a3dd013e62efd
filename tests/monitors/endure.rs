//! Tests daemons, backends, compositors, monitors and files that disappear and return while pictures are
//! shown.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use image::{Rgb, RgbImage};
use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::scene::{BLUE, GREEN, RED, plain, running, see, set, three, watch_for_gaps};
use crate::support::client::Events;
use crate::support::dead_disk::{DeadDisk, Mounted};
use crate::support::{TestDaemon, left_out};

#[test]
fn picture_stays_while_the_daemon_restarts() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap().to_owned();
    let mut daemon = TestDaemon::started_on(&desktop);
    let [red, ..] = three(&daemon);
    set(&daemon, red, "HEADLESS-1").ok();
    see(&desktop, &daemon, "HEADLESS-1", RED);
    let process = running("swaybg", &runtime);
    // The watcher borrows a `TestDaemon`, so it gets one of its own.
    let eye = TestDaemon::on(&desktop);
    watch_for_gaps(&desktop, &eye, "HEADLESS-1", &[RED], || {
        for kill in [false, true, false] {
            if kill {
                daemon.kill9();
            } else {
                assert_eq!(daemon.stop(), Some(0));
            }
            daemon.start();
            let mut events = daemon.events("wallpaper_changed");
            set(&daemon, red, "HEADLESS-1").ok();
            events.wait_for("wallpaper_changed");
        }
    });
    assert_eq!(
        running("swaybg", &runtime),
        process,
        "taken over, not replaced"
    );
    let answer = daemon
        .client()
        .post("/shutdown", &json!({ "clear": true }))
        .ok();
    assert_eq!(answer["status"], "shutting_down");
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(running("swaybg", &runtime).is_empty());
    for backends in fs::read_dir(Path::new(&runtime).join("murald"))
        .unwrap()
        .flatten()
    {
        let left: Vec<_> = fs::read_dir(backends.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn backend_that_dies_is_restarted() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap().to_owned();
    let daemon = TestDaemon::started_on(&desktop);
    let [red, ..] = three(&daemon);
    set(&daemon, red, "HEADLESS-1").ok();
    let mut events = daemon.events("wallpaper_changed,backend_unavailable");
    // The second and the third restart are delayed.
    for pause in [0, 1, 2] {
        let victim = running("swaybg", &runtime)[0];
        let killed = Instant::now();
        assert!(
            Command::new("kill")
                .args(["-9", &victim.to_string()])
                .status()
                .unwrap()
                .success()
        );
        let changed = events.wait_for("wallpaper_changed");
        assert!(
            killed.elapsed().as_secs() >= pause,
            "{pause} s: {:?}",
            killed.elapsed()
        );
        assert_eq!(changed["source"], "restore");
        see(&desktop, &daemon, "HEADLESS-1", RED);
    }
    // The fourth exit within a minute is one too many.
    let victim = running("swaybg", &runtime)[0];
    assert!(
        Command::new("kill")
            .args(["-9", &victim.to_string()])
            .status()
            .unwrap()
            .success()
    );
    let gone = events.wait_for("backend_unavailable");
    assert_eq!(
        (&gone["backend"], gone.get("retrying")),
        (&json!("swaybg"), None)
    );
    let why = daemon.client().get("/why").ok()[0].clone();
    let told = why["text"].as_str().unwrap();
    assert!(
        told.contains("not on the screen") && told.contains("keeps exiting unexpectedly"),
        "{told}"
    );
    assert_eq!(why["last_failure"]["image_id"], red);
    // A new request starts the backend again.
    set(&daemon, red, "HEADLESS-1").ok();
    see(&desktop, &daemon, "HEADLESS-1", RED);
}

#[test]
fn reconnected_monitor_gets_its_picture_back() {
    let desktop = Desktop::x11(&["--pluggable", "1280x720", "1024x768"]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, _] = three(&daemon);
    set(&daemon, red, "DUMMY0").ok();
    set(&daemon, green, "DUMMY1").ok();
    see(&desktop, &daemon, "DUMMY1", GREEN);
    desktop.run("unplug", &["DUMMY1"]);
    wait_until("one monitor less", || {
        daemon
            .client()
            .get("/monitors")
            .ok()
            .as_array()
            .unwrap()
            .len()
            == 1
    });
    let body = daemon.client().post(
        "/wallpaper/set",
        &json!({"image_id": red, "monitor": "DUMMY1"}),
    );
    assert!(
        body.fails(400)["error"]
            .as_str()
            .unwrap()
            .contains("DUMMY0")
    );
    let mut events = daemon.events("wallpaper_changed");
    assert_eq!(desktop.run("plug", &["1024x768"]), "DUMMY1");
    let changed = events.wait_for("wallpaper_changed");
    assert_eq!(
        (&changed["source"], &changed["image_id"]),
        (&json!("restore"), &json!(green))
    );
    see(&desktop, &daemon, "DUMMY1", GREEN);
    see(&desktop, &daemon, "DUMMY0", RED);
}

#[test]
fn pictures_are_restored_after_the_compositor_was_killed() {
    let (desktop, _daemon) = killed_twice("swaybg");
    assert_eq!(
        running("swaybg", desktop.var("XDG_RUNTIME_DIR").unwrap()).len(),
        1
    );
}

#[test]
fn builtin_draws_again_after_the_compositor_was_killed() {
    let (_desktop, daemon) = killed_twice("builtin");
    assert_eq!(
        daemon.client().get("/wallpaper/current").ok()["backend"],
        "builtin"
    );
}

/// A desktop that was killed twice while a backend showed pictures.
fn killed_twice(backend: &str) -> (Desktop, TestDaemon) {
    let mut desktop = Desktop::wayland(&["640x480", "800x600"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure(&format!("[backend]\ntype = '{backend}'\n"));
    daemon.start();
    let [red, green, _] = three(&daemon);
    set(&daemon, red, "HEADLESS-1").ok();
    set(&daemon, green, "HEADLESS-2").ok();
    for _ in 0..2 {
        let mut events = daemon.events("wallpaper_changed,backend_unavailable");
        desktop.again();
        let mut back = [
            events.wait_for("wallpaper_changed"),
            events.wait_for("wallpaper_changed"),
        ];
        back.sort_by_key(|event| event["image_id"].as_i64());
        for (event, id) in back.iter().zip([red, green]) {
            assert_eq!(
                (&event["source"], &event["image_id"]),
                (&json!("restore"), &json!(id))
            );
            assert_eq!(event["backend"], backend);
        }
        see(&desktop, &daemon, "HEADLESS-1", RED);
        see(&desktop, &daemon, "HEADLESS-2", GREEN);
    }
    (desktop, daemon)
}

#[test]
fn backend_that_is_installed_later_is_found() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut daemon = TestDaemon::on(&desktop);
    let swaybg = desktop.output("sh", &["-c", "command -v swaybg"]);
    daemon.only(&[]);
    daemon.configure("[backend.builtin]\nenabled = false\n");
    daemon.start();
    let [red, ..] = three(&daemon);
    let refused = set(&daemon, red, "HEADLESS-1").fails(503);
    assert_eq!(refused["error_code"], "no_backend");
    assert!(
        refused["meta"]["checked"]
            .as_array()
            .unwrap()
            .contains(&json!("swaybg"))
    );
    let told = refused["error"].as_str().unwrap();
    assert!(
        told.contains("backend.builtin.enabled") && told.contains(", swaybg"),
        "{told}"
    );
    let current = daemon.client().get("/wallpaper/current").fails(503);
    assert_eq!(current["error"], refused["error"]);
    let random = daemon
        .client()
        .post("/wallpaper/random", &json!({}))
        .fails(503);
    assert_eq!(random["error_code"], "no_backend");
    let known = || {
        let all = daemon.client().get("/backends").ok();
        let mut all = all.as_array().unwrap().iter();
        all.find(|backend| backend["name"] == "swaybg")
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&known()["installed"], &known()["missing"]),
        (&json!(false), &json!(["swaybg"]))
    );
    std::os::unix::fs::symlink(swaybg, daemon.root().join("only/swaybg")).unwrap();
    assert_eq!(
        (&known()["installed"], &known()["available"]),
        (&json!(true), &json!(true))
    );
    daemon.client().get("/wallpaper/current").ok();
    assert_eq!(set(&daemon, red, "HEADLESS-1").ok()["backend"], "swaybg");
    see(&desktop, &daemon, "HEADLESS-1", RED);
    assert_eq!(known()["active"], true);
}

#[test]
fn builtin_draws_if_nothing_else_is_installed() {
    let desktop = Desktop::wayland(&["640x480"]);
    let mut daemon = TestDaemon::on(&desktop);
    let swaybg = desktop.output("sh", &["-c", "command -v swaybg"]);
    daemon.only(&[]);
    daemon.start();
    let [red, green, blue] = three(&daemon);
    assert_eq!(set(&daemon, red, "HEADLESS-1").ok()["backend"], "builtin");
    see(&desktop, &daemon, "HEADLESS-1", RED);
    let all = daemon.client().get("/backends").ok();
    let names: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!((names.len(), names[6]), (7, &json!("builtin")));
    let own = &all[6];
    assert_eq!(
        (&own["installed"], &own["available"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (&own["active"], &own["missing"]),
        (&json!(true), &json!([]))
    );
    // The next daemon adopts it. No other process has this desktop's directory in its arguments.
    let words = format!(
        "[d]raw --socket {}",
        desktop.var("XDG_RUNTIME_DIR").unwrap()
    );
    let drawing = || desktop.output("sh", &["-c", &format!("pgrep -f '{words}' || [ $? = 1 ]")]);
    let before = drawing();
    daemon.kill9();
    daemon.start();
    see(&desktop, &daemon, "HEADLESS-1", RED);
    assert_eq!(drawing(), before);
    assert_eq!(set(&daemon, green, "HEADLESS-1").ok()["backend"], "builtin");
    see(&desktop, &daemon, "HEADLESS-1", GREEN);
    // The process is killed, and restarted.
    desktop.output("kill", &["-9", &before]);
    wait_until("another process", || {
        !["", before.as_str()].contains(&drawing().as_str())
    });
    see(&desktop, &daemon, "HEADLESS-1", GREEN);
    // A backend that was installed in the meantime is used once it is activated.
    std::os::unix::fs::symlink(swaybg, daemon.root().join("only/swaybg")).unwrap();
    assert_eq!(set(&daemon, blue, "HEADLESS-1").ok()["backend"], "builtin");
    daemon
        .client()
        .post("/backends/swaybg/activate", &json!({}))
        .ok();
    assert_eq!(set(&daemon, red, "HEADLESS-1").ok()["backend"], "swaybg");
    see(&desktop, &daemon, "HEADLESS-1", RED);
}

fn deleted_picture_is_replaced(desktop: &Desktop, backend: &str) {
    let mut daemon = TestDaemon::on(desktop);
    daemon.configure(&format!("backend.type = '{backend}'\n"));
    daemon.start();
    let [red, green, blue] = three(&daemon);
    set(&daemon, red, "HEADLESS-1").ok();
    set(&daemon, green, "HEADLESS-1").ok();
    set(&daemon, blue, "HEADLESS-2").ok();
    let client = daemon.client();
    let delete = |id: i64| {
        let body = json!({ "ids": [id] }).to_string();
        client.send("DELETE", "/images", "", body.as_bytes()).ok();
    };
    let current = || {
        let current = client.get("/wallpaper/current").ok();
        let monitors = current["monitors"].as_array().unwrap().iter();
        let shown = monitors.map(|one| one["image_id"].as_i64().unwrap());
        shown.collect::<Vec<_>>()
    };
    let mut events = daemon.events("wallpaper_changed");
    delete(green);
    let event = events.wait_for("wallpaper_changed");
    let told = ["image_id", "monitors", "source"].map(|field| event[field].clone());
    assert_eq!(told, [json!(red), json!(["HEADLESS-1"]), json!("restore")]);
    see(desktop, &daemon, "HEADLESS-1", RED);
    see(desktop, &daemon, "HEADLESS-2", BLUE);
    assert_eq!(current(), [red, blue]);
    let before = client.post("/wallpaper/back", &json!({ "monitors": ["HEADLESS-1"] }));
    assert_eq!(before.status, 409, "the deleted picture does not come back");
    // A monitor without another picture in its history is served as a new one.
    delete(blue);
    events.wait_for("wallpaper_changed");
    see(desktop, &daemon, "HEADLESS-2", RED);
    assert_eq!(current(), [red, red]);
    // Nothing else can be shown, so the picture stays.
    delete(red);
    assert_eq!(current(), [] as [i64; 0]);
    see(desktop, &daemon, "HEADLESS-1", RED);
    see(desktop, &daemon, "HEADLESS-2", RED);
}

#[test]
fn swaybg_replaces_a_deleted_picture_at_once() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    deleted_picture_is_replaced(&desktop, "swaybg");
}

#[test]
fn builtin_replaces_a_deleted_picture_at_once() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    deleted_picture_is_replaced(&desktop, "builtin");
}

/// A file in the library is removed by another program, and comes back.
#[test]
fn picture_in_place_of_one_whose_file_is_missing_is_reported_until_the_file_is_back() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, blue] = three(&daemon);
    set(&daemon, green, "HEADLESS-1").ok();
    set(&daemon, red, "HEADLESS-1").ok();
    let client = daemon.client();
    let mut events = daemon.events("wallpaper_changed");
    let restored = |events: &mut Events, image: i64| {
        let is_it = |event: &Value| event["source"] == "restore" && event["image_id"] == image;
        while !is_it(&events.wait_for("wallpaper_changed")) {}
        let shown = &client.get("/wallpaper/current").ok()["monitors"][0];
        assert_eq!(shown["image_id"], image);
        let link = daemon.root().join(".local/state/murald/current/HEADLESS-1");
        let path = &client.get(&format!("/images/{image}")).ok()["path"];
        assert_eq!(json!(fs::read_link(link).unwrap()), *path);
        client.get("/why?monitor=HEADLESS-1").ok()[0]["text"].clone()
    };
    let file = daemon.images().join("red.png");
    let aside = daemon.root().join("aside.png");
    fs::rename(&file, &aside).unwrap();
    set(&daemon, blue, "HEADLESS-2").ok();
    let why = restored(&mut events, green);
    let expected = format!(
        "HEADLESS-1: green ({green}), shown because the file of red ({red}) cannot be read, drawn by"
    );
    assert!(why.as_str().unwrap().starts_with(&expected), "{why}");
    see(&desktop, &daemon, "HEADLESS-1", GREEN);
    fs::rename(&aside, &file).unwrap();
    client.post("/library/scan", &json!({})).ok();
    let why = restored(&mut events, red);
    let expected = format!("HEADLESS-1: red ({red}), set manually, ");
    assert!(why.as_str().unwrap().starts_with(&expected), "{why}");
    see(&desktop, &daemon, "HEADLESS-1", RED);
    let history = client.get("/images/history").ok();
    assert_eq!(history.as_array().unwrap().len(), 3, "{history}");
}

/// The pictures of three monitors are in directories of a disk that hangs. A look at each took 5 s.
#[test]
fn disk_that_does_not_answer_delays_no_picture_of_another() {
    let desktop = Desktop::wayland(&["320x240"; 4]);
    let mut daemon = TestDaemon::on(&desktop);
    let disk = daemon.root().join("disk");
    let directories = ["a", "b", "c"].map(|name| disk.join(name));
    for directory in &directories {
        fs::create_dir_all(directory).unwrap();
    }
    daemon.configure(&format!("[library]\nwatch = {directories:?}\n"));
    daemon.start();
    let [red, green, blue] = three(&daemon);
    let colors = [[250, 250, 20], [20, 250, 250], [250, 20, 250]];
    let outputs = ["HEADLESS-1", "HEADLESS-2", "HEADLESS-3"];
    for ((output, directory), color) in outputs.iter().zip(&directories).zip(colors) {
        set(&daemon, red, output).ok();
        let path = directory.join("white.png");
        let id = watched(&daemon, &path, color);
        set(&daemon, id, output).ok();
    }
    set(&daemon, green, "HEADLESS-4").ok();
    let Some(dead) = DeadDisk::mount(&disk) else {
        return left_out("a disk that does not answer", "this user may not mount");
    };
    let begun = Instant::now();
    set(&daemon, blue, "HEADLESS-4").ok();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    see(&desktop, &daemon, "HEADLESS-1", RED);
    // Without another event, the pictures return once the disk answers.
    drop(dead);
    for (output, color) in outputs.iter().zip(colors) {
        see(&desktop, &daemon, output, color);
    }
}

/// Saves a picture in a watched directory; returns its id.
fn watched(daemon: &TestDaemon, path: &Path, color: [u8; 3]) -> i64 {
    RgbImage::from_pixel(64, 36, Rgb(color)).save(path).unwrap();
    let mut id = None;
    wait_until("the watched file", || {
        let all = daemon.client().get("/images").ok();
        let mut images = all["data"].as_array().unwrap().iter();
        let found = images.find(|image| image["path"] == json!(path));
        id = found.and_then(|image| image["id"].as_i64());
        id.is_some()
    });
    id.unwrap()
}

/// As a network disk does whose program was killed.
#[test]
fn disk_that_answers_with_errors_keeps_no_other_picture_from_changing() {
    let desktop = Desktop::wayland(&["320x240"; 2]);
    let mut daemon = TestDaemon::on(&desktop);
    let disk = daemon.root().join("disk");
    fs::create_dir_all(&disk).unwrap();
    daemon.configure(&format!("[library]\nwatch = [{disk:?}]\n"));
    daemon.start();
    let [red, green, blue] = three(&daemon);
    let yellow = [250, 250, 20];
    let id = watched(&daemon, &disk.join("yellow.png"), yellow);
    set(&daemon, red, "HEADLESS-1").ok();
    set(&daemon, id, "HEADLESS-1").ok();
    set(&daemon, green, "HEADLESS-2").ok();
    let Some(mut dead) = DeadDisk::mount(&disk) else {
        return left_out("a disk that answers with errors", "this user may not mount");
    };
    dead.fail();
    set(&daemon, blue, "HEADLESS-2").ok();
    see(&desktop, &daemon, "HEADLESS-2", BLUE);
    see(&desktop, &daemon, "HEADLESS-1", RED);
    // Without another event, the picture returns with the disk.
    drop(dead);
    see(&desktop, &daemon, "HEADLESS-1", yellow);
}

/// A link in a home directory, which is often a file system of its own.
#[test]
fn disk_behind_a_link_that_does_not_answer_keeps_the_pictures_of_the_disk_of_the_link() {
    let desktop = Desktop::wayland(&["320x240"; 3]);
    let mut daemon = TestDaemon::on(&desktop);
    let [disk, home] = ["disk", "home"].map(|name| daemon.root().join(name));
    fs::create_dir_all(&disk).unwrap();
    fs::create_dir_all(&home).unwrap();
    let Some(_home) = Mounted::tmpfs(&home) else {
        return left_out("a disk that does not answer", "this user may not mount");
    };
    symlink(&disk, home.join("link")).unwrap();
    daemon.configure(&format!("[library]\nwatch = [{home:?}]\n"));
    daemon.start();
    let [red, green, _] = three(&daemon);
    let yellow = [250, 250, 20];
    let own = watched(&daemon, &home.join("own.png"), yellow);
    let linked = watched(&daemon, &home.join("link/linked.png"), [20, 250, 250]);
    set(&daemon, red, "HEADLESS-1").ok();
    set(&daemon, linked, "HEADLESS-1").ok();
    set(&daemon, own, "HEADLESS-2").ok();
    let _dead = DeadDisk::mount(&disk).unwrap();
    set(&daemon, green, "HEADLESS-3").ok();
    see(&desktop, &daemon, "HEADLESS-1", RED);
    let current = daemon.client().get("/wallpaper/current").ok();
    assert_eq!(current["monitors"][1]["image_id"], own);
    see(&desktop, &daemon, "HEADLESS-2", yellow);
}

#[test]
fn pictures_whose_files_are_missing_blank_no_monitor() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    let mut daemon = TestDaemon::on(&desktop);
    daemon.start();
    let [red, green, blue] = three(&daemon);
    // Many files will be missing.
    let crowd: Vec<_> = (0..24u8)
        .map(|number| plain(&daemon, &format!("crowd-{number}.png"), [number, 7, 7]))
        .collect();
    daemon.import(
        &crowd
            .iter()
            .map(std::path::PathBuf::as_path)
            .collect::<Vec<_>>(),
    );
    set(&daemon, red, "HEADLESS-1").ok();
    set(&daemon, green, "HEADLESS-2").ok();
    assert_eq!(daemon.stop(), Some(0));
    for entry in fs::read_dir(daemon.images()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("crowd-") || name == "red.png" {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    daemon.start();
    let missing =
        |daemon: &TestDaemon| daemon.client().get("/info").ok()["library"]["missing"] == 25;
    wait_until("the count", || missing(&daemon));
    // The other monitor's picture stands in for one that cannot be read.
    see(&desktop, &daemon, "HEADLESS-1", GREEN);
    see(&desktop, &daemon, "HEADLESS-2", GREEN);
    // The same without the processes of the daemon before.
    assert_eq!(daemon.stop(), Some(0));
    for pid in running("swaybg", runtime) {
        desktop.output("kill", &["-9", &pid.to_string()]);
    }
    daemon.start();
    see(&desktop, &daemon, "HEADLESS-1", GREEN);
    see(&desktop, &daemon, "HEADLESS-2", GREEN);
    wait_until("the count", || missing(&daemon));
    assert_eq!(
        daemon.client().get(&format!("/images/{red}")).ok()["id"],
        red
    );
    set(&daemon, blue, "HEADLESS-1").ok();
    see(&desktop, &daemon, "HEADLESS-1", BLUE);
    see(&desktop, &daemon, "HEADLESS-2", GREEN);
}

#[test]
fn backend_whose_activation_cannot_be_written_shows_nothing() {
    let desktop = Desktop::wayland(&["640x480"]);
    let daemon = TestDaemon::started_on(&desktop);
    let [red, green, _] = three(&daemon);
    assert_eq!(set(&daemon, red, "HEADLESS-1").ok()["backend"], "swaybg");
    let directory = daemon.config_file().parent().unwrap().to_owned();
    fs::set_permissions(&directory, Permissions::from_mode(0o500)).unwrap();
    let mut events = daemon.events("wallpaper_changed");
    let refused = daemon
        .client()
        .post("/backends/builtin/activate", &json!({}))
        .fails(500);
    assert!(
        refused["error"].as_str().unwrap().contains("config.toml"),
        "{refused}"
    );
    assert!(daemon.drawing().is_empty());
    fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(set(&daemon, green, "HEADLESS-1").ok()["backend"], "swaybg");
    assert_eq!(events.wait_for("wallpaper_changed")["image_id"], green);
}
