//! Tests awww with a stand-in: its command line, and what happens if it never answers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::colors::NIGHT;
use crate::desktop::{Desktop, wait_until};
use crate::scene::{GREEN, RED, plain, running, see, set, three};
use crate::support::{TestDaemon, awww};

#[test]
fn old_backend_ends_once_another_covers_its_screens() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    let mut daemon = TestDaemon::on(&desktop);
    daemon.stub("awww", AWWW_TWO);
    daemon.stub("awww-daemon", AWWW_DAEMON);
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    daemon.start();
    let [red, green, _] = three(&daemon);
    set(&daemon, red, "HEADLESS-1").ok();
    set(&daemon, green, "HEADLESS-2").ok();
    let process = running("swaybg", runtime);
    assert_eq!(daemon.stop(), Some(0));
    daemon.configure("[backend]\ntype = \"awww\"\n");
    daemon.start();
    wait_until("the old process to go", || {
        running("swaybg", runtime).is_empty()
    });
    wait_until("the new one's server", || {
        running("sleep", runtime).len() == 1
    });
    // The way back works too, despite the old records.
    assert_eq!(daemon.stop(), Some(0));
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    daemon.start();
    wait_until("the new process to go", || {
        running("sleep", runtime).is_empty()
    });
    see(&desktop, &daemon, "HEADLESS-1", RED);
    see(&desktop, &daemon, "HEADLESS-2", GREEN);
    assert_ne!(running("swaybg", runtime), process);
}

#[test]
fn activated_backend_is_at_once_the_only_active_one() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    let mut daemon = TestDaemon::on(&desktop);
    daemon.stub("awww", AWWW_TWO);
    daemon.stub("awww-daemon", AWWW_DAEMON);
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    daemon.start();
    let [red, green, _] = three(&daemon);
    set(&daemon, red, "HEADLESS-1").ok();
    set(&daemon, green, "HEADLESS-2").ok();
    for name in ["awww", "swaybg"].into_iter().cycle().take(20) {
        daemon
            .client()
            .post(&format!("/backends/{name}/activate"), &json!({}))
            .ok();
        let listed = daemon.client().get("/backends").ok();
        let active = listed
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["active"] == true);
        let active: Vec<&str> = active.map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(active, [name]);
        let hung = daemon.client().get("/wallpaper/current").ok();
        assert!(
            (0..2).all(|at| hung["monitors"][at]["backend"] == name),
            "{name}: {hung}"
        );
        // The backend has really changed, not only its name.
        let backends = running("swaybg", runtime).len();
        assert_eq!(backends, usize::from(name == "swaybg"), "{name}");
    }
    see(&desktop, &daemon, "HEADLESS-1", RED);
    see(&desktop, &daemon, "HEADLESS-2", GREEN);
}

/// A stand-in for awww that records its calls, and rejects what the real one would reject. Each call is
/// written at once, because others write there too: its arguments, then a line break.
const AWWW: &str = r#"#!/bin/sh
printf '%s\0' "$@" '
' >>"$HOME/calls"
[ -e "$HOME/server" ] || exit 1
for word; do :; done
case $1 in
query) printf ': HEADLESS-1: 1280x720, scale: 1, currently displaying: %s\n' \
         "$(cat "$HOME/shown" 2>/dev/null || echo color: 000000)" ;;
img) echo "image: $word" >"$HOME/shown" ;;
*) exit 2 ;;
esac
"#;

const AWWW_DAEMON: &str = r#"#!/bin/sh
printf '%s\0' daemon "$@" '
' >>"$HOME/calls"
[ "$1" = --no-cache ] || exit 2
: >"$HOME/server"
exec sleep 1000
"#;

/// Another stand-in, which knows two outputs.
const AWWW_TWO: &str = r#"#!/bin/sh
[ -e "$HOME/server" ] || exit 1
for word; do
  case $word in --outputs=*) outputs=$(echo "${word#*=}" | tr , ' ') ;; esac
done
for output in ${outputs-HEADLESS-1 HEADLESS-2}; do
  case $1 in
  query) printf ': %s: 640x480, scale: 1, currently displaying: %s\n' "$output" \
           "$(cat "$HOME/shown-$output" 2>/dev/null || echo color: 000000)" ;;
  img) echo "image: $word" >"$HOME/shown-$output" ;;
  esac
done
"#;

/// Another stand-in, which accepts a picture and never answers.
const AWWW_HANGS: &str = r#"#!/bin/sh
case $1 in
query) [ -e "$HOME/server" ] || exit 1
       printf ': HEADLESS-%s: 640x480, scale: 1, currently displaying: color: 000000\n' 1 2 ;;
img) : >"$HOME/hangs"; exec sleep 1000 ;;
esac
"#;

#[test]
fn client_of_a_hung_backend_is_told_that_the_daemon_ends() {
    let desktop = Desktop::wayland(&["640x480", "640x480"]);
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    let mut daemon = TestDaemon::on(&desktop);
    daemon.stub("awww", AWWW_HANGS);
    daemon.stub("awww-daemon", AWWW_DAEMON);
    daemon.configure("[backend]\ntype = \"swaybg\"\n");
    daemon.start();
    let [red, ..] = three(&daemon);
    let moving = daemon.root().join("moving.gif");
    let frames = [
        "-size",
        "16x16",
        "xc:red",
        "xc:blue",
        moving.to_str().unwrap(),
    ];
    desktop.output("convert", &frames);
    let moving = daemon.import(&[&moving])[0];
    set(&daemon, red, "*").ok();
    stops_while_it_hangs(&mut daemon, "/backends/awww/activate", json!({}), false);
    assert_eq!(running("swaybg", runtime).len(), 1, "what hung stays");

    let priorities = "selection_mode = \"auto\"\nauto_priorities.image = [\"swaybg\", \"awww\"]\n";
    daemon.configure(&format!("[backend]\n{priorities}"));
    daemon.start();
    let body = json!({ "image_id": moving, "monitor": "HEADLESS-1" });
    stops_while_it_hangs(&mut daemon, "/wallpaper/set", body, true);
    assert!(running("swaybg", runtime).is_empty(), "all is taken down");
    // The stand-in for the server is a `sleep`.
    assert!(
        running("sleep", runtime).is_empty(),
        "also what was about to show"
    );
}

/// Ends the daemon while a request waits for a backend that never answers.
fn stops_while_it_hangs(daemon: &mut TestDaemon, path: &str, body: Value, clear: bool) {
    let (client, hangs) = (daemon.client(), daemon.root().join("hangs"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.post(path, &body));
        wait_until("the process hangs", || hangs.exists());
        daemon
            .client()
            .post("/shutdown", &json!({ "clear": clear }))
            .ok();
        let answer = waiting.join().unwrap().fails(503);
        assert_eq!(answer["error"], "the daemon is shutting down");
    });
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(
        !daemon.log().contains("continuing without"),
        "{}",
        daemon.log()
    );
    fs::remove_file(hangs).unwrap();
}

#[test]
fn awww_gets_its_command_line() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.stub("awww", AWWW);
    daemon.stub("awww-daemon", AWWW_DAEMON);
    daemon.configure("[backend]\ntype = 'awww'\n");
    daemon.start();
    let path = plain(&daemon, "a b.png", RED);
    let id = daemon.import(&[&path])[0];
    assert_eq!(set(&daemon, id, "HEADLESS-1").ok()["backend"], "awww");
    let calls = fs::read_to_string(daemon.root().join("calls")).unwrap();
    let calls: Vec<Vec<&str>> = calls
        .split_terminator("\0\n\0")
        .map(|call| call.split('\0').collect())
        .collect();
    let started = calls
        .iter()
        .filter(|call| call[0] == "daemon")
        .collect::<Vec<_>>();
    assert_eq!(started, [&vec!["daemon", "--no-cache"]]);
    let library = daemon.images().join("a b.png");
    let images = calls
        .iter()
        .filter(|call| call[0] == "img")
        .collect::<Vec<_>>();
    assert_eq!(images, [&awww::img("HEADLESS-1", &library)]);
    // A plain colour is a picture with the pixels of its monitor.
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "color": "#1e1e2e" }))
        .ok();
    let shown = fs::read_to_string(daemon.root().join("shown")).unwrap();
    let colored = image::open(shown.trim().strip_prefix("image: ").unwrap())
        .unwrap()
        .into_rgb8();
    assert_eq!(colored.dimensions(), (1280, 720));
    assert!(colored.pixels().all(|pixel| pixel.0 == NIGHT));
    set(&daemon, id, "HEADLESS-1").ok();
    // Changed settings are those of the picture that is shown.
    let changed = json!({ "invert_y": true, "transition_fps": 33 });
    daemon
        .client()
        .patch("/config/backends/awww", &changed)
        .ok();
    wait_until("the picture is shown with them", || {
        let calls = fs::read_to_string(daemon.root().join("calls")).unwrap();
        let last = calls
            .split_terminator("\0\n\0")
            .filter(|call| call.starts_with("img\0"))
            .last();
        last.is_some_and(|call| call.contains("--transition-fps=33") && call.contains("--invert-y"))
    });

    // If the settings cannot be written, another backend is not activated.
    let writable = fs::metadata(daemon.config_file()).unwrap().permissions();
    fs::set_permissions(daemon.config_file(), fs::Permissions::from_mode(0o444)).unwrap();
    let refused = daemon
        .client()
        .post("/backends/swaybg/activate", &json!({}))
        .fails(500);
    assert!(refused.to_string().contains("config.toml"), "{refused}");
    let runtime = desktop.var("XDG_RUNTIME_DIR").unwrap();
    wait_until("awww alone again", || running("swaybg", runtime).is_empty());
    fs::set_permissions(daemon.config_file(), writable).unwrap();

    // Another backend is activated by name; one that is not installed is refused.
    let answer = daemon
        .client()
        .post("/backends/swaybg/activate", &json!({}))
        .ok();
    assert_eq!(
        answer,
        json!({ "status": "activated", "backend": "swaybg" })
    );
    see(&desktop, &daemon, "HEADLESS-1", RED);
    assert_eq!(
        daemon.client().get("/config").ok()["backend"]["type"],
        "swaybg"
    );
    let refused = daemon
        .client()
        .post("/backends/hyprpaper/activate", &json!({}))
        .fails(503);
    assert_eq!(refused["error_code"], "no_backend");
    assert_eq!(refused["meta"]["checked"], json!(["hyprpaper", "hyprctl"]));
    assert!(
        refused["error"].as_str().unwrap().contains("not installed"),
        "{refused}"
    );
    daemon
        .client()
        .post("/backends/nitrogen/activate", &json!({}))
        .fails(404);
}

/// A stand-in for feh that works until it gets the cue to hang.
const FEH_HANGS: &str = r#"#!/bin/sh
[ "$1" != --version ] || { echo 'feh version 3.10'; exit; }
[ -e "$HOME/hang" ] || exit 0
: >"$HOME/hangs"
exec sleep 1000
"#;

#[test]
fn shutdown_does_not_wait_for_a_backend_that_hangs() {
    let desktop = Desktop::x11(&["640x480"]);
    let mut daemon = TestDaemon::on(&desktop);
    daemon.stub("feh", FEH_HANGS);
    daemon.configure("[backend]\ntype = \"feh\"\n");
    daemon.start();
    let [red, ..] = three(&daemon);
    set(&daemon, red, "*").ok();
    fs::write(daemon.root().join("hang"), "").unwrap();
    daemon
        .client()
        .post("/shutdown", &json!({ "clear": true }))
        .ok();
    wait_until("feh hangs", || daemon.root().join("hangs").exists());
    assert_eq!(daemon.wait().code(), Some(0));
    let log = daemon.log();
    assert!(
        log.contains("timed out waiting for thread reconciler"),
        "{log}"
    );
    // Nothing stays locked or unfinished, so the next daemon starts.
    fs::remove_file(daemon.root().join("hang")).unwrap();
    daemon.start();
    set(&daemon, red, "*").ok();
}
