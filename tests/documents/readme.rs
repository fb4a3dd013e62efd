//! Runs the commands of README, and checks that they do what it says.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::desktop::Desktop;
use crate::manual::check_stderr;
use crate::support::TestDaemon;

/// The commands of the block under a heading, without their comments, for a monitor that exists here.
fn lines(heading: &str) -> Vec<String> {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once(&format!("## {heading}\n")).unwrap();
    let block = section
        .split("```")
        .nth(1)
        .unwrap()
        .trim_start_matches("sh\n");
    let lines = block.lines().map(|line| {
        let (command, _) = line.split_once("  #").unwrap_or((line, ""));
        command.trim_end().replace("DP-1", "HEADLESS-1")
    });
    lines.collect()
}

/// A running daemon, and two pictures in ~/Pictures.
fn daemon(desktop: &Desktop) -> TestDaemon {
    let mut daemon = TestDaemon::on(desktop);
    let pictures = daemon.root().join("Pictures");
    fs::create_dir(&pictures).unwrap();
    for (name, color) in [("a mountain", [90, 120, 60]), ("a lake", [20, 80, 160])] {
        let picture = image::RgbImage::from_pixel(640, 360, image::Rgb(color));
        picture.save(pictures.join(format!("{name}.png"))).unwrap();
    }
    daemon.stub_murald();
    daemon.start();
    daemon
}

#[test]
fn tour_works() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let daemon = daemon(&desktop);
    let lines = lines("A tour");
    assert_eq!(
        (lines.len(), &*lines[0]),
        (13, "murald set \"$HOME/Pictures/a lake.png\"")
    );
    let said: Vec<String> = lines
        .iter()
        .map(|line| {
            let output = daemon.command("sh").args(["-c", line]).output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
            check_stderr(line, &output.stderr);
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(said[2].contains("\ta mountain\timage\t"), "{}", said[2]);
    let image = daemon.client().get("/images/2").ok();
    assert_eq!(image["tags"], json!(["quiet", "evening"]));
    for playlist in daemon.client().get("/playlists").ok().as_array().unwrap() {
        assert_ne!(playlist["images"], json!([]), "{playlist}");
    }
    let active = daemon.client().get("/playlists/active").ok();
    // The slideshow has replaced the playlist on the monitor.
    let directory = daemon.root().join("Pictures");
    assert_eq!(active[0]["playlist_name"], json!(directory), "{active}");
}

#[test]
fn api_requests_work() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let daemon = daemon(&desktop);
    let mut lines = lines("HTTP API");
    let [_, _, _, _, _, events] = &mut lines[..] else {
        panic!("{lines:?}")
    };
    // `exec` leaves one process to kill.
    *events = format!("exec {events}");
    // All lines at once, as if they were pasted.
    let mut shell = daemon.command("sh");
    let mut shell = shell
        .args(["-c", &lines.join("\n")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(shell.stdout.take().unwrap());
    let mut answers = String::new();
    said.read_line(&mut answers).unwrap();
    let answers = answers
        .strip_suffix(": connected\n")
        .unwrap_or_else(|| panic!("{answers}"));
    let answers: Vec<Value> = serde_json::Deserializer::from_str(answers)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {answers}"));
    let [import, search, set, random] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(
        (&import["status"], &import["images"]),
        (&json!("complete"), &json!([1, 2]))
    );
    assert_eq!(
        (&import["failed"], &import["errors"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(search["data"][0]["name"], "a mountain");
    assert_eq!(search["pagination"]["total_items"], 1);
    assert_eq!(set["monitors"], json!(["HEADLESS-1"]));
    assert_eq!(random["image_id"], 2);
    assert!(daemon.murald(&["random"]).status().unwrap().success());
    let wanted = "event: wallpaper_changed";
    assert!(
        said.lines().any(|line| line.unwrap() == wanted),
        "no {wanted}"
    );
    shell.kill().unwrap();
    shell.wait().unwrap();
}

#[test]
fn light_and_dark_scripts_work_in_both_directions() {
    let desktop = Desktop::wayland(&["1280x720"]);
    let mut daemon = daemon(&desktop);
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once("For [darkman], save").unwrap();
    let block = |number: usize| {
        section
            .split("```")
            .nth(number)
            .unwrap()
            .trim_start_matches("sh\n")
            .to_owned()
    };
    let told = daemon.root().join("told");
    daemon.stub(
        "gsettings",
        &format!("#!/bin/sh\necho \"$@\" >> '{}'\n", told.display()),
    );
    // The script that darkman calls with the mode.
    daemon.stub("darkman-script", &block(1));
    let said = |word: &str| {
        let status = daemon.command("darkman-script").arg(word).status().unwrap();
        assert!(status.success(), "{word}");
        daemon.client().get("/appearance").ok()
    };
    assert_eq!(said("light"), json!({ "mode": "light", "now": "light" }));
    assert_eq!(said("dark"), json!({ "mode": "dark", "now": "dark" }));
    // The line that sets GTK's mode.
    let mut follows = daemon.command("sh");
    let mut follows = follows
        .args(["-c", &block(3)])
        .process_group(0)
        .spawn()
        .unwrap();
    let calls = || fs::read_to_string(&told).unwrap_or_default();
    crate::desktop::wait_until("listening", || daemon.log().contains("GET /events 200"));
    for tone in ["light", "dark"] {
        said(tone);
        let last = format!("set org.gnome.desktop.interface color-scheme prefer-{tone}\n");
        crate::desktop::wait_until("the call of gsettings", || calls().ends_with(&last));
    }
    // Kills the line's process and its children.
    let group = rustix::process::Pid::from_child(&follows);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    follows.wait().unwrap();
}
