//! Tests backgrounds of other programs, which are reported by name and process, and left alone.

use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use murald::internals::process::Identity;
use serde_json::{Value, json};

use crate::desktop::{Desktop, wait_until};
use crate::support::{Ended, TestDaemon};
use crate::wall::{Pixels, near};

const OURS: [u8; 3] = [9, 99, 199];
const THEIRS: [u8; 3] = [220, 40, 20];

/// The conflicts of a backend in `GET /backends`.
fn conflicts(daemon: &TestDaemon, backend: &str) -> Vec<Value> {
    let list = daemon.client().get("/backends").ok();
    let entry = list
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["name"] == backend)
        .unwrap();
    entry["conflicts"].as_array().unwrap().clone()
}

fn picture(daemon: &TestDaemon) -> PathBuf {
    plain(daemon, "a.png", OURS)
}

fn plain(daemon: &TestDaemon, name: &str, color: [u8; 3]) -> PathBuf {
    let file = daemon.root().join(name);
    let picture = image::RgbImage::from_pixel(64, 36, image::Rgb(color));
    picture.save(&file).unwrap();
    file
}

/// Waits until an output shows our picture.
#[track_caller]
fn see_ours(desktop: &Desktop, daemon: &TestDaemon) {
    let shot = daemon.root().join("shot.png");
    wait_until("our picture", || {
        desktop.shot(&shot, "HEADLESS-1");
        near(Pixels::read(&shot).part(50, 50), OURS)
    });
}

/// The answer.
fn set(daemon: &TestDaemon, id: i64) -> Value {
    let body = json!({ "image_id": id });
    daemon.client().post("/wallpaper/set", &body).ok()
}

#[test]
fn background_of_sways_configuration_is_reported() {
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.configure("[backend]\ntype = 'swaybg'\n");
    daemon.start();
    let file = picture(&daemon);
    let id = daemon.import(&[&file])[0];
    let set = || set(&daemon, id);
    assert!(set().get("warnings").is_none());
    assert!(
        conflicts(&daemon, "swaybg").is_empty(),
        "our own is no conflict"
    );

    let configuration = Path::new(desktop.var("DESKTOP_DIR").unwrap()).join("sway.conf");
    let mut options = fs::OpenOptions::new();
    let mut sway = options.append(true).open(&configuration).unwrap();
    let other = plain(&daemon, "b.png", THEIRS);
    let line = format!("output * bg {} fill", other.display());
    sway.write_all(format!("\n# exec swaybg\n{line}\n").as_bytes())
        .unwrap();
    desktop.output("swaymsg", &["reload"]);
    wait_until("sway's own swaybg", || {
        !conflicts(&daemon, "swaybg").is_empty()
    });
    let [conflict] = &conflicts(&daemon, "mpvpaper")[..] else {
        panic!("not one conflict")
    };
    assert_eq!(conflict["program"], "swaybg");
    // Sway until 1.9 puts newer surfaces below, so that ours have stayed above; later ones cover ours,
    // which are shown again.
    see_ours(&desktop, &daemon);
    assert!(
        conflicts(&daemon, "feh").is_empty(),
        "that is for another session"
    );

    let pid = i32::try_from(conflict["pid"].as_i64().unwrap()).unwrap();
    let answer = set();
    let [warning] = &answer["warnings"].as_array().unwrap()[..] else {
        panic!("{answer}")
    };
    let warning = warning.as_str().unwrap();
    for part in [
        format!("swaybg (process {pid})"),
        "remove `output * bg` from sway's configuration".to_owned(),
    ] {
        assert!(warning.contains(&part), "{warning}");
    }
    // `why` and `status` warn, too, without the remedy.
    let short = warning.split(": ").next().unwrap();
    for words in [&["why"][..], &["status"]] {
        let output = daemon.murald(words).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(short), "{said}");
    }
    assert_eq!(
        daemon.client().get("/why").ok()[0]["warnings"],
        json!([short])
    );
    // Playlists and other backends are hidden, too.
    let body = json!({ "name": "one", "images": [{ "image_id": id }] });
    let id = &daemon.client().post("/playlists", &body).ok()["id"];
    let start = format!("/playlists/{id}/start");
    for path in [
        &*start,
        "/playlists/active/next",
        "/backends/builtin/activate",
    ] {
        let answer = daemon.client().post(path, &json!({})).ok();
        assert_eq!(answer["warnings"], json!([warning]), "{path}");
    }
    assert!(Identity::from_pid(pid).is_some(), "it is not ours to end");
}

/// A program that speaks sway's protocol, and claims a version.
struct Sway(UnixListener);

impl Sway {
    fn at(path: &Path) -> Self {
        Self(UnixListener::bind(path).unwrap())
    }

    /// Waits for the daemon's connection.
    fn accept(&self, minor: u32) -> UnixStream {
        let (mut daemon, _) = self.0.accept().unwrap();
        send(&mut daemon, 2, &json!({ "success": true }));
        send(&mut daemon, 7, &json!({ "major": 1, "minor": minor }));
        send(&mut daemon, 1, &json!([]));
        daemon
    }
}

fn send(daemon: &mut UnixStream, kind: u32, body: &Value) {
    let body = body.to_string();
    let head = [u32::try_from(body.len()).unwrap(), kind].map(u32::to_ne_bytes);
    let message = [b"i3-ipc", &*head.concat(), body.as_bytes()].concat();
    daemon.write_all(&message).unwrap();
}

/// The processes of our backends.
fn ours(daemon: &TestDaemon) -> Vec<i64> {
    let children = daemon.client().get("/debug").ok()["children"].clone();
    let backends = children.as_array().unwrap().iter();
    backends.map(|one| one["pid"].as_i64().unwrap()).collect()
}

#[test]
fn wallpaper_is_shown_again_once_after_a_reload_that_covers_it() {
    for backend in ["builtin", "swaybg"] {
        let desktop = Desktop::wayland(&["640x360"]);
        let mut daemon = TestDaemon::on(&desktop);
        let socket = daemon.root().join("sway");
        let sway = Sway::at(&socket);
        daemon.env("SWAYSOCK", socket);
        daemon.configure(&format!("[backend]\ntype = '{backend}'\n"));
        daemon.start();
        let id = daemon.import(&[&picture(&daemon)])[0];
        set(&daemon, id);
        let first = ours(&daemon);
        assert_eq!(first.len(), 1);
        // The daemon connects again once it has handled the reload.
        let reload = |mut connection: UnixStream, minor: u32| {
            send(&mut connection, 1 << 31, &json!({ "change": "reload" }));
            send(&mut connection, 1, &json!([]));
            connection.shutdown(Shutdown::Write).unwrap();
            sway.accept(minor)
        };
        let connection = reload(sway.accept(10), 7);
        assert_eq!(ours(&daemon), first, "{backend}: nothing covers it");
        let theirs = desktop.command("swaybg").args(["-c", "#c01020"]).spawn();
        let _theirs = Ended(theirs.unwrap());
        wait_until("their background", || {
            !conflicts(&daemon, backend).is_empty()
        });
        let connection = reload(connection, 10);
        assert_eq!(ours(&daemon), first, "{backend}: sway 1.7 puts it below");
        let connection = reload(connection, 10);
        wait_until("our new surfaces", || {
            let now = ours(&daemon);
            now.len() == 1 && now != first
        });
        let second = ours(&daemon);
        drop(reload(connection, 10));
        assert_eq!(ours(&daemon), second, "{backend}: the other one is older");
    }
}

/// Sway starts such a swaybg if its configuration has no background.
#[test]
fn swaybg_that_draws_nothing_is_no_conflict() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let swaybg = |options: &[&str]| Ended(desktop.command("swaybg").args(options).spawn().unwrap());
    let idle = swaybg(&[]);
    let drawing = swaybg(&["-c", "#c01020"]);
    let pid = |ended: &Ended| json!(ended.0.id());
    wait_until("the one that draws", || {
        !conflicts(&daemon, "mpvpaper").is_empty()
    });
    let told = conflicts(&daemon, "mpvpaper");
    assert_eq!(
        told,
        [json!({ "program": "swaybg", "pid": pid(&drawing) })],
        "not {}",
        pid(&idle)
    );
}

#[test]
fn desktop_of_a_file_manager_over_x11_is_reported() {
    let desktop = Desktop::x11(&["640x360"]);
    let daemon = TestDaemon::started_on(&desktop);
    let id = daemon.import(&[&picture(&daemon)])[0];
    let set = || set(&daemon, id);
    assert!(set().get("warnings").is_none());
    let mut pcmanfm = desktop.command("pcmanfm");
    let pcmanfm = Ended(
        pcmanfm
            .arg("--desktop")
            .env("HOME", daemon.root())
            .spawn()
            .unwrap(),
    );
    wait_until("its window", || !conflicts(&daemon, "feh").is_empty());
    let expected = json!({ "program": "pcmanfm", "pid": pcmanfm.0.id() });
    assert_eq!(conflicts(&daemon, "builtin"), [expected]);
    assert!(
        conflicts(&daemon, "swaybg").is_empty(),
        "that is for another session"
    );
    let told = set()["warnings"].to_string();
    let named = format!("pcmanfm (process {})", pcmanfm.0.id());
    assert!(
        told.contains(&named) && told.contains("turn off its wallpaper"),
        "{told}"
    );
    let doctor = daemon.murald(&["doctor"]).output().unwrap();
    let found = String::from_utf8(doctor.stdout).unwrap();
    let row = found.lines().find(|row| row.starts_with("fix\tother\t"));
    assert!(row.is_some_and(|row| row.contains(&named)), "{found}");
}

/// A daemon of a Wayland session may know only the display of Xwayland.
#[test]
fn root_window_of_xwayland_is_not_used() {
    let (wayland, x11) = (Desktop::wayland(&["640x480"]), Desktop::x11(&["640x480"]));
    // Its outputs have such names.
    let monitor = [
        "--setmonitor",
        "*XWAYLAND0",
        "640/160x480/120+0+0",
        "screen",
    ];
    x11.output("xrandr", &monitor);
    for (name, monitor) in [("auto", "HEADLESS-1"), ("x11", "XWAYLAND0")] {
        let mut daemon = TestDaemon::on(&wayland);
        daemon.env("DISPLAY", x11.var("DISPLAY").unwrap());
        daemon.env("WAYLAND_DISPLAY", "");
        daemon.env("XDG_SESSION_TYPE", "tty");
        daemon.configure(&format!("[daemon]\ncompositor = '{name}'\n"));
        daemon.start();
        let found = daemon.client().get("/monitors").ok();
        assert_eq!(found[0]["name"], monitor, "{name}");
        assert_eq!(daemon.stop(), Some(0));
    }
}
