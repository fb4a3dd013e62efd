//! Tests the files that take the wallpaper's colours to lock screens, bars and menus, with the real
//! program if Debian has it, and the manual's hooks for other programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::desktop::{Desktop, wait_until};
use crate::scripts::{End, daemon, script};
use crate::support::TestDaemon;

fn contrib(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("contrib")
        .join(path)
        .to_str()
        .unwrap()
        .to_owned()
}

fn set(daemon: &TestDaemon, id: i64) {
    daemon
        .client()
        .post("/wallpaper/set", &json!({ "image_id": id }))
        .ok();
}

/// A colour of the current wallpaper, by its name in the colour files.
fn color(daemon: &TestDaemon, name: &str) -> [u8; 3] {
    let state = daemon.root().join(".local/state/murald/colors.sh");
    let text = fs::read_to_string(state).unwrap();
    let start = format!("{name}='#");
    let hex = text
        .lines()
        .find_map(|line| line.strip_prefix(&start))
        .unwrap();
    [0, 2, 4].map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
}

/// The number of pixels of a screenshot that have this colour.
fn count(desktop: &Desktop, daemon: &TestDaemon, output: &str, color: [u8; 3]) -> usize {
    let shot = daemon.root().join("shot.png");
    desktop.shot(&shot, output);
    let is = |pixel: &&image::Rgb<u8>| {
        pixel
            .0
            .iter()
            .zip(color)
            .all(|(one, other)| one.abs_diff(other) <= 3)
    };
    image::open(&shot)
        .unwrap()
        .into_rgb8()
        .pixels()
        .filter(is)
        .count()
}

#[test]
fn swaylock_shows_the_wallpaper_of_the_monitor() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = daemon(&desktop);
    // The wallpaper is small, so a picture that fills the monitor is the lock screen's.
    let body = json!({ "image_id": 2, "fit": "center" });
    daemon.client().post("/wallpaper/set", &body).ok();
    let blue = [40, 60, 200];
    assert_eq!(count(&desktop, &daemon, "HEADLESS-1", blue), 64 * 36);
    let mut lock = daemon.command("swaylock");
    lock.args(["--config", &contrib("swaylock/config")]);
    let _lock = End::spawn(&mut lock);
    wait_until("the lock screen shows the picture", || {
        count(&desktop, &daemon, "HEADLESS-1", blue) > 640 * 360 * 9 / 10
    });
}

#[test]
fn waybar_has_the_colours_of_the_wallpaper() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = daemon(&desktop);
    set(&daemon, 1);
    // The path that a user has: the style sheet imports the colours relative to it.
    let directory = daemon.root().join(".config/waybar");
    fs::create_dir_all(&directory).unwrap();
    let style = directory.join("style.css");
    fs::copy(contrib("waybar/style.css"), &style).unwrap();
    let config = directory.join("config");
    fs::write(&config, r#"{ "height": 30, "modules-left": ["clock"] }"#).unwrap();
    let log = fs::File::create(daemon.root().join("waybar.log")).unwrap();
    let number = daemon.root().join("pid");
    let line = r#"echo $$ >"$0"; exec waybar --config "$1" --style "$2""#;
    let mut bar = daemon.command("dbus-run-session");
    bar.args(["--", "sh", "-c", line])
        .args([&number, &config, &style]);
    let _bar = End::spawn(bar.stdout(log.try_clone().unwrap()).stderr(log));
    let shows = |what: &str| {
        let background = color(&daemon, "background");
        wait_until(what, || {
            count(&desktop, &daemon, "HEADLESS-1", background) > 640 * 20
        });
    };
    shows("the bar has the colour of the red picture");
    assert_ne!(
        color(&daemon, "background"),
        [200, 30, 30],
        "the background must differ from the wallpaper"
    );
    set(&daemon, 2);
    let number = fs::read_to_string(number).unwrap();
    let told = Command::new("kill")
        .args(["-USR2", number.trim()])
        .status()
        .unwrap();
    assert!(told.success());
    shows("the bar has the colour of the blue picture");
}

#[test]
fn rofi_has_the_colours_of_the_wallpaper() {
    let desktop = Desktop::x11(&["800x600"]);
    let daemon = daemon(&desktop);
    set(&daemon, 1);
    let background = color(&daemon, "background");
    assert_eq!(count(&desktop, &daemon, "VIRTUAL-1", background), 0);
    let mut menu = daemon.command("sh");
    menu.args(["-c", r#"printf 'sea\nhill\n' | rofi -dmenu -theme "$0""#]);
    let _menu = End::spawn(menu.arg(contrib("rofi/colors.rasi")).stdout(Stdio::null()));
    wait_until("the menu has the colour", || {
        count(&desktop, &daemon, "VIRTUAL-1", background) > 10_000
    });
    // rofi draws its lines once it has read them.
    let accent = color(&daemon, "accent");
    wait_until("the selected line has the colour", || {
        count(&desktop, &daemon, "VIRTUAL-1", accent) > 1_000
    });
}

#[test]
fn sway_borders_script_sets_the_colours() {
    let desktop = Desktop::wayland(&["640x360"]);
    let daemon = daemon(&desktop);
    set(&daemon, 1);
    let output = script(&daemon, "examples/sway-borders").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}

/// The keys are from Noctalia (Commons/Settings.qml), DankMaterialShell
/// (Common/settings/SettingsSpec.js) and caelestia (Config/backgroundconfig.hpp).
#[test]
fn shell_settings_leave_the_wallpaper_to_murald() {
    let settings = |path: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(contrib(&format!("shells/{path}"))).unwrap())
            .unwrap()
    };
    let noctalia = json!({
        "wallpaper": { "enabled": false }, "colorSchemes": { "useWallpaperColors": true }
    });
    assert_eq!(settings("noctalia/settings.json"), noctalia);
    let dank = json!({ "screenPreferences": { "wallpaper": [] }, "currentThemeName": "dynamic" });
    assert_eq!(settings("DankMaterialShell/settings.json"), dank);
    let caelestia = json!({ "background": { "wallpaperEnabled": false } });
    assert_eq!(settings("caelestia/shell.json"), caelestia);
}

/// Debian has none of these programs, so stubs record their arguments.
#[test]
fn hooks_of_the_manual_call_colour_programs_correctly() {
    let page = fs::read_to_string(contrib("../man/murald.toml.5")).unwrap();
    let lines: Vec<String> = page
        .lines()
        .filter(|line| line.starts_with("wallpaper_changed = '"))
        .map(|line| line.replace("\\-", "-"))
        .collect();
    let desktop = Desktop::wayland(&["640x360"]);
    let mut daemon = daemon(&desktop);
    let notes = daemon.root().join("notes");
    for program in [
        "wal",
        "wallust",
        "matugen",
        "pkill",
        "qs",
        "dms",
        "caelestia",
    ] {
        let note = format!("echo {program} \"$@\" >'{}'", notes.display());
        daemon.stub(program, &format!("#!/bin/sh\n{note}\n"));
    }
    set(&daemon, 2);
    let image = daemon.client().get("/images/2").ok();
    let path = image["path"].as_str().unwrap();
    let expected = [
        format!("wal -n -q -i {path}\n"),
        format!("wallust run {path}\n"),
        format!("matugen image {path} --source-color-index 0\n"),
        "pkill -USR2 -x waybar\n".to_owned(),
        format!("qs -c noctalia-shell ipc call wallpaper set {path} all\n"),
        format!("dms ipc call wallpaper set {path}\n"),
        format!("caelestia wallpaper -f {path}\n"),
    ];
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(expected) {
        let line: toml::Table = line.parse().unwrap();
        let command = line["wallpaper_changed"].as_str().unwrap();
        daemon
            .client()
            .patch("/config/hooks", &json!({ "wallpaper_changed": command }))
            .ok();
        set(&daemon, 2);
        wait_until(command, || {
            fs::read_to_string(&notes).is_ok_and(|text| text == expected)
        });
    }
}
